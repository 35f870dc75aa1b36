"""Long work leaves the loop to others, in proportion to what it took."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quorate.rpc.time_slicer import STEP_S, TimeSlicer

if TYPE_CHECKING:
    from collections.abc import Generator


class Clock:
    """The time of a thread; of each pause others use a part."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.others_share = 1.0
        self.turns_s: list[float] = []
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, delay_s: float) -> None:
        self.pauses.append(round(delay_s, 6))
        self.now_s += delay_s * self.others_share
        if self.turns_s:
            self.now_s += self.turns_s.pop(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asyncio, "sleep", clock.sleep)
    return clock


async def work(clock: Clock, time_slicer: TimeSlicer, units_s: list[float]) -> None:
    for unit_s in units_s:
        clock.now_s += unit_s
        await time_slicer.yield_if_due()


async def test_units_share_a_slice_and_the_pause_behind_it_is_proportional(clock: Clock) -> None:
    pace = TimeSlicer(0.25, slice_s=0.004, clock=clock)
    await work(clock, pace, [0.001] * 9)
    assert clock.pauses == [STEP_S] * 24


async def test_a_unit_that_took_long_is_paid_for(clock: Clock) -> None:
    await work(clock, TimeSlicer(0.25, slice_s=0.004, clock=clock), [0.1])
    assert sum(clock.pauses) == pytest.approx(0.3)


async def test_who_has_enough_with_the_rest_of_the_loop_ends_the_pause(clock: Clock) -> None:
    clock.others_share = 0.4
    await work(clock, TimeSlicer(0.25, slice_s=0.004, clock=clock), [0.004, 0.004])
    assert clock.pauses == [STEP_S, STEP_S]


async def test_a_pause_lasts_until_others_have_used_their_share(clock: Clock) -> None:
    # On a machine that is busy with others too, a thread does not have all of the time.
    clock.others_share = 0.5
    await work(clock, TimeSlicer(0.5, slice_s=0.004, clock=clock), [0.004])
    assert sum(clock.pauses) == pytest.approx(0.008, rel=0.05)


async def test_work_that_steps_aside_goes_on_once_nobody_does_anything(clock: Clock) -> None:
    pace = TimeSlicer(0.5, slice_s=0.002, steps_aside=True, clock=clock)
    clock.turns_s = [0.0, 0.0005, 0.0, 0.0003, 0.0, 0.0]
    await work(clock, pace, [0.002])
    assert clock.pauses == [0] * 6


async def test_work_that_steps_aside_leaves_others_their_share(clock: Clock) -> None:
    pace = TimeSlicer(0.5, slice_s=0.002, steps_aside=True, clock=clock)
    clock.turns_s = [0.0015] * 4
    await work(clock, pace, [0.002, 0.002])
    assert clock.pauses == [0] * 4


async def test_whoever_has_the_loop_for_itself_only_lets_others_have_their_turn(
    clock: Clock,
) -> None:
    await work(clock, TimeSlicer(1, slice_s=0.004, clock=clock), [0.005, 0.005])
    assert clock.pauses == [0, 0]


async def test_slices_are_done_to_the_end_with_pauses(clock: Clock) -> None:
    def slices() -> Generator[None, None, str]:
        for _ in range(3):
            clock.now_s += 0.003
            yield
        return "done"

    assert await TimeSlicer(0.5, slice_s=0.004, clock=clock).run(slices()) == "done"
    assert clock.pauses == [STEP_S] * 6


async def test_what_slices_raise_is_raised(clock: Clock) -> None:
    def slices() -> Generator[None, None, str]:
        yield
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await TimeSlicer(0.5, clock=clock).run(slices())
