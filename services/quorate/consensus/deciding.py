"""Requests decided one after the other; what takes long has pauses in which everybody has turns.

A request decided in between would be decided on metadata that the request under way is about to
change, so those that come meanwhile wait. A request that is not decided yet has changed nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import repeat
from typing import TYPE_CHECKING, Final

from quorate.records.value import value
from quorate.rpc.pace import Pace
from quorate.telemetry.histograms import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quorate.consensus.host import Host
    from quorate.controller.authorizer import Caller
    from quorate.controller.controller import Controller
    from quorate.controller.decision import Decision
    from quorate.controller.replies import WriteReply
    from quorate.controller.requests import WriteRequest
    from quorate.controller.slices import Slices

# Nearly every request is decided in the turn in which it came.
AT_ONCE_S: Final = 0.004
# Everybody who writes waits for the request under way, so that it may have half of the time.
DECIDING_SHARE: Final = 0.5
# From a change of one setting to thousands of topics in one request.
DECISION_BOUNDS_S: Final = (
    *(0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, AT_ONCE_S),
    *(0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)


@value
class Undecided:
    """A request that waits for its decision, and who for."""

    request: WriteRequest
    caller: Caller
    future: asyncio.Future[WriteReply]


class Deciding:
    """The queue of one leader's requests."""

    def __init__(
        self,
        controller: Controller,
        host: Host,
        *,
        decides: Callable[[], bool],
        decided: Callable[[Undecided, Decision], None],
        failed: Callable[[Undecided, Exception], None],
        rested: Callable[[], None],
        broke: Callable[[Exception], None],
    ) -> None:
        """`decided` takes what was; `rested` hears that nothing is under way any more.

        Once `decides` says no, `stop` is about to be called. `broke` ends the process: what was
        decided could not be taken.
        """
        self._controller = controller
        self._host = host
        self._decides = decides
        self._decided = decided
        self._failed = failed
        self._rested = rested
        self._broke = broke
        self._waiting: deque[Undecided] = deque()
        # When each of them came.
        self._came_s: deque[float] = deque()
        self._task: asyncio.Task[None] | None = None
        self._begun_s = 0.0
        self.durations = Histogram(DECISION_BOUNDS_S)
        self.waits = Histogram(DECISION_BOUNDS_S)
        self.asked = 0

    @property
    def queue_size(self) -> int:
        """How many wait, the one under way included; none while each is decided at once."""
        return len(self._waiting)

    def take(self, asked: Sequence[Undecided]) -> None:
        """Decide on requests in order: now, while none takes long and nothing is under way."""
        self.asked += len(asked)
        self._waiting.extend(asked)
        now_s = self._host.work_s()
        if self._task is None:
            self._decide_at_once(now_s)
        self._came_s.extend(repeat(now_s, len(self._waiting) - len(self._came_s)))

    def _decide_at_once(self, now_s: float) -> None:
        waiting, decide = self._waiting, self._controller.decide_in_slices
        now_ms = self._host.monotonic_ms()
        self._begun_s = now_s
        # A controller that loses leadership meanwhile stops, and then none waits.
        while waiting:
            asked = waiting.popleft()
            slices = decide(asked.request, asked.caller, now_ms)
            if not self._has_ended(asked, slices, self._begun_s + AT_ONCE_S):
                waiting.appendleft(asked)
                self._task = asyncio.get_running_loop().create_task(self._go_on(slices))
                self._task.add_done_callback(self._over)
                return

    def _drop_first(self) -> None:
        self._waiting.popleft()
        self._came_s.popleft()

    def stop(self) -> tuple[Undecided, ...]:
        """Leadership is lost: those that were not decided, and will not be."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        left = tuple(self._waiting)
        self._waiting.clear()
        self._came_s.clear()
        return left

    def _over(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._broke(error)

    def _begin(self, asked: Undecided) -> Slices[Decision]:
        self._begun_s = self._host.work_s()
        now_ms = self._host.monotonic_ms()
        return self._controller.decide_in_slices(asked.request, asked.caller, now_ms)

    def _has_ended(
        self, asked: Undecided, slices: Slices[Decision], until_s: float | None = None
    ) -> bool:
        """Whether all is decided, or never will be, by then; without a time after one slice."""
        try:
            while True:
                next(slices)
                if until_s is None or self._host.work_s() >= until_s:
                    return False
        except StopIteration as end:
            decision: Decision = end.value
            now_s = self._host.work_s()
            self.durations.observe(now_s - self._begun_s)
            # The next one begins now, where another is decided at once.
            self._begun_s = now_s
        except Exception as error:
            self._failed(asked, error)
            return True
        self._decided(asked, decision)
        return True

    async def _go_on(self, slices: Slices[Decision]) -> None:
        pace = Pace(DECIDING_SHARE, clock=self._host.work_s)
        await asyncio.sleep(0)
        while self._decides():
            if self._has_ended(self._waiting[0], slices):
                self._drop_first()
                while self._waiting and self._waiting[0].future.done():
                    self._drop_first()
                if not self._waiting:
                    self._task = None
                    self._rested()
                    return
                slices = self._begin(self._waiting[0])
                self.waits.observe(self._begun_s - self._came_s[0])
            await pace.breathe()
