"""What the controller can be asked: frozen values, free of any transport.

The requests themselves belong to the subjects (messages.py of each). Names follow Kafka's Admin and
broker requests in snake_case. Lists carry many items because an answer reports errors per item
(rule 20).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from quorate.records.value_types import value

if TYPE_CHECKING:
    from quorate.controller.authorization.authorizer import Permission
    from quorate.records.ids import Offset

# What one decision may write, and so what one request may ask for.
RECORDS_MAX: Final = 10_000
# A broker that sends a sign of life: its id and its epoch.
Sender: TypeAlias = "tuple[int, int]"
W = TypeVar("W", bound="WriteReply")
R = TypeVar("R", bound="ReadReply")


class WriteReply:
    """What became of a change."""

    __slots__ = ()


class ReadReply(Protocol):
    """An answer to a question.

    `offset` is the end of the committed log that it reflects: it includes everything below.
    """

    @property
    def offset(self) -> Offset: ...


class WriteRequest:
    """A change, which the active controller decides on."""

    __slots__ = ()

    permission: ClassVar[Permission]
    # Whether an answer without records tells what somebody may rely on: it waits until a majority
    # has said that this controller still leads, which may have been cut off.
    has_to_be_true: ClassVar[bool] = True


@value
class Pages:
    """A long answer comes in pages, each of which has the cursor of the next one (`next_cursor`).

    A request has its own cursor, and says in the field `limit` how many items a page may have; the
    pages' `items` are one list.
    """

    limit: str
    items: str


class ReadRequest:
    """A question, which any controller answers."""

    __slots__ = ()

    permission: ClassVar[Permission]
    pages: ClassVar[Pages | None] = None


class WriteFor(WriteRequest, Generic[W]):
    """A change that is answered with a W."""

    __slots__ = ()


class ReadFor(ReadRequest, Generic[R]):
    """A question that is answered with an R."""

    __slots__ = ()
