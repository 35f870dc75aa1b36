"""Streams whose messages go to their handler by callback: no task, queue or future for each.

Those that are there together are handed over together. A handler that does one thing with all of
them, and then the next, finds the code and the data of each in the processor's caches.

The call around them is as any other: on a server it has a task, in which its interceptors and its
servicer run, and which waits for the end of all messages. A servicer that finds `HandsOver` among
what it was given may use it, and so may a client whose call is one; on another transport the same
taker is served by iterators (rpc/callback_adapter.py). A client's requests are its replies.
"""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Protocol

from quorate.h2 import grpc_framing
from quorate.h2.message_buffer import IN_A_TURN

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc

    from quorate.h2.fair_queue import Scheduler, Step
    from quorate.h2.message_buffer import Inbox

# Messages are handed over together up to the first that fills this.
RUN_BYTES: Final = 16 * 1024
# The assumed cost of a message before one was measured.
_MESSAGE_S: Final = 0.00002


class Door(Protocol):
    """What a taker says to its call."""

    def reply(self, message: Any) -> bool:  # noqa: ANN401 - a message of any service
        """Send a message. If there is no room for another yet, `Taker.drained` tells when."""
        ...

    def resume(self) -> None:
        """The taker takes more again."""
        ...

    def schedule(self, step: Step) -> None:
        """Run a step now, or when it is this call's turn."""
        ...

    def finish(self, error: BaseException | None = None) -> None:
        """All is replied that will be; an error is raised where the call's servicer waits."""
        ...


class Taker(Protocol):
    """The handler of one stream by callback. Nothing here waits, and all of it is called in turns
    of the loop; what is raised ends the call.
    """

    def begin(self, door: Door) -> None:
        """The stream has begun."""
        ...

    def room(self) -> int:
        """How many messages it takes now. Where that is none, `Door.resume` tells when it is."""
        ...

    def received(self, messages: list[Any]) -> None:
        """The next messages, one at least; all but the last together have less than RUN_BYTES.

        Raises ValueError for the first that is not what it should be; those before are taken.
        """
        ...

    def broken(self, error: ValueError) -> None:
        """The next message cannot be taken, and none behind it."""
        ...

    def half_closed(self) -> None:
        """There will be no more messages."""
        ...

    def drained(self) -> None:
        """There is room for replies again."""
        ...


class HandsOver(ABC):
    """The messages of a call, by callback for handlers that want it so."""

    __slots__ = ()

    @abstractmethod
    async def hand_to(self, taker: Taker) -> None:
        """Give the taker each message as it comes, until it has finished."""


class HandsOverSome(HandsOver):
    """Those of a server's call, which may be judged before."""

    __slots__ = ()

    @property
    @abstractmethod
    def has_message(self) -> bool:
        """Whether a whole message has come, so that nobody waits for it."""

    @abstractmethod
    def only_while(self, is_wanted: Callable[[Any], bool]) -> None:
        """End before the first message of which this is false."""


class HotCall(Protocol):
    """What a stream needs of its call."""

    def send(self, message: Any) -> bool: ...  # noqa: ANN401 - a message of any service

    def fail(self, code: grpc.StatusCode, words: str) -> None: ...


class HotStream:
    """The messages of one call on their way to a taker, a bounded number in each turn."""

    __slots__ = (
        "_call",
        "_decode",
        "_ended",
        "_inbox",
        "_is_blocked",
        "_is_due",
        "_is_taking",
        "_is_wanted",
        "_left",
        "_message_s",
        "_scheduler",
        "_taker",
    )

    def __init__(
        self,
        call: HotCall,
        scheduler: Scheduler,
        inbox: Inbox,
        taker: Taker,
        decode: Callable[[bytes], Any] | None,
        is_wanted: Callable[[Any], bool] | None,
    ) -> None:
        self._call = call
        self._scheduler = scheduler
        self._inbox = inbox
        self._taker = taker
        self._decode = decode
        self._is_wanted = is_wanted
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_taking = self._is_blocked = False
        # Whether messages will be taken in the next turn of the loop; how many more in this one.
        self._is_due = False
        self._left = 0
        # The time that one of the last messages took.
        self._message_s = _MESSAGE_S

    async def run(self) -> None:
        """Hand over until the taker has finished."""
        self._is_taking = True
        self._inbox.watch(self._news)
        try:
            self._taker.begin(self)
            self._news()
            await self._ended
        finally:
            self._is_taking = self._is_blocked = False
            self._inbox.watch(None)

    # --- in ---------------------------------------------------------------------------------------

    def _news(self) -> None:
        """Take what has come, in the next turn: by then all is there that comes together."""
        if self._is_taking and not self._is_due:
            self._is_due = True
            self._scheduler.submit(self._turn)

    def _turn(self, until_s: float) -> bool:
        """Take as much as one turn and the taker let it; whether more can be taken."""
        self._is_due = False
        if not self._is_taking:
            return False
        self._left = IN_A_TURN
        is_late = False
        try:
            is_late = self._take(until_s)
        except ValueError as error:
            self._is_taking = False
            self._taker.broken(error)
        except grpc_framing.OversizedError as error:
            self._is_taking = False
            self._call.fail(error.code, str(error))
            self.finish()
        except Exception as error:
            self.finish(error)
        finally:
            self._inbox.settle()
        self._is_due = self._is_taking and (is_late or not self._left)
        return self._is_due

    def _take(self, until_s: float) -> bool:
        """True if it ended because of the time."""
        taker, inbox = self._taker, self._inbox
        begun_s = time.perf_counter()
        while self._left and (room := taker.room()):
            messages: list[Any] = []
            try:
                is_over = self._take_run(messages, self._run_max(room, until_s - begun_s))
            finally:
                # Those before one that cannot be taken.
                if messages:
                    taker.received(messages)
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
        """The number of messages that the next run may have to end in time."""
        count = min(room, self._left)
        if left_s < math.inf:
            count = min(count, int(left_s / self._message_s))
        return max(count, 1)

    def _take_run(self, messages: list[Any], count: int) -> bool:
        """Take so many at most; whether there will be no more that are wanted."""
        inbox, decode, is_wanted = self._inbox, self._decode, self._is_wanted
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
        self._taker.half_closed()

    # --- what the taker says ----------------------------------------------------------------------

    def reply(self, message: Any) -> bool:  # noqa: ANN401 - a message of any service
        has_room = self._call.send(message)
        self._is_blocked = not has_room
        return has_room

    def resume(self) -> None:
        self._news()

    def schedule(self, step: Step) -> None:
        self._scheduler.run(step)

    def finish(self, error: BaseException | None = None) -> None:
        # A loop in the middle of taking stops at that, too.
        self._is_taking, self._left = False, 0
        if self._ended.done():
            return
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)

    def drained(self) -> None:
        """What waited for room has left."""
        if self._is_blocked:
            self._is_blocked = False
            self._taker.drained()
