"""Requests judged before they are decided on and answered: whole ones, and item by item.

An item that its caller has no right to has Kafka's error in its place in the reply, and the rest is
done. A refusal says the same of it whether it exists or not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from quorate.controller.authorization.authorizer import ResourceKind
from quorate.controller.errors import RefusedError
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.controller.authorization.authorizer import Operation, Permission, Resource, Rights
    from quorate.controller.decision import Context, Outcome
    from quorate.controller.metadata_kind import Write
    from quorate.controller.request_types import ReadRequest, WriteRequest
    from quorate.controller.slices import Slices

SLICE_ITEMS: Final = 100
_ERRORS: Final[Mapping[ResourceKind, ErrorCode]] = {
    ResourceKind.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceKind.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
}


@value
class Judged:
    """A request without the items that its caller has no right to, and their results by place."""

    request: Any
    refused: tuple[tuple[int, Any], ...] = ()

    def complete(self, outcome: Outcome) -> Outcome:
        """What was decided on the rest, and in its reply the other results in their places."""
        reply: Any = outcome.reply
        field = self.request.permission.results
        results = list(getattr(reply, field))
        for place, result in self.refused:
            results.insert(place, result)
        return replace(outcome, reply=replace(reply, **{field: tuple(results)}))


NOT_JUDGED: Final = Judged(None)


def judge_write_in_slices(context: Context, write: Write, request: WriteRequest) -> Slices[Judged]:
    """What of it may be decided on. Raises RefusedError where that is nothing as a whole."""
    permission, rights = request.permission, context.rights
    if permission.of_item is None:
        require_whole(rights, permission)
        return Judged(request)
    if permission.for_all is not None and rights.may(permission.operation, permission.for_all):
        return Judged(request)
    # As lists have it, which tell nothing of a kind from another.
    if all(rights.grant(permission.operation, on.kind).is_all for on in permission.on):
        return Judged(request)
    assert write.refused is not None, "items that may be refused have results of their own"
    allowed: list[Any] = []
    refused: list[tuple[int, Any]] = []
    for place, item in enumerate(getattr(request, permission.items)):
        resource = permission.of_item(item)
        if rights.may(permission.operation, resource):
            allowed.append(item)
        else:
            refusal = refusal_of(rights, permission.operation, resource)
            refused.append((place, write.refused(context, item, refusal)))
        if place % SLICE_ITEMS == SLICE_ITEMS - 1:
            yield
    if not refused:
        return Judged(request)
    left: Any = replace(request, **{permission.items: tuple(allowed)})  # type: ignore[type-var]
    return Judged(left, tuple(refused))


def judge_read(rights: Rights, request: ReadRequest) -> None:
    """Raises RefusedError for a question that is answered as a whole or not at all."""
    if request.permission.is_whole:
        require_whole(rights, request.permission)


def may_whole(rights: Rights, permission: Permission) -> bool:
    """True when the caller may have it done to one of its resources."""
    return any(rights.may(permission.operation, resource) for resource in permission.on)


def require_whole(rights: Rights, permission: Permission) -> None:
    """Raises RefusedError where the caller may not have it done to any of its resources."""
    if not may_whole(rights, permission):
        raise refusal_of(rights, permission.operation, permission.on[0])


def refusal_of(rights: Rights, operation: Operation, resource: Resource) -> RefusedError:
    """What a caller is told that may not do this."""
    message = f"{rights.principal} may not do this: it needs {operation} on {resource}."
    return RefusedError(_ERRORS[resource.kind], message)
