"""Who may do what, whatever door they come through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.authorizer import CLUSTER
from quorate.records.value import value

if TYPE_CHECKING:
    from quorate.controller.authorizer import Authorizer, Operation, Resource

# Why somebody is refused, in one word.
NOT_AUTHORIZED: Final = "NOT_AUTHORIZED"
FORWARDING_NOT_ALLOWED: Final = "FORWARDING_NOT_ALLOWED"


@value
class Need:
    """Any one of these operations on a resource."""

    operations: tuple[Operation, ...]
    resource: Resource = CLUSTER


@value
class Access:
    """Who decides, and which identities may call for others."""

    authorizer: Authorizer
    forwarders: frozenset[str] = frozenset()

    def allows(self, principal: str, need: Need) -> bool:
        """Whether somebody has what this takes."""
        authorize, resource = self.authorizer.authorize, need.resource
        return any(authorize(principal, operation, resource) for operation in need.operations)
