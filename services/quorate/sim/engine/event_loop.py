"""asyncio event loop on simulated time: production's tasks, timers and futures run on it.

It has no selector, no threads and no clock of its own. An iteration runs the ready callbacks, in
the order in which they became ready; callbacks that these make ready run in the next iteration, a
few microseconds later. If none is ready, simulated time advances until a timer is due, or a message
or a disk requests an iteration from outside. The same calls give the same order in any process.

The base class rejects all other features of an event loop (sockets, signals, processes, threads):
they must not be used in a simulation.
"""

from __future__ import annotations

import asyncio
import heapq
import warnings
from asyncio.events import _get_running_loop, _set_running_loop
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from contextvars import Context
    from typing import Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MILLION: Final = 1_000_000
# Microseconds from the end of one iteration to the next if a callback is ready.
TURN_US: Final = 10
# A process that has had a ready callback in this many iterations in a row never rests.
TURNS_WITHOUT_REST_MAX: Final = 20_000
# At this number of tasks, completed ones are forgotten.
TASKS_MIN: Final = 32


class Timeline(Protocol):
    """The clock of a loop's machine, in microseconds; it may run fast or slow."""

    @property
    def now_us(self) -> int: ...

    def at(self, when_us: int, action: Callable[[], None]) -> None:
        """Schedule `action` at that time."""
        ...


class SimulatedLoop(asyncio.AbstractEventLoop):
    """The loop of one process. Once closed, as by a kill, it silently runs nothing."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._alarm_us: int | None = None
        # The CPU time that callbacks have used, and the time until which they are using it.
        self.worked_us = self._busy_until_us = 0
        # The times for which the timeline has an entry, of the next iteration and later ones.
        self._entries: set[int] = set()
        self._is_in_turn = self._is_paused = self._is_closed = False
        self._error: BaseException | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_max = TASKS_MIN
        self._turns_without_rest = 0

    # --- iterations -------------------------------------------------------------------------------

    def run(self, callback: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        """Run a callback from outside in an iteration, immediately unless the process is paused."""
        self.call_soon(callback, *args)
        self.turn()

    def turn(self) -> None:
        """Run the callbacks that are ready or due, once. Raises the error of a callback."""
        if self._is_closed or self._is_paused or self._is_in_turn:
            return
        now_us = self._timeline.now_us
        if now_us < self._busy_until_us:
            self._ask_for_turn()
            return
        self._count_turns()
        while self._timers and self._timers[0][0] <= now_us:
            self._ready.append(heapq.heappop(self._timers)[2])
        outer = _get_running_loop()
        _set_running_loop(self)
        self._is_in_turn = True
        try:
            for _ in range(len(self._ready)):
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
                if self._error is not None:
                    error, self._error = self._error, None
                    raise error
                if self._is_closed:
                    return
        finally:
            self._is_in_turn = False
            _set_running_loop(outer)
        self._ask_for_turn()

    def _count_turns(self) -> None:
        self._turns_without_rest = self._turns_without_rest + 1 if self._ready else 0
        if self._turns_without_rest > TURNS_WITHOUT_REST_MAX:
            raise RuntimeError("a process never rests: something is ready in each turn")

    def _ask_for_turn(self) -> None:
        """Schedule the next iteration, unless the timeline has an entry that is early enough."""
        if self._is_in_turn or self._is_paused or self._is_closed:
            return
        if self._ready:
            when_us = self._timeline.now_us + TURN_US
        else:
            while self._timers and self._timers[0][2].cancelled():
                heapq.heappop(self._timers)
            if not self._timers:
                return
            when_us = max(self._timers[0][0], self._timeline.now_us)
        when_us = max(when_us, self._busy_until_us)
        if self._alarm_us is None or when_us < self._alarm_us:
            self._alarm_us = when_us
            if when_us not in self._entries:
                self._entries.add(when_us)
                self._timeline.at(when_us, partial(self._ring, when_us))

    def _ring(self, when_us: int) -> None:
        self._entries.discard(when_us)
        if when_us == self._alarm_us:
            self._alarm_us = None
            self.turn()

    def work(self, for_us: int) -> None:
        """Let the current callback use `for_us` of CPU time: no iteration runs before its end."""
        self.worked_us += for_us
        self._busy_until_us = max(self._busy_until_us, self._timeline.now_us) + for_us

    def pause(self) -> None:
        """Run no iteration until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        """Resume; callbacks that became due during the pause are due now."""
        self._is_paused, self._alarm_us = False, None
        self.turn()

    def fail(self, error: BaseException) -> None:
        """End the iteration with this error, even if the callback suppresses it."""
        if not self._is_closed and self._error is None:
            self._error = error

    def close(self) -> None:
        """End the loop with its process."""
        self._is_closed = True
        self._ready.clear()
        self._timers.clear()
        # Close coroutines now, and not when their memory is reclaimed. Some hold coroutines that
        # never started.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for task in self._tasks:
                with suppress(ValueError):  # the one that runs just now
                    task.get_coro().close()
            self._tasks.clear()

    # --- what asyncio asks of a loop --------------------------------------------------------------

    def time(self) -> float:
        return self._timeline.now_us / MILLION

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self._is_closed:
            self._ready.append(handle)
            self._ask_for_turn()
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        # As on any running clock, a wait shorter than its resolution still takes time.
        delay_us = max(1, round(delay * MILLION)) if delay > 0 else 0
        when_us = self._timeline.now_us + delay_us
        return self._at(
            when_us, asyncio.TimerHandle(when_us / MILLION, callback, args, self, context)
        )

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        return self._at(round(when * MILLION), timer)

    def _at(self, when_us: int, timer: asyncio.TimerHandle) -> asyncio.TimerHandle:
        if not self._is_closed:
            self._count += 1
            heapq.heappush(self._timers, (when_us, self._count, timer))
            self._ask_for_turn()
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Keep the entry until its time has come; it is skipped then."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        if len(self._tasks) >= self._tasks_max:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks_max = max(TASKS_MIN, 2 * len(self._tasks))
        self._tasks.append(task)
        return task

    def is_running(self) -> bool:
        return self._is_in_turn

    def is_closed(self) -> bool:
        return self._is_closed

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Fail with the error of a callback, which ends the iteration; ignore reports on tasks."""
        if "handle" in context:
            self.fail(context["exception"])
