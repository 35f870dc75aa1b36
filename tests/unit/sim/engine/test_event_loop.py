"""asyncio in time that jumps."""

from __future__ import annotations

import asyncio
import heapq
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pytest

from quorate.sim.engine.event_loop import TASKS_MIN, TURN_US, TURNS_WITHOUT_REST_MAX, SimulatedLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class Heap:
    """A timeline that no other event is on."""

    def __init__(self) -> None:
        self.now_us = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, when_us: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (when_us, self._count, action))

    def __len__(self) -> int:
        return len(self._heap)

    def run(self, until_us: int = 1 << 60) -> None:
        while self._heap and self._heap[0][0] <= until_us:
            self.now_us, _, action = heapq.heappop(self._heap)
            action()


@pytest.fixture
def heap() -> Heap:
    return Heap()


@pytest.fixture
def loop(heap: Heap) -> SimulatedLoop:
    return SimulatedLoop(heap)  # type: ignore[abstract]


def finish(heap: Heap, loop: SimulatedLoop, work: Coroutine[None, None, object]) -> object:
    task = loop.create_task(work)
    heap.run()
    return task.result()


def test_time_jumps_to_the_next_timer(heap: Heap, loop: SimulatedLoop) -> None:
    async def sleep() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert finish(heap, loop, sleep()) == pytest.approx(3600, abs=0.001)


def test_what_becomes_ready_in_a_turn_comes_in_the_next(heap: Heap, loop: SimulatedLoop) -> None:
    seen: list[tuple[str, int]] = []

    def first() -> None:
        seen.append(("first", heap.now_us))
        loop.call_soon(lambda: seen.append(("third", heap.now_us)))

    loop.call_soon(first)
    loop.call_soon(lambda: seen.append(("second", heap.now_us)))
    heap.run()
    assert seen == [("first", TURN_US), ("second", TURN_US), ("third", 2 * TURN_US)]


def test_timers_go_off_in_the_order_of_their_times_then_of_their_making(
    heap: Heap, loop: SimulatedLoop
) -> None:
    seen: list[str] = []
    loop.call_later(0.002, seen.append, "later")
    loop.call_later(0.001, seen.append, "one")
    loop.call_at(0.001, seen.append, "two")
    cancelled = loop.call_later(0.001, seen.append, "never")
    cancelled.cancel()
    heap.run()
    assert seen == ["one", "two", "later"]
    assert heap.now_us == 2000


def test_a_timer_that_is_set_again_as_long_as_little_is_left_does_not_hold_up_time(
    heap: Heap, loop: SimulatedLoop
) -> None:
    rings = 0

    def ring() -> None:
        nonlocal rings
        rings += 1
        left_s = 61.942796 + 0.005 - loop.time()
        if left_s > 0:
            loop.call_later(left_s, ring)

    heap.now_us = 61_942_796
    loop.call_soon(ring)
    heap.run(until_us=61_960_000)
    assert heap.now_us > 61_947_796
    assert rings < 5


def test_no_turn_comes_while_a_callback_works(heap: Heap, loop: SimulatedLoop) -> None:
    seen: list[tuple[str, int]] = []

    def note(what: str) -> None:
        seen.append((what, heap.now_us))

    def work() -> None:
        note("works")
        loop.work(3000)
        loop.work(2000)
        loop.call_soon(note, "made ready")

    loop.call_later(0.001, work)
    loop.call_later(0.002, note, "due meanwhile")
    heap.at(4000, lambda: loop.run(note, "from outside"))
    heap.run()
    assert seen == [
        ("works", 1000),
        ("made ready", 6000),
        ("from outside", 6000),
        ("due meanwhile", 6000),
    ]
    assert loop.worked_us == 5000


def test_what_comes_from_outside_has_its_turn_at_once(heap: Heap, loop: SimulatedLoop) -> None:
    seen: list[object] = []
    loop.call_soon(seen.append, "waited")
    loop.run(lambda: seen.append(asyncio.get_running_loop()))
    assert seen == ["waited", loop]
    assert heap.now_us == 0
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()


