"""Clocks, randomness and disk threads of a simulated process.

A disk call takes effect at the end of its duration, on its thread and concurrently with the loop;
calls of one thread are sequential. So a task that continues before a call has ended does so before
the call has changed the disk. At random, one thread runs between two steps of another.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from quorate.server.disk.log_flusher import SYNCING_END
from quorate.server.driver.barriers import WRITING_CHUNK
from quorate.server.host import Host
from quorate.sim.checkers.oracle import Violation
from quorate.sim.engine.event_loop import MILLION, SimulatedLoop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from quorate.records.ids import Millis
    from quorate.server.disk.executor import DiskCallTracker
    from quorate.sim.interfaces import MachineInterface

T = TypeVar("T")

SLOWEST_CLOCK: Final = 1.06
SLACK_MS: Final = 100
# The duration in microseconds of calls without a flush: most reads are served from memory.
QUICK_US: Final = 50


class ProcessDied(BaseException):
    """Raised between two effects or two disk calls; production code must not catch it."""


@dataclass(slots=True, eq=False)
class DiskCall:
    """A disk call; it makes the writes up to `written` durable, but no later ones."""

    what: str
    number: int
    work: Callable[[], Any]
    future: asyncio.Future[Any]
    written: int = 0
    duration_us: int = 0
    is_due: bool = False


class SimulatedHost(Host):
    """The host of one process, on a machine whose disk may stall."""

    def __init__(self, node: MachineInterface) -> None:
        self.node = node
        self.random = node.random
        # The loop rejects all features that it lacks.
        self.loop = SimulatedLoop(node)  # type: ignore[abstract]
        self.is_hanging = False
        self._threads: dict[str, SimulatedThread] = {}
        self._working: SimulatedThread | None = None
        self._is_between = False
        self._begun_before_us = 0

    # --- the interface ----------------------------------------------------------------------------

    def monotonic_ms(self) -> Millis:
        return self.node.local_ms

    def wall_ms(self) -> int:
        return self.node.world.now_ms

    def work_s(self) -> float:
        """The clock for durations in seconds; a disk call before its first step has taken none."""
        return (self.node.now_us - self._begun_before_us) / MILLION

    def cpu_s(self) -> float:
        """The CPU time in seconds: only decisions use any, and only if the options say so."""
        return self.loop.worked_us / MILLION

    def collect_garbage(self) -> None:
        """Do nothing: the processes of a seed share one interpreter's memory."""

    def disk_queue(self, name: str, calls: DiskCallTracker) -> SimulatedThread:
        thread = self._threads[name] = SimulatedThread(self, name, calls)
        return thread

    # --- threads ----------------------------------------------------------------------------------

    def make(self, thread: SimulatedThread, call: DiskCall) -> tuple[Any, Exception | None]:
        """Execute a call of a thread; returns its result and its error.

        Raises ProcessDied if the process crashes, and AssertionError for a defect.
        """
        disk = self.node.disk
        before = self._working, disk.unpromised
        self._working, disk.unpromised = thread, (call.written, disk.sequence)
        self._begun_before_us = call.duration_us
        try:
            return call.work(), None
        except AssertionError:
            raise
        except Exception as error:
            return None, error
        finally:
            self._working, disk.unpromised = before
            self._begun_before_us = 0

    def stepped(self) -> None:
        """The code that is calling the disk is about to take a step."""
        self._begun_before_us = 0
        working, world = self._working, self.node.world
        rate = world.options.disks.between_rate
        if working is None or self._is_between or not rate:
            return
        for other in self._threads.values():
            if other is not working and other.first is not None and not self.is_hanging:
                if world.random_streams.chance(rate, "threads", self.node.node_id):
                    self._is_between = True
                    other.end(other.first)
                    self._is_between = False
                    if self.loop.is_closed():
                        raise ProcessDied
                return

    def resume(self) -> None:
        """End the calls that are due after a pause or a disk stall."""
        for thread in self._threads.values():
            if self.loop.is_closed():
                # Threads of an exited process do nothing more.
                return
            if thread.first is not None and thread.first.is_due:
                thread.end(thread.first)

    # --- disk stalls ------------------------------------------------------------------------------

    def stall(self) -> None:
        """Stall the disk: no call to it returns until `release`; all else continues."""
        self.is_hanging = True
        self.node.troubles += 1
        self.time_flush()

    def release(self) -> None:
        """Resume the calls that waited for the disk."""
        self.is_hanging = False
        if not self.node.is_paused:
            self.resume()

    def time_flush(self) -> None:
        """Schedule a check of the leader for when the flush in flight has stalled for too long."""
        flush = self._threads["flush"].first
        if self.is_hanging and flush is not None:
            options = self.node.world.options
            # Allow for the slowest clock and for a barrier that delayed the last flush event.
            limit_ms = options.timeouts.check_quorum_timeout_ms * SLOWEST_CLOCK + SLACK_MS
            limit_us = int(limit_ms * 1000) + options.disks.slow_fsync_us
            self.node.world.schedule(limit_us, partial(self._is_late, flush))

    def _is_late(self, flush: DiskCall) -> None:
        """Check that a replica with a stalled disk does not lead, except a single voter.

        See rule `disk_call_deadline`.
        """
        node = self.node
        if self.loop.is_closed() or flush is not self._threads["flush"].first:
            return
        progress = node.progress
        if not self.is_hanging or node.is_paused or progress is None or self.is_blocked_on_disk:
            return
        if progress.is_leader and len(node.log.voters) > 1:
            raise Violation(f"node {node.node_id} leads although its flush does not return")

    @property
    def is_blocked_on_disk(self) -> bool:
        """True if the core gets no event until the disk has answered."""
        return self._threads["disk"].is_waited_for or self.node.driver.has_exclusive_log


