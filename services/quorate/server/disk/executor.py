"""Calls to the disk in threads of their own, and for how long those under way have been (rule 24).

A disk that hangs holds the thread that called it, and nothing that can be done in this process ends
that call. So the event loop calls no disk whose answer it would have to wait for without an end,
and the threads are daemons: a process whose disk hangs can still end.
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

from quorate.records.value_types import value

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


@value
class UnderWay:
    """A call that has not returned yet, the time behind others in its thread included."""

    what: str
    age_s: float


class DiskCalls:
    """All calls under way of one process. Any thread may ask."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._numbers = itertools.count()
        self._begun: dict[int, tuple[str, float]] = {}

    def begin(self, what: str) -> int:
        """A call begins; `end` takes the number."""
        number = next(self._numbers)
        self._begun[number] = (what, self._clock())
        return number

    def end(self, number: int) -> None:
        """It has returned, or failed."""
        self._begun.pop(number, None)

    def oldest(self) -> UnderWay | None:
        """The call that has been under way for longest; None where there is none."""
        begun = self._begun.copy()
        if not begun:
            return None
        what, since = begun[min(begun)]
        return UnderWay(what, max(0.0, self._clock() - since))

    def late(self, limit_ms: int) -> UnderWay | None:
        """The oldest call, when it has been under way for longer than that."""
        oldest = self.oldest()
        return oldest if oldest is not None and oldest.age_s * 1000 >= limit_ms else None


class DiskQueue(Protocol):
    """Calls that are made one after the other, in the order in which they were asked for."""

    def run(self, what: str, work: Callable[[], T], *, wait_s: float = 0.0) -> asyncio.Future[T]:
        """Do `work` beside the loop, which stands still for `wait_s` at most, when that is given:

        a call that is over by then costs one change of threads, not two turns of the loop.
        """
        ...

    def close(self) -> None:
        """Nothing is asked for any more; what was is still done."""
        ...


class _Job(Generic[T]):
    """One piece of work; what came of it is told on the loop, once."""

    def __init__(
        self, number: int, work: Callable[[], T], loop: asyncio.AbstractEventLoop, *, waits: bool
    ) -> None:
        self.number = number
        self.future: asyncio.Future[T] = loop.create_future()
        self._loop = loop
        self._work = work
        self._outcome: tuple[T | None, BaseException | None] = (None, None)
        # Held until the work is over, by the caller that waits for it in place.
        self._over = threading.Lock()
        self._over.acquire()
        self._state = threading.Lock()
        self._is_over = False
        self._waits = waits

    def run(self, calls: DiskCalls) -> None:
        """In the thread."""
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
            # A loop that has ended waits for nothing.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._tell)

    def wait(self, limit_s: float) -> None:
        """On the loop: stand still for so long at most."""
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


class DiskThread:
    """One thread; its calls are made in the order in which they were asked for."""

    def __init__(self, name: str, calls: DiskCalls) -> None:
        """Raises RuntimeError where the system has no more threads."""
        self._calls = calls
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        threading.Thread(target=_work_off, args=(self._jobs, calls), name=name, daemon=True).start()
        # An owner that could not be put together leaves no thread behind.
        weakref.finalize(self, self._jobs.put, None)

    def run(self, what: str, work: Callable[[], T], *, wait_s: float = 0.0) -> asyncio.Future[T]:
        """Do `work` in the thread."""
        loop = asyncio.get_running_loop()
        job = _Job(self._calls.begin(what), work, loop, waits=wait_s > 0)
        self._jobs.put(job)
        if wait_s > 0:
            job.wait(wait_s)
        return job.future

    def close(self) -> None:
        """The thread ends after what it was given."""
        self._jobs.put(None)


def _work_off(jobs: SimpleQueue[_Job[Any] | None], calls: DiskCalls) -> None:
    while (job := jobs.get()) is not None:
        job.run(calls)
        del job
