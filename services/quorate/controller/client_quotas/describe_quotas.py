"""DescribeClientQuotas: filtered, in time slices and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.client_quotas.messages import (
    DescribeClientQuotasReply,
    DescribedEntity,
    MatchType,
    QuotaComponent,
    QuotaCursor,
    QuotaValue,
)
from quorate.controller.client_quotas.quota_entities import IP, TYPES, entity_of, key_of
from quorate.controller.errors import RefusedError
from quorate.controller.pagination import page_limit, reject_multiple_pages, take_in_slices
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.authorization.authorizer import Rights
    from quorate.controller.client_quotas.image import EntityKey
    from quorate.controller.client_quotas.messages import DescribeClientQuotas
    from quorate.controller.image import MetadataImage
    from quorate.controller.slices import Slices

ENTRIES_PER_PAGE: Final = 1_000
SLICE_ENTRIES: Final = 200


def describe_quotas_in_slices(
    image: MetadataImage, request: DescribeClientQuotas, _rights: Rights
) -> Slices[DescribeClientQuotasReply]:
    """The quotas of all entities that match. Raises RefusedError for an invalid filter."""
    field = "response_entry_limit"
    limit = page_limit(request.response_entry_limit, ENTRIES_PER_PAGE, field=field)
    start = () if request.cursor is None else key_of(request.cursor.entity)
    quotas = image.client_quotas
    accepts = _filter(request)
    keys = yield from take_in_slices(quotas.by_owner, start, limit + 1, accepts)
    following = None
    if len(keys) > limit:
        reject_multiple_pages(request.response_entry_limit, limit, field=field)
        following = QuotaCursor(entity_of(keys.pop()))
    entries = []
    for key in keys:
        values = tuple(QuotaValue(name, value) for name, value in sorted(quotas.of(key).items()))
        entries.append(DescribedEntity(entity_of(key), values))
        if len(entries) % SLICE_ENTRIES == 0:
            yield
    return DescribeClientQuotasReply(image.position.end_offset, tuple(entries), following)


def _filter(request: DescribeClientQuotas) -> Callable[[EntityKey], bool]:
    """A predicate for the entities that the request is about."""
    # By type, the name that an entity has to have; None accepts any.
    wanted: dict[str, tuple[bool, str] | None] = {}
    for component in request.components:
        if component.entity_type in wanted:
            message = f"The filter names {component.entity_type} twice; give one component for it."
            raise RefusedError(ErrorCode.INVALID_REQUEST, message)
        wanted[component.entity_type] = _name_in(component)
    if IP in wanted and len(wanted) > 1:
        message = "An ip is an entity by itself; leave out the user and the client-id."
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)
    is_strict, count = request.strict, len(wanted)

    def accepts(key: EntityKey) -> bool:
        # Called for each existing entity, for each page.
        if is_strict and len(key) != count:
            return False
        missing = count
        for type_, has_name, name in key:
            if type_ in wanted:
                only = wanted[type_]
                if only is not None and only != (has_name, name):
                    return False
                missing -= 1
        return missing == 0

    return accepts


def _name_in(component: QuotaComponent) -> tuple[bool, str] | None:
    if component.entity_type not in TYPES:
        message = f"The entity type {component.entity_type!r} is none of {', '.join(TYPES)}."
        # An unknown type may be one of another release.
        is_named = component.entity_type != ""
        error = ErrorCode.UNSUPPORTED_VERSION if is_named else ErrorCode.INVALID_REQUEST
        raise RefusedError(error, message)
    is_exact = component.match_type is MatchType.EXACT
    if is_exact != (component.match is not None):
        message = (
            f"The component for {component.entity_type} is {component.match_type.name} and"
            f" {'lacks' if is_exact else 'has'} a match; give one where it is EXACT, only there."
        )
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)
    if component.match_type is MatchType.SPECIFIED:
        return None
    return (component.match is not None, component.match or "")
