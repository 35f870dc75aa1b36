"""Authorizes whole requests and their items before a request is decided or answered.

An unauthorized item gets Kafka's error at its position in the reply, and the other items are
processed. The error is the same whether the resource exists or not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from quorate.controller.authorization.authorizer import ResourceKind
from quorate.controller.errors import RefusedError
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.controller.authorization.authorizer import Operation, Permission, Resource, Rights
    from quorate.controller.decision import Context, Outcome
    from quorate.controller.metadata_kind import WriteOperation
    from quorate.controller.request_types import ReadRequest, WriteRequest
    from quorate.controller.slices import Slices

SLICE_ITEMS: Final = 100
_ERRORS: Final[Mapping[ResourceKind, ErrorCode]] = {
    ResourceKind.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceKind.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
}


@value_type
class AuthorizedRequest:
    """A request without its unauthorized items, and the results of those by position."""

    request: Any
    refused: tuple[tuple[int, Any], ...] = ()

    def complete(self, outcome: Outcome) -> Outcome:
        """The outcome for the authorized items, with the other results inserted into its reply."""
        reply: Any = outcome.reply
        field = self.request.permission.results
        results = list(getattr(reply, field))
        for place, result in self.refused:
            results.insert(place, result)
        return replace(outcome, reply=replace(reply, **{field: tuple(results)}))


FULLY_AUTHORIZED: Final = AuthorizedRequest(None)


def authorize_write_in_slices(
    context: Context, write_operation: WriteOperation, request: WriteRequest
) -> Slices[AuthorizedRequest]:
    """Separate unauthorized items. Raises RefusedError if no item is authorized."""
    permission, rights = request.permission, context.rights
    if permission.of_item is None:
        authorize_whole(rights, permission)
        return AuthorizedRequest(request)
    if permission.for_all is not None and rights.may(permission.operation, permission.for_all):
        return AuthorizedRequest(request)
    # As with lists, which do not distinguish resources of a kind.
    if all(rights.grant(permission.operation, on.kind).is_all for on in permission.on):
        return AuthorizedRequest(request)
    assert write_operation.refused is not None, (
        "items that may be refused have results of their own"
    )
    allowed: list[Any] = []
    refused: list[tuple[int, Any]] = []
    for place, item in enumerate(getattr(request, permission.items)):
        resource = permission.of_item(item)
        if rights.may(permission.operation, resource):
            allowed.append(item)
        else:
            refusal = authorization_error(rights, permission.operation, resource)
            refused.append((place, write_operation.refused(context, item, refusal)))
        if place % SLICE_ITEMS == SLICE_ITEMS - 1:
            yield
    if not refused:
        return AuthorizedRequest(request)
    left: Any = replace(request, **{permission.items: tuple(allowed)})  # type: ignore[type-var]
    return AuthorizedRequest(left, tuple(refused))


def authorize_read(rights: Rights, request: ReadRequest) -> None:
    """Raise RefusedError for an unauthorized read that has no items to authorize."""
    if request.permission.is_whole:
        authorize_whole(rights, request.permission)


def may_whole(rights: Rights, permission: Permission) -> bool:
    """True if the caller has the permission on one of its resources."""
    return any(rights.may(permission.operation, resource) for resource in permission.on)


def authorize_whole(rights: Rights, permission: Permission) -> None:
    """Raise RefusedError if the caller has the permission on none of its resources."""
    if not may_whole(rights, permission):
        raise authorization_error(rights, permission.operation, permission.on[0])


def authorization_error(rights: Rights, operation: Operation, resource: Resource) -> RefusedError:
    """The error for a caller without that right."""
    message = f"{rights.principal} may not do this: it needs {operation} on {resource}."
    return RefusedError(_ERRORS[resource.kind], message)
