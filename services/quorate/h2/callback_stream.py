"""Streams whose messages are passed to a handler by callback, in batches, without tasks.

No message needs a task, queue or future. Messages that are present together are passed together: a
handler that processes all of them in a loop finds code and data of each in the processor's caches.

The call around them is like any other: on a server it has a task, in which its interceptors and its
servicer run, and which waits for the end of all messages. A servicer whose requests are a
`CallbackStream` may use it, and so may a client whose call is one; on another transport iterators
serve the same handler (rpc/callback_adapter.py). For the handler of a client's call, requests are
its replies.
"""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Protocol

from quorate.h2 import grpc_framing
from quorate.h2.message_buffer import MESSAGES_PER_ITERATION

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc

    from quorate.h2.fair_queue import Scheduler, Step
    from quorate.h2.message_buffer import MessageBuffer

# Bytes: messages are passed together up to the first that reaches this total.
RUN_BYTES: Final = 16 * 1024
# Seconds: the assumed cost of a message before one was measured.
_MESSAGE_S: Final = 0.00002


class StreamWriter(Protocol):
    """The stream writer: what a handler may call on its stream."""

    def reply(self, message: Any) -> bool:  # noqa: ANN401 - a message of any service
        """Send a message. False if no space is left: `StreamHandler.on_writable` follows."""
        ...

    def resume(self) -> None:
        """Resume: the handler accepts messages again."""
        ...

    def schedule(self, step: Step) -> None:
        """Run a step now, or when it is this call's turn."""
        ...

    def finish(self, error: BaseException | None = None) -> None:
        """End the replies; an error is raised where the call's servicer waits."""
        ...


class StreamHandler(Protocol):
    """The handler of one stream by callback.

    No method waits, and all are called on the event loop; an exception ends the call.
    """

    def begin(self, stream_writer: StreamWriter) -> None:
        """The stream has begun."""
        ...

    def capacity(self) -> int:
        """The number of messages that it accepts now. After 0, `Door.resume` announces more."""
        ...

    def on_messages(self, messages: list[Any]) -> None:
        """Take the next messages, at least one; all but the last have less than RUN_BYTES in total.

        Raises ValueError for the first invalid message; those before it are processed.
        """
        ...

    def on_invalid_message(self, error: ValueError) -> None:
        """Note that the next message is invalid, so that it and later ones are not processed."""
        ...

    def on_half_close(self) -> None:
        """Note that no more messages will come."""
        ...

    def on_writable(self) -> None:
        """Note that there is space for replies again."""
        ...


class CallbackStream(ABC):
    """The messages of a call, by callback for handlers that support it."""

    __slots__ = ()

    @abstractmethod
    async def deliver_to(self, stream_handler: StreamHandler) -> None:
        """Pass each message to the handler as it arrives, until the handler has finished."""


class FilterableCallbackStream(CallbackStream):
    """The messages of a server's call, which may be authorized first."""

    __slots__ = ()

    @property
    @abstractmethod
    def has_message(self) -> bool:
        """True if a complete message has arrived, so that receiving it does not wait."""

    @abstractmethod
    def stop_unless(self, is_wanted: Callable[[Any], bool]) -> None:
        """End before the first message for which `is_wanted` is false."""


class StreamCall(Protocol):
    """The part of a call that its stream uses."""

    def send(self, message: Any) -> bool: ...  # noqa: ANN401 - a message of any service

    def fail(self, code: grpc.StatusCode, words: str) -> None: ...


