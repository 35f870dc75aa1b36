"""Decides requests one at a time; long decisions run in time slices, so that other tasks can run.

A request decided in between would see metadata that the decision in progress is about to change.
Requests that arrive during a decision therefore wait, and clients take turns
(server/metadata/decision_queue.py). A request that is not decided yet has changed nothing.

Decisions far ahead of the high watermark would only wait in the log, and small writes would wait
behind them. So the next decision is deferred until enough is committed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.controller.errors import RefusedError
from quorate.records.errors import ErrorCode
from quorate.rpc.time_slicer import TimeSlicer
from quorate.server.metadata.decision_queue import DecisionQueue, QueuedRequest
from quorate.telemetry.histograms import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quorate.controller.controller import Controller
    from quorate.controller.decision import Decision
    from quorate.controller.slices import Slices
    from quorate.records.ids import Millis, Offset
    from quorate.server.host import Host

# Nearly every request is decided in the event-loop iteration in which it came, with those that came
# in the same one.
INLINE_BUDGET_S: Final = 0.004
# All writers wait for the decision in progress, so it may have half of the time.
DECIDING_SHARE: Final = 0.5
# A commit takes several event-loop iterations, each of which may wait for a slice.
SLICE_S: Final = 0.002
# The most records that may be decided and not committed before the next decision. Later records in
# the log wait for all of them.
AHEAD_MAX: Final = 4_096
# Seconds: from a change of one setting to thousands of topics in one request.
DECISION_BOUNDS_S: Final = (
    *(0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, INLINE_BUDGET_S),
    *(0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)
_TOO_MANY: Final = "Too many requests of this client, or of all, wait for a decision; try again."


@dataclass(slots=True)
class _UnderWay:
    """The request whose decision is in progress, since when, and the CPU time it has used."""

    asked: QueuedRequest
    slices: Slices[Decision]
    begun_s: float
    used_s: float = 0.0


class DecisionExecutor:
    """The requests of one leader, and the decision in progress."""

    def __init__(
        self,
        controller: Controller,
        host: Host,
        *,
        decides: Callable[[], bool],
        decided: Callable[[QueuedRequest, Decision], None],
        failed: Callable[[QueuedRequest, Exception], None],
        rested: Callable[[], None],
        broke: Callable[[Exception], None],
        ahead_max: int,
    ) -> None:
        """`decided` takes each decision; `rested` is called while no decision is in progress.

        Once `decides` returns False, `stop` is about to be called. `broke` ends the process: a
        decision could not be accepted.
        """
        self._controller = controller
        self._host = host
        self._decides = decides
        self._decided = decided
        self._failed = failed
        self._on_idle = rested
        self._on_fatal_error = broke
        self._ahead_max = ahead_max
        # Requests of this event-loop iteration, of one client.
        self._at_once: deque[QueuedRequest] = deque()
        self.queue = DecisionQueue()
        # While the task exists, every new request is queued.
        self._task: asyncio.Task[None] | None = None
        self._under_way: _UnderWay | None = None
        # End offset of the decisions, and the high watermark as last reported.
        self._end: Offset | None = None
        self._committed: Offset | None = None
        self._has_room = asyncio.Event()
        self.durations = Histogram(DECISION_BOUNDS_S)
        self.waits = Histogram(DECISION_BOUNDS_S)
        self.asked = 0

    @property
    def queue_size(self) -> int:
        """The number of requests that wait or are in progress; 0 if none had to wait."""
        return len(self.queue) + len(self._at_once) + (self._under_way is not None)

    @property
    def _is_far_ahead(self) -> bool:
        end, committed = self._end, self._committed
        return end is not None and committed is not None and end - committed >= self._ahead_max

    def enqueue(self, asked: Sequence[QueuedRequest]) -> None:
        """Decide on requests in order: now, unless a decision takes long or is in progress."""
        self.asked += len(asked)
        self._at_once.extend(asked)
        if self._task is None and not self._is_far_ahead:
            self._decide_at_once()
        while self._at_once:
            each = self._at_once.popleft()
            if not self.queue.add(each):
                self._failed(each, RefusedError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, _TOO_MANY))
        if self._task is None and self.queue_size:
            self._task = asyncio.get_running_loop().create_task(self._go_on())
            self._task.add_done_callback(self._over)

    def _decide_at_once(self) -> None:
        """Decide as many requests as fit into the time of one; the rest waits."""
        waiting, cpu_s = self._at_once, self._host.cpu_s
        now_s, now_ms, begun_s = self._host.work_s(), self._host.monotonic_ms(), cpu_s()
        until_s, is_over = begun_s + INLINE_BUDGET_S, False
        # If the controller loses leadership during this, `stop` empties the deque.
        while waiting and not is_over and not self._is_far_ahead:
            client = waiting[0]
            begun = self._begin(waiting.popleft(), now_s, now_ms)
            self._work_on(begun)
            while self._under_way is begun and cpu_s() < until_s:
                self._work_on(begun)
            is_over = self._under_way is not None or cpu_s() >= until_s
            now_s = self._host.work_s()
        # The time is charged to one client. If all is decided, no request waited for it.
        if self._under_way is not None:
            self._under_way.used_s = cpu_s() - begun_s
        elif waiting and is_over:
            self.queue.charge(client, cpu_s() - begun_s)

    def begin(self, committed: Offset, end: Offset) -> None:
        """Start: the controller has become active, and has decided up to `end`."""
        self._committed, self._end = committed, end

    def committed(self, high_watermark: Offset) -> None:
        """Take the new high watermark, and resume decisions that waited for it."""
        self._committed = high_watermark
        if not self._is_far_ahead:
            self._has_room.set()

    def stop(self) -> tuple[QueuedRequest, ...]:
        """Stop after loss of leadership; return the requests that will not be decided."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        under_way, self._under_way = self._under_way, None
        first = () if under_way is None else (under_way.asked,)
        left = (*first, *self._at_once, *self.queue.clear())
        self._at_once.clear()
        self._end = self._committed = None
        return left

    def _over(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._on_fatal_error(error)

    def _begin(self, asked: QueuedRequest, now_s: float, now_ms: Millis) -> _UnderWay:
        slices = self._controller.decide_in_slices(asked.request, asked.caller, now_ms)
        self._under_way = begun = _UnderWay(asked, slices, now_s)
        return begun

    def _work_on(self, begun: _UnderWay) -> None:
        """Run one slice; clear the decision in progress when it is decided or has failed."""
        try:
            next(begun.slices)
        except StopIteration as end:
            decision: Decision = end.value
            self._under_way = None
            self._end = decision.end_offset
            self.durations.observe(self._host.work_s() - begun.begun_s)
            self._decided(begun.asked, decision)
        except Exception as error:
            self._under_way = None
            self._failed(begun.asked, error)

    async def _go_on(self) -> None:
        # The task yields instead of sleeping: even a short sleep is long on a busy machine.
        pace = TimeSlicer(DECIDING_SHARE, slice_s=SLICE_S, steps_aside=True, clock=self._host.cpu_s)
        await asyncio.sleep(0)
        while self._decides():
            begun = self._under_way
            if begun is None:
                self._on_idle()
                if not self._decides():
                    return
                if self._is_far_ahead:
                    self._has_room.clear()
                    await self._has_room.wait()
                    continue
                begun = self._begin_next()
                if begun is None:
                    self._task = None
                    return
            before_s = self._host.cpu_s()
            self._work_on(begun)
            begun.used_s += self._host.cpu_s() - before_s
            if self._under_way is None:
                self.queue.charge(begun.asked, begun.used_s)
            await pace.yield_if_due()

    def _begin_next(self) -> _UnderWay | None:
        asked = self.queue.take()
        if asked is None:
            return None
        now_s = self._host.work_s()
        self.waits.observe(now_s - asked.came_s)
        return self._begin(asked, now_s, self._host.monotonic_ms())
