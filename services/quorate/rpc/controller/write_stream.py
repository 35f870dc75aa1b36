"""Server side of one WriteStream: decided and acknowledged in order (rule `stream_responses`).

Heartbeats may be decided before earlier requests (server/metadata/decision_queue.py).

Writes that complete together are acknowledged together: only the first pending reply is watched.
When it completes, the completed replies that follow it are sent in the same message.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quorate.rpc.controller.write_window import WriteWindow
from quorate.rpc.convert import controller as convert
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.time_slicer import serving_pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from google.protobuf.message import Message

    from quorate.api.handlers import PendingAnswer
    from quorate.controller.request_types import WriteReply, WriteRequest
    from quorate.h2.callback_stream import StreamWriter
    from quorate.rpc.controller.write_window import SharedWriteBudget

ACKNOWLEDGED_TOGETHER_MAX: Final = 1024
# Bytes of a request that is converted without yielding: a few milliseconds, with the maximum of
# items.
CONVERTED_AT_ONCE_BYTES: Final = 16 * 1024
# A request and its size in bytes.
_Message: TypeAlias = "tuple[pb.WriteRequest, int]"
# The write's sequence, its reply, and the size of its request in bytes.
_Waiting: TypeAlias = "tuple[int, PendingAnswer[WriteReply], int]"


class WriteStream:
    """The handler of one stream's requests, each with its size."""

    def __init__(
        self,
        write: Callable[[Sequence[WriteRequest]], Iterable[PendingAnswer[WriteReply]]],
        put_result: Callable[[pb.WriteResult, PendingAnswer[WriteReply]], None],
        budget: SharedWriteBudget,
    ) -> None:
        """`write` begins writes, `put_result` reports the result of a completed one."""
        self._write = write
        self._put_result = put_result
        self._window = WriteWindow(budget)
        self._waiting: deque[_Waiting] = deque()
        self._watched: PendingAnswer[WriteReply] | None = None
        self._stream_writer: StreamWriter | None = None
        self._converting: asyncio.Task[None] | None = None
        # Writes and bytes of the acknowledgement that waits for space.
        self._unsent: tuple[int, int] | None = None
        self._has_all = False
        # The reason why a request could not be read; no request after it is processed.
        self.refused: str | None = None

    # --- in ---------------------------------------------------------------------------------------

    def begin(self, stream_writer: StreamWriter) -> None:
        self._stream_writer = stream_writer

    def capacity(self) -> int:
        if self._converting is not None or self._has_all:
            return 0
        room = self._window.capacity
        if not room:
            self._window.wait(self._resume)
        return room

    def _resume(self) -> None:
        if self._stream_writer is not None:
            self._stream_writer.resume()

    def on_messages(self, messages: list[_Message]) -> None:
        self._window.acquire(len(messages), sum(size for _, size in messages))
        last, size = messages[-1]
        is_large = size > CONVERTED_AT_ONCE_BYTES
        if is_large:
            messages.pop()
        writes: list[WriteRequest] = []
        try:
            for request, _ in messages:
                writes.append(convert.request_in(request, "request"))
        finally:
            # Requests before an unreadable one are processed.
            self._begin_writes(messages, writes)
        if is_large:
            self._converting = asyncio.get_running_loop().create_task(self._convert(last, size))

    def _begin_writes(self, messages: Iterable[_Message], writes: Sequence[WriteRequest]) -> None:
        replies = self._write(writes)
        self._waiting.extend(
            (request.sequence, reply, size)
            for (request, size), reply in zip(messages, replies, strict=False)
        )
        if self._watched is None:
            self._watch()

    async def _convert(self, request: pb.WriteRequest, size: int) -> None:
        """Convert a large request in time slices; later requests wait for it."""
        try:
            self._begin_writes([(request, size)], [await converted(request, size)])
        except ValueError as error:
            self.on_invalid_message(error)
        except Exception as error:
            self._finish(error)
        finally:
            self._converting = None
        self._resume()
        self._finish_when_done()

    def on_invalid_message(self, error: ValueError) -> None:
        self.refused = str(error)
        self.on_half_close()

    def on_half_close(self) -> None:
        self._has_all = True
        self._finish_when_done()

    # --- out --------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Watch the first pending reply, unless an acknowledgement waits for space."""
        if self._waiting and self._unsent is None:
            self._watched = self._waiting[0][1]
            self._watched.add_done_callback(self._replied)

    def _replied(self, _: object) -> None:
        self._watched = None
        door = self._stream_writer
        if door is None:
            return
        try:
            self._acknowledge(door)
        except (Exception, asyncio.CancelledError) as error:
            # A reply that is cancelled would leave its client waiting forever.
            door.finish(error)

    def _acknowledge(self, stream_writer: StreamWriter) -> None:
        waiting = self._waiting
        while waiting and self._unsent is None and waiting[0][1].done():
            response = pb.WriteResponse(first_sequence=waiting[0][0])
            sequence = count = total = 0
            while waiting and count < ACKNOWLEDGED_TOGETHER_MAX and waiting[0][1].done():
                sequence, reply, size = waiting.popleft()
                self._put_result(response.results.add(), reply)
                count += 1
                total += size
            response.last_sequence = sequence
            self._unsent = (count, total)
            if stream_writer.reply(response):
                self._give_back()
        self._watch()
        self._finish_when_done()

    def _give_back(self) -> None:
        if self._unsent is not None:
            unsent, self._unsent = self._unsent, None
            self._window.release(*unsent)

    def on_writable(self) -> None:
        self._give_back()
        if self._watched is None:
            self._watch()
        self._finish_when_done()

    def _finish_when_done(self) -> None:
        is_done = self._has_all and not self._waiting and self._unsent is None
        if is_done and self._converting is None:
            self._finish(None)

    def _finish(self, error: Exception | None) -> None:
        if self._stream_writer is not None:
            self._stream_writer.finish(error)

    def close(self) -> None:
        """Release everything: the stream has ended."""
        self._stream_writer = self._watched = None
        if self._converting is not None:
            self._converting.cancel()
        self._window.close()
        # No caller retrieves these replies; a rejection among them is not an error.
        for _, reply, _ in self._waiting:
            reply.cancel()
        self._waiting.clear()


async def converted(request: pb.WriteRequest, size: int) -> WriteRequest:
    """Convert the write in a request of that size. Raises ValueError that names the field."""
    if size <= CONVERTED_AT_ONCE_BYTES:
        at_once: WriteRequest = convert.request_in(request, "request")
        return at_once
    write: WriteRequest = await serving_pace().run(convert.chosen_in_slices(request, "request"))
    return write


async def read_message(message: Message, size: int) -> Any:  # noqa: ANN401 - of any request
    """Convert a message of that size. Raises ValueError that names the field."""
    if size <= CONVERTED_AT_ONCE_BYTES:
        return convert.from_message(message)
    return await serving_pace().run(convert.from_message_in_slices(message))
