"""Interfaces between the servers of an API and the controller, and errors of whole requests.

A server decodes requests, passes the values to a handler and encodes the replies. It never imports
the service behind the handler, only these protocols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from quorate.controller.authorization.authorizer import Caller
    from quorate.controller.request_types import ReadReply, ReadRequest, WriteReply, WriteRequest
    from quorate.raft import messages as m
    from quorate.records.errors import ErrorCode
    from quorate.records.ids import ReplyToken

T_co = TypeVar("T_co", covariant=True)


class PendingAnswer(Protocol[T_co]):
    """The methods of a future that servers use for a deferred reply."""

    def done(self) -> bool: ...

    def cancelled(self) -> bool: ...

    def cancel(self) -> bool: ...

    def result(self) -> T_co: ...

    def exception(self) -> BaseException | None: ...

    def add_done_callback(self, fn: Callable[[Any], object], /) -> None: ...

    def __await__(self) -> Generator[Any, None, T_co]: ...


class ControllerApiError(Exception):
    """The failure of a complete request, which has no reply of its own type.

    `leader` is the node to ask instead. With `outcome_unknown` the change may have been committed,
    or may still be.
    """

    def __init__(
        self,
        error: ErrorCode,
        message: str,
        *,
        leader: m.LeaderInfo | None = None,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(message)
        self.error = error
        self.message = message
        self.leader = leader
        self.outcome_unknown = outcome_unknown


class ControllerHandler(Protocol):
    """The metadata API; both calls raise ControllerApiError."""

    def write(self, request: WriteRequest, caller: Caller) -> PendingAnswer[WriteReply]: ...

    def write_all(
        self, requests: Sequence[WriteRequest], caller: Caller
    ) -> Sequence[PendingAnswer[WriteReply]]:
        """Start writes in their order; each succeeds or fails independently."""
        ...

    async def read(
        self,
        request: ReadRequest,
        caller: Caller,
        *,
        min_offset: int,
        current: bool,
        timeout_ms: int,
        even_if_behind: bool,
    ) -> ReadReply: ...


class RaftHandler(Protocol):
    """Handles the requests of replicas; Fetch responses carry the bytes of the log."""

    def submit(self, request: m.Request) -> tuple[ReplyToken, PendingAnswer[m.Response]]: ...

    def caller_disconnected(self, token: ReplyToken) -> None:
        """Discard the response: its caller has disconnected."""
        ...
