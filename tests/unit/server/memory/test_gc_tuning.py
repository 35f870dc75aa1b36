"""Objects that a long pass of the garbage collector has left are not scanned again."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from quorate.server.memory import gc_tuning
from quorate.server.memory.gc_tuning import (
    LONG_S,
    REPLACED_BETWEEN,
    GcFreezer,
    GcTrigger,
    freeze_heap,
)

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


async def passed(step_s: float, generation: int) -> GcFreezer:
    """A watch that has seen one pass of that length."""
    watch = GcFreezer(asyncio.get_running_loop(), clock=Clock(step_s))
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
async def test_a_short_pass_and_one_over_the_young_set_nothing_aside(
    step_s: float, generation: int
) -> None:
    watch = GcFreezer(asyncio.get_running_loop(), clock=Clock(step_s))
    watch.start()
    before = gc.get_freeze_count()
    gc.collect(generation)
    watch.stop()
    await asyncio.sleep(0)
    assert gc.get_freeze_count() <= before


async def test_what_was_imported_is_never_looked_at() -> None:
    """The first pass would be the longest of all, whenever it comes."""
    assert len(gc.get_objects()) > 10_000
    watch = GcFreezer(asyncio.get_running_loop())
    watch.start()
    assert len(gc.get_objects()) < 1_000
    watch.stop()


def test_what_is_set_aside_is_still_freed_when_nobody_refers_to_it() -> None:
    class Thing:
        freed = False

        def __del__(self) -> None:
            Thing.freed = True

    thing = Thing()
    freeze_heap()
    assert gc.get_freeze_count() > 0
    del thing
    assert Thing.freed


async def test_nobody_watches_after_the_end() -> None:
    before = list(gc.callbacks)
    watch = GcFreezer(asyncio.get_running_loop())
    watch.start()
    assert len(gc.callbacks) == len(before) + 1
    watch.stop()
    watch.stop()
    assert gc.callbacks == before
    assert gc_tuning.LONG_S < 0.02


@pytest.mark.parametrize("step_s", [0.0, LONG_S * 2])
async def test_no_pass_looks_at_more_than_some_thousand_objects(step_s: float) -> None:
    """Only the few objects since the last pass are looked at; the rest is frozen, however many."""
    looked_at: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            looked_at.append(len(gc.get_objects()))

    watch = GcFreezer(asyncio.get_running_loop(), clock=Clock(step_s))
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
    assert max(looked_at) < gc_tuning.MANY + 10_000


async def test_the_thresholds_are_those_of_before_once_nobody_watches() -> None:
    before = gc.get_threshold()
    watch = GcFreezer(asyncio.get_running_loop())
    watch.start()
    assert gc.get_threshold() == gc_tuning.THRESHOLDS != before
    watch.stop()
    assert gc.get_threshold() == before


async def test_what_takes_the_place_of_what_was_set_aside_is_looked_at_in_parts() -> None:
    """As many are freed as are made, so that the interpreter sees no reason for a pass."""
    stay: list[list[object]] = [[None] for _ in range(50_000)]
    watch = GcFreezer(asyncio.get_running_loop(), clock=Clock(0.0))
    watch.start()
    passes = GcTrigger(gc.collect)
    unseen = 0
    gc.enable()
    for number in range(len(stay)):
        stay[number] = [None]
        passes.note(number)
        unseen = max(unseen, len(gc.get_objects())) if number % 100 == 0 else unseen
    gc.disable()
    watch.stop()
    assert unseen < gc_tuning.MANY + 2_000


def test_a_pass_comes_for_so_many_replaced() -> None:
    begun: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            begun.append(info["generation"])

    gc.callbacks.append(note)
    passes = GcTrigger(gc.collect)
    for replaced in range(3 * REPLACED_BETWEEN):
        passes.note(replaced)
    gc.callbacks.remove(note)
    assert begun == [2, 2]


class Circle:
    """Only a pass of the collector frees it."""

    def __init__(self) -> None:
        self.own = self


async def test_circles_that_were_set_aside_are_freed_before_it_begins_anew() -> None:
    circle = Circle()
    seen = weakref.ref(circle)
    watch = GcFreezer(asyncio.get_running_loop())
    watch.start()
    del circle
    gc.collect()
    assert seen() is not None
    watch.refreeze()
    assert seen() is None
    assert len(gc.get_objects()) < 1_000
    watch.stop()


async def test_circles_that_end_after_a_long_pass_are_not_set_aside() -> None:
    watch = GcFreezer(asyncio.get_running_loop(), clock=Clock(LONG_S * 2))
    watch.start()
    gc.collect()
    seen = weakref.ref(Circle())
    watch.stop()
    await asyncio.sleep(0)
    assert seen() is None
