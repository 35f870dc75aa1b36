"""Runs disk calls in threads and tracks how long each has been in flight.

See rule `disk_call_deadline`. A stalled disk blocks the thread that called it, and nothing in this
process can end that call. So the event loop makes no disk call that could block it without limit.
The threads are daemons: a process whose disk is stalled can still exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
import weakref
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


@value_type
class InFlightCall:
    """A call that has not returned yet; its age includes the time queued behind other calls."""

    what: str
    age_s: float


class DiskCallTracker:
    """All disk calls in flight of one process. Callable from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._numbers = itertools.count()
        self._begun: dict[int, tuple[str, float]] = {}

    def begin(self, what: str) -> int:
        """Note the start of a call; return its number for `end`."""
        number = next(self._numbers)
        self._begun[number] = (what, self._clock())
        return number

    def end(self, number: int) -> None:
        """Note that a call has returned or failed."""
        self._begun.pop(number, None)

    def oldest(self) -> InFlightCall | None:
        """The call that has been in flight for longest; None if there are none."""
        begun = self._begun.copy()
        if not begun:
            return None
        what, since = begun[min(begun)]
        return InFlightCall(what, max(0.0, self._clock() - since))

    def overdue(self, limit_ms: int) -> InFlightCall | None:
        """The oldest call if it has been in flight for `limit_ms` or longer, otherwise None."""
        oldest = self.oldest()
        return oldest if oldest is not None and oldest.age_s * 1000 >= limit_ms else None


class DiskExecutor(Protocol):
    """Calls that are made one at a time, in the order of `run`."""

    def run(self, what: str, work: Callable[[], T], *, wait_s: float = 0.0) -> asyncio.Future[T]:
        """Run `work` in parallel with the loop.

        With `wait_s` the loop is blocked for that long at most: a call that returns by then costs
        one thread switch, not two event-loop iterations.
        """
        ...

    def close(self) -> None:
        """Accept no more calls; queued ones are still made."""
        ...


class _Job(Generic[T]):
    """One queued call; its outcome is set on the loop, once."""

    def __init__(
        self, number: int, work: Callable[[], T], loop: asyncio.AbstractEventLoop, *, waits: bool
    ) -> None:
        self.number = number
        self.future: asyncio.Future[T] = loop.create_future()
        self._loop = loop
        self._work = work
        self._outcome: tuple[T | None, BaseException | None] = (None, None)
        # Held until the work has ended, for a caller that waits in place.
        self._over = threading.Lock()
        self._over.acquire()
        self._state = threading.Lock()
        self._is_over = False
        self._waits = waits

    def run(self, calls: DiskCallTracker) -> None:
        """Do the work; called in the thread."""
        try:
            self._outcome = (self._work(), None)
        except BaseException as error:
            self._outcome = (None, error)
        calls.end(self.number)
        with self._state:
            self._is_over = True
            waits = self._waits
        if waits:
            self._over.release()
        else:
            # A loop that has ended waits for no outcome.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._tell)

    def wait(self, limit_s: float) -> None:
        """Block the loop until the work has ended, at most for `limit_s`."""
        if not self._over.acquire(timeout=limit_s):
            with self._state:
                self._waits = False
                if not self._is_over:
                    return
        self._tell()

    def _tell(self) -> None:
        if self.future.done():
            return
        result, error = self._outcome
        if error is None:
            self.future.set_result(result)  # type: ignore[arg-type]
        else:
            self.future.set_exception(error)


class ThreadDiskExecutor:
    """One thread; its calls are made in the order of `run`."""

    def __init__(self, name: str, calls: DiskCallTracker) -> None:
        """Start the thread. Raises RuntimeError if the system has no more threads."""
        self._calls = calls
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        threading.Thread(target=_work_off, args=(self._jobs, calls), name=name, daemon=True).start()
        # An owner whose construction fails leaves no thread behind.
        weakref.finalize(self, self._jobs.put, None)

    def run(self, what: str, work: Callable[[], T], *, wait_s: float = 0.0) -> asyncio.Future[T]:
        """Run `work` in the thread, as `DiskExecutor.run` describes."""
        loop = asyncio.get_running_loop()
        job = _Job(self._calls.begin(what), work, loop, waits=wait_s > 0)
        self._jobs.put(job)
        if wait_s > 0:
            job.wait(wait_s)
        return job.future

    def close(self) -> None:
        """End the thread after the queued calls."""
        self._jobs.put(None)


def _work_off(jobs: SimpleQueue[_Job[Any] | None], calls: DiskCallTracker) -> None:
    while (job := jobs.get()) is not None:
        job.run(calls)
        del job
