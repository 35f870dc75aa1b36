"""Server side of one Fetch stream: requests answered once and in order (rule 20).

Requests are submitted as they arrive, so that a second one completes the first.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import grpc

from quorate.raft import messages as m
from quorate.records.value_types import value_type
from quorate.rpc.convert import raft as convert

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.api.handlers import PendingAnswer
    from quorate.h2.callback_stream import Door
    from quorate.records.ids import ReplyToken
    from quorate.rpc.gen.raft.v1 import raft_pb2 as pb

# The request that is parked and the one that completes it; each response may be large.
REQUESTS_PER_STREAM_MAX: Final = 2
_Waiting: TypeAlias = "tuple[ReplyToken, PendingAnswer[m.Response]]"


@value_type
class Refused:
    """The status of a stream that ends before its replica has closed it."""

    code: grpc.StatusCode
    details: str


SUPERSEDED: Final = Refused(
    grpc.StatusCode.ABORTED, "a newer Fetch stream of this replica has taken the place of this one"
)
GIVEN_UP: Final = Refused(
    grpc.StatusCode.UNAVAILABLE,
    "this controller cannot answer now: it stops, or its disk does not answer",
)


class FetchStream:
    """The handler of one stream's requests."""

    def __init__(
        self,
        submit: Callable[[m.FetchRequest, FetchStream], _Waiting],
        gone: Callable[[ReplyToken], None],
    ) -> None:
        """Call `gone` for each request that needs no response any more."""
        self._submit = submit
        self._gone = gone
        self._waiting: deque[_Waiting] = deque()
        self._door: Door | None = None
        self._is_blocked = False
        self._has_all = False
        self.refused: Refused | None = None

    # --- in ---------------------------------------------------------------------------------------

    def begin(self, door: Door) -> None:
        self._door = door
        self._watch()
        self._finish_when_done()

    def room(self) -> int:
        return 0 if self._has_all else max(0, REQUESTS_PER_STREAM_MAX - len(self._waiting))

    def received(self, messages: list[pb.FetchRequest]) -> None:
        for message in messages:
            # The first message may have ended the stream.
            if not self._has_all:
                self.submit(convert.fetch_request(message))

    def submit(self, request: m.FetchRequest) -> None:
        """Submit one request, which may arrive before the stream has begun."""
        self._waiting.append(self._submit(request, self))
        if self._door is not None and len(self._waiting) == 1:
            self._watch()

    def broken(self, error: ValueError) -> None:
        self._end(Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)))

    def supersede(self) -> None:
        """End the stream for a newer one: submitted requests are answered, further ones are not."""
        self._end(SUPERSEDED)

    def _end(self, refused: Refused) -> None:
        if not self._has_all:
            self.refused = refused
            self.half_closed()

    def half_closed(self) -> None:
        self._has_all = True
        self._finish_when_done()

    # --- out --------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Watch the first pending response, unless the last one waits for space."""
        if self._waiting and not self._is_blocked:
            self._waiting[0][1].add_done_callback(self._answered)

    def _answered(self, answer: PendingAnswer[m.Response]) -> None:
        """Schedule the response in turn: one commit completes a thousand parked fetches."""
        if self._door is not None:
            self._door.schedule(partial(self._reply, answer))

    def _reply(self, answer: PendingAnswer[m.Response], _: float) -> bool:
        door = self._door
        if door is not None:
            self._reply_on(door, answer)
        return False

    def _reply_on(self, door: Door, answer: PendingAnswer[m.Response]) -> None:
        if answer.cancelled():
            self._has_all, self.refused = True, GIVEN_UP
            door.finish()
            return
        was_full = len(self._waiting) == REQUESTS_PER_STREAM_MAX
        self._waiting.popleft()
        try:
            self._is_blocked = not door.reply(_message_of(answer.result()))
        except Exception as error:
            door.finish(error)
            return
        self._watch()
        if was_full and not self._has_all:
            door.resume()
        self._finish_when_done()

    def drained(self) -> None:
        self._is_blocked = False
        self._watch()
        self._finish_when_done()

    def _finish_when_done(self) -> None:
        if self._has_all and not self._waiting and not self._is_blocked and self._door is not None:
            self._door.finish()

    def close(self) -> None:
        """Report all pending requests as gone: the stream has ended."""
        self._door = None
        for token, _ in self._waiting:
            self._gone(token)
        self._waiting.clear()


def _message_of(answer: m.Response) -> pb.FetchResponse:
    assert isinstance(answer, m.FetchResponse)
    return convert.pb_fetch_response(answer)