class CallbackDispatcher:
    """The messages of one call in transit to a handler, a bounded number per turn."""

    __slots__ = (
        "_call",
        "_decode",
        "_ended",
        "_is_blocked",
        "_is_due",
        "_is_taking",
        "_is_wanted",
        "_left",
        "_message_buffer",
        "_message_s",
        "_scheduler",
        "_stream_handler",
    )

    def __init__(
        self,
        call: StreamCall,
        scheduler: Scheduler,
        message_buffer: MessageBuffer,
        stream_handler: StreamHandler,
        decode: Callable[[bytes], Any] | None,
        is_wanted: Callable[[Any], bool] | None,
    ) -> None:
        self._call = call
        self._scheduler = scheduler
        self._message_buffer = message_buffer
        self._stream_handler = stream_handler
        self._decode = decode
        self._is_wanted = is_wanted
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_taking = self._is_blocked = False
        # Whether a turn is scheduled, and how many more messages the current turn may take.
        self._is_due = False
        self._left = 0
        # Seconds that one of the last messages took.
        self._message_s = _MESSAGE_S

    async def run(self) -> None:
        """Pass messages until the handler has finished."""
        self._is_taking = True
        self._message_buffer.set_listener(self._news)
        try:
            self._stream_handler.begin(self)
            self._news()
            await self._ended
        finally:
            self._is_taking = self._is_blocked = False
            self._message_buffer.set_listener(None)

    # --- in ---------------------------------------------------------------------------------------

    def _news(self) -> None:
        """Schedule a turn: by then all messages that arrive together are present."""
        if self._is_taking and not self._is_due:
            self._is_due = True
            self._scheduler.submit(self._turn)

    def _turn(self, until_s: float) -> bool:
        """Take as much as the turn and the handler allow; return whether more can be taken."""
        self._is_due = False
        if not self._is_taking:
            return False
        self._left = MESSAGES_PER_ITERATION
        is_late = False
        try:
            is_late = self._take(until_s)
        except ValueError as error:
            self._is_taking = False
            self._stream_handler.on_invalid_message(error)
        except grpc_framing.OversizedError as error:
            self._is_taking = False
            self._call.fail(error.code, str(error))
            self.finish()
        except Exception as error:
            self.finish(error)
        finally:
            self._message_buffer.update_window()
        self._is_due = self._is_taking and (is_late or not self._left)
        return self._is_due

    def _take(self, until_s: float) -> bool:
        """Take messages; True if the time has ended it."""
        taker, inbox = self._stream_handler, self._message_buffer
        begun_s = time.perf_counter()
        while self._left and (room := taker.capacity()):
            messages: list[Any] = []
            try:
                is_over = self._take_run(messages, self._run_max(room, until_s - begun_s))
            finally:
                # Messages before an invalid one are passed on.
                if messages:
                    taker.on_messages(messages)
            if is_over:
                self._half_close()
                return False
            if not messages or inbox.is_empty:
                return False
            now_s = time.perf_counter()
            self._message_s = (now_s - begun_s) / len(messages)
            if now_s >= until_s:
                return True
            begun_s = now_s
        return False

    def _run_max(self, room: int, left_s: float) -> int:
        """Return the number of messages that the next run may have to end in time."""
        count = min(room, self._left)
        if left_s < math.inf:
            count = min(count, int(left_s / self._message_s))
        return max(count, 1)

    def _take_run(self, messages: list[Any], count: int) -> bool:
        """Take up to `count` messages; return whether no more wanted ones will come."""
        inbox, decode, is_wanted = self._message_buffer, self._decode, self._is_wanted
        size = 0
        while len(messages) < count and size < RUN_BYTES:
            data = inbox.take()
            if data is None:
                return inbox.has_ended
            self._left -= 1
            size += len(data)
            message = data if decode is None else decode(data)
            if is_wanted is not None and not is_wanted(message):
                return True
            messages.append(message)
        return False

    def _half_close(self) -> None:
        self._is_taking = False
        self._stream_handler.on_half_close()

    # --- called by the handler --------------------------------------------------------------------

    def reply(self, message: Any) -> bool:  # noqa: ANN401 - a message of any service
        has_room = self._call.send(message)
        self._is_blocked = not has_room
        return has_room

    def resume(self) -> None:
        self._news()

    def schedule(self, step: Step) -> None:
        self._scheduler.run(step)

    def finish(self, error: BaseException | None = None) -> None:
        # A loop that is taking messages stops at this, too.
        self._is_taking, self._left = False, 0
        if self._ended.done():
            return
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)

    def on_writable(self) -> None:
        """Notify the handler that waited for space."""
        if self._is_blocked:
            self._is_blocked = False
            self._stream_handler.on_writable()