def test_who_is_in_a_turn_does_not_begin_another(heap: Heap, loop: SimulatedLoop) -> None:
    seen: list[str] = []

    def outer() -> None:
        loop.run(seen.append, "inner")
        seen.append("outer")

    loop.run(outer)
    heap.run()
    assert seen == ["outer", "inner"]


def test_deadlines_futures_and_waits_are_those_of_asyncio(heap: Heap, loop: SimulatedLoop) -> None:
    async def work() -> str:
        never = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await never
        soon = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.25, soon.set_result, "there")
        done, _ = await asyncio.wait([soon])
        return str(done.pop().result())

    assert finish(heap, loop, work()) == "there"
    assert 1_750_000 <= heap.now_us <= 1_751_000


def test_a_callback_has_the_context_that_it_was_given(heap: Heap, loop: SimulatedLoop) -> None:
    word: ContextVar[str] = ContextVar("word", default="none")
    seen: list[str] = []

    def look() -> None:
        seen.append(word.get())

    token = word.set("said")
    loop.call_soon(look)
    word.reset(token)
    loop.call_soon(look)
    heap.run()
    assert seen == ["said", "none"]


def test_a_paused_process_goes_on_with_what_was_due(heap: Heap, loop: SimulatedLoop) -> None:
    seen: list[int] = []
    loop.call_later(0.001, lambda: seen.append(heap.now_us))
    loop.pause()
    loop.run(lambda: seen.append(-1))
    heap.run(5000)
    assert seen == []
    heap.now_us = 5000
    loop.resume()
    assert seen == [-1, 5000]


def test_after_its_end_nothing_runs(heap: Heap, loop: SimulatedLoop) -> None:
    seen: list[str] = []

    def end() -> None:
        loop.close()
        loop.call_soon(seen.append, "asked for by who is gone")

    loop.call_soon(end)
    loop.call_soon(seen.append, "ready in the same turn")
    loop.call_later(1, seen.append, "a timer")
    heap.run()
    assert seen == []
    assert loop.is_closed()


def test_what_a_callback_raises_ends_the_turn(heap: Heap, loop: SimulatedLoop) -> None:
    def fail() -> None:
        raise ValueError("a defect")

    loop.call_soon(fail)
    with pytest.raises(ValueError, match="a defect"):
        heap.run()


def test_who_never_rests_is_noticed(heap: Heap, loop: SimulatedLoop) -> None:
    def again() -> None:
        loop.call_soon(again)

    loop.call_soon(again)
    with pytest.raises(RuntimeError, match="never rests"):
        heap.run()
    assert heap.now_us >= TURNS_WITHOUT_REST_MAX * TURN_US


def test_the_machine_below_is_out_of_reach(loop: SimulatedLoop) -> None:
    # The base class says no to whatever is not simulated.
    with pytest.raises(RuntimeError):
        loop.run_in_executor(None, print)


def test_coroutines_end_with_their_process(heap: Heap, loop: SimulatedLoop) -> None:
    ended: list[str] = []

    async def wait(name: str) -> None:
        try:
            await asyncio.sleep(1)
        finally:
            ended.append(name)

    async def never() -> None:
        ended.append("never begun")

    loop.create_task(wait("one"))
    loop.create_task(wait("two"))

    async def wait_for(work: Coroutine[None, None, None]) -> None:
        await work

    heap.run(1000)
    unbegun = loop.create_task(wait_for(never()))
    loop.close()
    assert ended == ["one", "two"]
    assert not unbegun.done()


def test_tasks_that_are_over_are_not_kept(heap: Heap, loop: SimulatedLoop) -> None:
    async def nothing() -> None:
        pass

    for _ in range(10 * TASKS_MIN):
        loop.create_task(nothing())
        heap.run()
    assert len(loop._tasks) <= TASKS_MIN


def test_a_moment_is_asked_for_once_however_often_an_earlier_one_comes_between(
    heap: Heap, loop: SimulatedLoop
) -> None:
    rung: list[int] = []
    loop.call_at(1.0, lambda: rung.append(heap.now_us))
    for _ in range(100):
        loop.run(lambda: None)
        heap.run(heap.now_us + TURN_US)
    asked = len(heap)
    heap.run()
    assert (asked, rung) == (1, [1_000_000])
