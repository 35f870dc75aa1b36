"""Base types of controller requests: frozen values, independent of any transport.

The requests themselves belong to the metadata kinds (messages.py of each). Names follow Kafka's
Admin and broker requests in snake_case. One request may have many items, because a reply reports
errors per item (rule `stream_responses`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.controller.authorization.authorizer import Permission
    from quorate.records.ids import Offset

# The largest number of records of one decision, and so of one request.
RECORDS_MAX: Final = 10_000
# The sender of a heartbeat: the broker's id and its epoch.
Sender: TypeAlias = "tuple[int, int]"
W = TypeVar("W", bound="WriteReply")
R = TypeVar("R", bound="ReadReply")


class WriteReply:
    """Result of a write request."""

    __slots__ = ()


class ReadReply(Protocol):
    """Result of a read request.

    `offset` is the end of the committed log that it reflects: it includes everything below.
    """

    @property
    def offset(self) -> Offset: ...


class WriteRequest:
    """A write request, which the active controller decides."""

    __slots__ = ()

    permission: ClassVar[Permission]
    # True if a client may rely on a reply without records: the reply then waits until a majority
    # confirms that this controller still leads, since it may be partitioned from the others.
    has_to_be_true: ClassVar[bool] = True


@value_type
class Pages:
    """A long reply comes in pages, each of which has the cursor of the next one (`next_cursor`).

    A request has its own cursor, and its field `limit` is the largest number of items on a page;
    the pages' `items` are one list.
    """

    limit: str
    items: str


class ReadRequest:
    """A read request, which any controller answers."""

    __slots__ = ()

    permission: ClassVar[Permission]
    pages: ClassVar[Pages | None] = None


class WriteRequestOf(WriteRequest, Generic[W]):
    """A write request that is answered with a W."""

    __slots__ = ()


class ReadRequestOf(ReadRequest, Generic[R]):
    """A read request that is answered with an R."""

    __slots__ = ()
