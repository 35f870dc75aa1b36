"""Requests and replies about client quotas."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final

from quorate.controller.authorization.authorizer import Operation, Permission
from quorate.controller.request_types import Pages, ReadRequestOf, WriteReply, WriteRequestOf
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.records.ids import Offset


@value_type
class EntityPart:
    """A component of an entity: `user`, `client-id` or `ip`; without a name, the default."""

    entity_type: str
    entity_name: str | None = None


@value_type
class QuotaOp:
    """A quota to set, or to `remove`; the value is then ignored."""

    key: str
    value: float = 0.0
    remove: bool = False


@value_type
class QuotaAlteration:
    """All changes of one entity; they take effect together or not at all."""

    entity: tuple[EntityPart, ...]
    ops: tuple[QuotaOp, ...]


@value_type
class AlterClientQuotas(WriteRequestOf["AlterClientQuotasReply"]):
    entries: tuple[QuotaAlteration, ...]
    validate_only: bool = False
    permission: ClassVar = Permission(Operation.ALTER_CONFIGS)


class MatchType(IntEnum):
    """Names that a component matches: one, only the default, or both."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@value_type
class QuotaComponent:
    """A condition on one type of an entity; `match` is the name of an EXACT one."""

    entity_type: str
    match_type: MatchType
    match: str | None = None


@value_type
class QuotaCursor:
    """Start of a page."""

    entity: tuple[EntityPart, ...]


@value_type
class DescribeClientQuotas(ReadRequestOf["DescribeClientQuotasReply"]):
    """The quotas of all entities that match every component, in order, in pages of that limit.

    With `strict` they have no other types. A limit of 0 means a client without paging: it gets an
    error for a reply of several pages, so that it does not mistake the first page for all.
    """

    components: tuple[QuotaComponent, ...] = ()
    strict: bool = False
    cursor: QuotaCursor | None = None
    response_entry_limit: int = 0
    pages: ClassVar = Pages(limit="response_entry_limit", items="entries")
    permission: ClassVar = Permission(Operation.DESCRIBE_CONFIGS)


@value_type
class AlteredEntity:
    entity: tuple[EntityPart, ...]
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


@value_type
class AlterClientQuotasReply(WriteReply):
    entries: tuple[AlteredEntity, ...]


@value_type
class QuotaValue:
    key: str
    value: float


@value_type
class DescribedEntity:
    """`values` are in order of their keys."""

    entity: tuple[EntityPart, ...]
    values: tuple[QuotaValue, ...]


@value_type
class DescribeClientQuotasReply:
    offset: Offset
    entries: tuple[DescribedEntity, ...]
    next_cursor: QuotaCursor | None = None


# An entity has at most three types, each of which may be wrong, and five keys.
ITEMS_MAX: Final = {
    ("QuotaAlteration", "entity"): 10,
    ("QuotaAlteration", "ops"): 100,
    ("QuotaCursor", "entity"): 10,
    ("DescribeClientQuotas", "components"): 10,
}