class SimulatedThread:
    """One simulated thread for disk calls."""

    def __init__(self, host: SimulatedHost, name: str, calls: DiskCallTracker) -> None:
        self._host = host
        self._name = name
        self._calls = calls
        self._waiting: deque[DiskCall] = deque()

    @property
    def first(self) -> DiskCall | None:
        """The call in progress."""
        return self._waiting[0] if self._waiting else None

    @property
    def is_waited_for(self) -> bool:
        """True if effects have to wait for a call in progress or queued."""
        return any(call.what != SYNCING_END for call in self._waiting)

    def run(self, what: str, work: Callable[[], T], *, wait_s: float = 0.0) -> asyncio.Future[T]:
        """Queue a call. It takes no simulated time if the loop waits `wait_s` for it."""
        loop = self._host.loop
        call = DiskCall(what, self._calls.begin(what), work, loop.create_future())
        if loop.is_closed():
            # Leftover code of an exited process calls this, and must not wait.
            call.future.set_result(None)
            return call.future
        self._waiting.append(call)
        if len(self._waiting) == 1:
            self._begin(call, int(wait_s * MILLION))
        return call.future

    def close(self) -> None:
        """Do nothing: the calls end with the process."""

    def _begin(self, call: DiskCall, patience_us: int = 0) -> None:
        host = self._host
        world = host.node.world
        is_quick = self._name == "read" or call.what == WRITING_CHUNK
        call.written = host.node.disk.sequence
        call.duration_us = QUICK_US if is_quick else world.draw_fsync_us(host.node)
        if call.duration_us <= patience_us and not host.is_hanging:
            self._make(call)
            return
        if self._name == "flush":
            host.time_flush()
        world.schedule(call.duration_us, partial(self._over, call))

    def _over(self, call: DiskCall) -> None:
        host = self._host
        if host.loop.is_closed() or call is not self.first:
            return
        if host.is_hanging or host.node.is_paused:
            call.is_due = True
        else:
            self.end(call)

    def end(self, call: DiskCall) -> None:
        """Execute the call in progress now, and notify the task that waits for it."""
        try:
            self._make(call)
        except ProcessDied:
            return
        self._host.loop.turn()

    def _make(self, call: DiskCall) -> None:
        result, error = self._host.make(self, call)
        self._calls.end(call.number)
        self._waiting.popleft()
        if error is not None:
            call.future.set_exception(error)
        else:
            call.future.set_result(result)
        if self._waiting:
            self._begin(self._waiting[0])
