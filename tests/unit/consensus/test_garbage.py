"""What a long pass of the garbage collector has left is not looked at again."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import pytest

from quorate.consensus import garbage
from quorate.consensus.garbage import LONG_S, PassWatch, set_aside

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _nothing_stays_aside() -> Iterator[None]:
    """No pass is seen but those that a test asks for."""
    gc.disable()
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.enable()


class Clock:
    """Each look finds the time `step_s` later."""

    def __init__(self, step_s: float) -> None:
        self.now_s, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


async def passed(step_s: float, generation: int) -> PassWatch:
    """A watch that has seen one pass of that length."""
    watch = PassWatch(asyncio.get_running_loop(), clock=Clock(step_s))
    watch.start()
    gc.collect(generation)
    watch.stop()
    await asyncio.sleep(0)
    return watch


async def test_a_long_pass_over_everything_sets_aside_what_it_left() -> None:
    watch = await passed(LONG_S * 2, generation=2)
    assert watch.longest_s == pytest.approx(LONG_S * 2)
    assert gc.get_freeze_count() > 0


@pytest.mark.parametrize(("step_s", "generation"), [(LONG_S / 2, 2), (LONG_S * 2, 1)])
async def test_a_short_pass_and_one_over_the_young_leave_all_as_it_is(
    step_s: float, generation: int
) -> None:
    await passed(step_s, generation)
    assert gc.get_freeze_count() == 0


def test_what_is_set_aside_is_still_freed_when_nobody_refers_to_it() -> None:
    class Thing:
        freed = False

        def __del__(self) -> None:
            Thing.freed = True

    thing = Thing()
    set_aside()
    assert gc.get_freeze_count() > 0
    del thing
    assert Thing.freed


async def test_nobody_watches_after_the_end() -> None:
    before = list(gc.callbacks)
    watch = PassWatch(asyncio.get_running_loop())
    watch.start()
    assert len(gc.callbacks) == len(before) + 1
    watch.stop()
    watch.stop()
    assert gc.callbacks == before
    assert garbage.LONG_S < 0.02


async def test_no_pass_looks_at_more_than_a_few_ten_thousand_objects() -> None:
    """However many stay: what was made since the last pass is little, the rest is set aside."""
    looked_at: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            looked_at.append(len(gc.get_objects()))

    gc.freeze()
    watch = PassWatch(asyncio.get_running_loop(), clock=Clock(LONG_S * 2))
    watch.start()
    gc.callbacks.insert(0, note)
    gc.enable()
    try:
        stays: list[list[object]] = []
        for _ in range(100):
            stays += [[None] for _ in range(2000)]
            await asyncio.sleep(0)
    finally:
        gc.disable()
        gc.callbacks.remove(note)
        watch.stop()
    assert looked_at
    assert max(looked_at) < 30_000


async def test_the_thresholds_are_those_of_before_once_nobody_watches() -> None:
    before = gc.get_threshold()
    watch = PassWatch(asyncio.get_running_loop())
    watch.start()
    assert gc.get_threshold() == garbage.THRESHOLDS != before
    watch.stop()
    assert gc.get_threshold() == before
