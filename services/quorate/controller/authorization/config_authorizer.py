"""Authorizer configured by settings: super users, per-operation lists, per-resource rules.

Settings only allow, they never deny. They do not depend on metadata, so that controllers can
authorize each other before they have any.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.authorizer import (
    ALL,
    ANY_PRINCIPAL,
    AllowedNames,
    Grant,
    NameSet,
    Operation,
    Resource,
    ResourceKind,
    Rights,
)
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quorate.controller.authorization.authorizer import Caller
    from quorate.controller.image import View

# Operations that include the right to describe, as in Kafka.
_IMPLYING: Final[Mapping[Operation, tuple[Operation, ...]]] = {
    Operation.DESCRIBE: (Operation.ALTER, Operation.DELETE),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
# Number of callers whose rights are cached for their next requests.
CALLERS_KEPT_MAX: Final = 1_000


@value_type
class Rule:
    """Identities that may do operations on a resource, or on all resources with a name prefix."""

    principals: frozenset[str]
    operations: frozenset[Operation]
    resource: Resource
    is_prefix: bool = False


class ConfigAuthorizer:
    """Super users may do everything, others what a list or a rule allows. An `Authorizer`."""

    def __init__(
        self,
        super_users: frozenset[str],
        allowed: Mapping[Operation, frozenset[str]],
        rules: Iterable[Rule] = (),
    ) -> None:
        """`allowed` names the identities that may do an operation on every resource."""
        self.super_users = super_users
        self.allowed = allowed
        self.rules = tuple(rules)
        self._rights: dict[str, Rights] = {}

    def rights(self, view: View | None, caller: Caller) -> Rights:
        """The rights of a principal, such as `User:CN=alice`; the metadata does not matter."""
        principal = caller.principal
        rights = self._rights.get(principal)
        if rights is None:
            if len(self._rights) >= CALLERS_KEPT_MAX:
                self._rights.clear()
            rights = self._rights[principal] = Rights(principal, partial(self.grant, principal))
        return rights

    def grant(self, principal: str, operation: Operation, kind: ResourceKind) -> Grant:
        """The resources of a kind on which a principal may do an operation."""
        if principal in self.super_users:
            return ALL
        sufficient = (operation, *_IMPLYING.get(operation, ()))
        names: frozenset[str] = frozenset((principal, ANY_PRINCIPAL))
        if any(names & self.allowed.get(each, frozenset()) for each in sufficient):
            return ALL
        rules = [
            rule
            for rule in self.rules
            if rule.resource.kind is kind
            and names & rule.principals
            and rule.operations.intersection(sufficient)
        ]
        literal = [rule.resource.name for rule in rules if not rule.is_prefix]
        prefixes = [rule.resource.name for rule in rules if rule.is_prefix]
        return Grant(AllowedNames(NameSet.of(literal, prefixes)))
