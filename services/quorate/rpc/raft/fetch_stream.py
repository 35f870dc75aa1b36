"""Server side of one Fetch stream: requests answered once and in order (rule `stream_responses`).

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
    from quorate.h2.callback_stream import StreamWriter
    from quorate.records.ids import ReplyToken
    from quorate.rpc.gen.raft.v1 import raft_pb2 as pb

# Two: the request that is parked, and a later one that completes it. Each response may be large.
REQUESTS_PER_STREAM_MAX: Final = 2
_Waiting: TypeAlias = "tuple[ReplyToken, PendingAnswer[m.Response]]"


@value_type
class StreamRejection:
    """The status of a stream that ends before its replica has closed it."""

    code: grpc.StatusCode
    details: str


SUPERSEDED: Final = StreamRejection(
    grpc.StatusCode.ABORTED, "a newer Fetch stream of this replica has taken the place of this one"
)
CONTROLLER_UNAVAILABLE: Final = StreamRejection(
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
        self._stream_writer: StreamWriter | None = None
        self._is_blocked = False
        self._has_all = False
        self.stream_rejection: StreamRejection | None = None

    # --- in ---------------------------------------------------------------------------------------

    def begin(self, stream_writer: StreamWriter) -> None:
        self._stream_writer = stream_writer
        self._watch()
        self._finish_when_done()

    def capacity(self) -> int:
        return 0 if self._has_all else max(0, REQUESTS_PER_STREAM_MAX - len(self._waiting))

    def on_messages(self, messages: list[pb.FetchRequest]) -> None:
        for message in messages:
            # The first message may have ended the stream.
            if not self._has_all:
                self.submit(convert.fetch_request(message))

    def submit(self, request: m.FetchRequest) -> None:
        """Submit one request, which may arrive before the stream has begun."""
        self._waiting.append(self._submit(request, self))
        if self._stream_writer is not None and len(self._waiting) == 1:
            self._watch()

    def on_invalid_message(self, error: ValueError) -> None:
        self._end(StreamRejection(grpc.StatusCode.INVALID_ARGUMENT, str(error)))

    def supersede(self) -> None:
        """End the stream for a newer one: submitted requests are answered, further ones are not."""
        self._end(SUPERSEDED)

    def _end(self, stream_rejection: StreamRejection) -> None:
        if not self._has_all:
            self.stream_rejection = stream_rejection
            self.on_half_close()

    def on_half_close(self) -> None:
        self._has_all = True
        self._finish_when_done()

    # --- out --------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Watch the first pending response, unless the last one waits for space."""
        if self._waiting and not self._is_blocked:
            self._waiting[0][1].add_done_callback(self._answered)

    def _answered(self, answer: PendingAnswer[m.Response]) -> None:
        """Schedule the response in turn: one commit completes a thousand parked fetches."""
        if self._stream_writer is not None:
            self._stream_writer.schedule(partial(self._reply, answer))

    def _reply(self, answer: PendingAnswer[m.Response], _: float) -> bool:
        door = self._stream_writer
        if door is not None:
            self._reply_on(door, answer)
        return False

    def _reply_on(self, stream_writer: StreamWriter, answer: PendingAnswer[m.Response]) -> None:
        if answer.cancelled():
            self._has_all, self.stream_rejection = True, CONTROLLER_UNAVAILABLE
            stream_writer.finish()
            return
        was_full = len(self._waiting) == REQUESTS_PER_STREAM_MAX
        self._waiting.popleft()
        try:
            self._is_blocked = not stream_writer.reply(_message_of(answer.result()))
        except Exception as error:
            stream_writer.finish(error)
            return
        self._watch()
        if was_full and not self._has_all:
            stream_writer.resume()
        self._finish_when_done()

    def on_writable(self) -> None:
        self._is_blocked = False
        self._watch()
        self._finish_when_done()

    def _finish_when_done(self) -> None:
        if (
            self._has_all
            and not self._waiting
            and not self._is_blocked
            and self._stream_writer is not None
        ):
            self._stream_writer.finish()

    def close(self) -> None:
        """Report all pending requests as gone: the stream has ended."""
        self._stream_writer = None
        for token, _ in self._waiting:
            self._gone(token)
        self._waiting.clear()


def _message_of(answer: m.Response) -> pb.FetchResponse:
    assert isinstance(answer, m.FetchResponse)
    return convert.pb_fetch_response(answer)
