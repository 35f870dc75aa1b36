"""Turns of client addresses and connections, by a clock that only the work moves."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from quorate.h2.fair_queue import UNSHARED, FairQueue, queue_of_running_loop

if TYPE_CHECKING:
    from quorate.h2.fair_queue import Flow, Step

MS = 0.001
CALLER: ContextVar[str] = ContextVar("caller of a test")


class Work:
    """A queue with a budget of a millisecond, and what ran in it."""

    def __init__(self) -> None:
        # Long after the start of the clock, so that no client is charged for the time before.
        self.now_s = 1000.0
        self.queue = FairQueue(budget_s=MS, clock=lambda: self.now_s)
        self.ran: list[str] = []

    def step(self, name: str, cost_s: float, times: int = 1) -> Step:
        """Work that takes so long each time."""
        left = times

        def step(_: float) -> bool:
            nonlocal left
            left -= 1
            self.now_s += cost_s
            self.ran.append(name)
            return left > 0

        return step

    async def iterate(self) -> list[str]:
        """One iteration of the loop; what ran in it."""
        self.ran.clear()
        await asyncio.sleep(0)
        return list(self.ran)

    def exhaust(self, flow: Flow) -> None:
        """Use up this iteration's budget, with all that may be overdrawn."""
        self.queue.charge(flow, 5 * MS)

    async def repay(self) -> None:
        """Let so many iterations pass that all debt is repaid."""
        for _ in range(30):
            await asyncio.sleep(0)


async def test_a_step_runs_immediately_while_there_is_budget() -> None:
    work = Work()
    flow = work.queue.flow("a")
    assert flow.run(work.step("first", MS / 2))
    assert flow.run(work.step("second", MS))
    assert work.ran == ["first", "second"]


async def test_all_connections_together_have_one_budget_in_an_iteration() -> None:
    work = Work()
    heavy = [work.queue.flow("heavy") for _ in range(100)]
    work.exhaust(heavy[0])
    # The address is a heavy one by now.
    work.queue.charge(heavy[0], 50 * MS)
    for number, flow in enumerate(heavy):
        flow.submit(work.step(f"{number}", MS / 4, times=100))
    await work.repay()
    for _ in range(20):
        assert len(await work.iterate()) <= 5


async def test_addresses_take_turns_whatever_the_number_of_their_connections() -> None:
    work = Work()
    many = [work.queue.flow("many") for _ in range(50)]
    one = work.queue.flow("one")
    for flow in many:
        flow.submit(work.step("many", MS, times=100))
    one.submit(work.step("one", MS, times=100))
    ran: list[str] = []
    while len(ran) < 60:
        ran += await work.iterate()
    assert abs(ran.count("many") - ran.count("one")) <= 6


async def test_connections_of_one_address_take_turns() -> None:
    work = Work()
    flows = [work.queue.flow("a") for _ in range(4)]
    for number, flow in enumerate(flows):
        flow.submit(work.step(str(number), MS, times=100))
    ran: list[str] = []
    while len(ran) < 40:
        ran += await work.iterate()
    assert {ran.count(str(number)) for number in range(4)} <= {8, 9, 10, 11, 12}


async def test_an_address_that_used_little_goes_before_one_that_used_much() -> None:
    work = Work()
    heavy, light = work.queue.flow("heavy"), work.queue.flow("light")
    heavy.submit(work.step("heavy", MS, times=1000))
    for _ in range(50):
        await work.iterate()
    light.submit(work.step("light", MS / 10))
    assert (await work.iterate())[0] == "light"


async def test_a_light_address_overdraws_the_budget_and_a_heavy_one_does_not() -> None:
    work = Work()
    heavy, light = work.queue.flow("heavy"), work.queue.flow("light")
    work.queue.charge(heavy, 20 * MS)
    await work.repay()
    # Within this iteration the heavy address has used the budget.
    work.queue.charge(heavy, MS)
    assert not work.queue.admits(heavy)
    assert work.queue.admits(light)
    work.exhaust(light)
    assert not work.queue.admits(light)


async def test_what_an_address_used_long_ago_does_not_count() -> None:
    work = Work()
    flow = work.queue.flow("a")
    work.queue.charge(flow, 20 * MS)
    await work.repay()
    work.now_s += 10.0
    work.queue.charge(flow, MS)
    assert work.queue.admits(flow)


async def test_a_long_step_costs_the_following_iterations() -> None:
    work = Work()
    flow = work.queue.flow("a")
    flow.submit(work.step("long", 15 * MS))
    flow.submit(work.step("next", MS))
    assert await work.iterate() == ["long"]
    waited = 0
    while not await work.iterate():
        waited += 1
    assert 13 <= waited <= 15


async def test_a_voters_connection_comes_first() -> None:
    work = Work()
    heavy, voter = work.queue.flow("a"), work.queue.flow("a")
    voter.is_preferred = True
    work.exhaust(heavy)
    assert voter.run(work.step("now", 3 * MS))
    heavy.submit(work.step("heavy", MS))
    voter.submit(work.step("first", MS / 2))
    work.ran.clear()
    assert (await work.iterate())[0] == "first"


async def test_connections_that_state_to_be_voters_have_a_budget_too() -> None:
    work = Work()
    voters = [work.queue.flow("a") for _ in range(20)]
    for voter in voters:
        voter.is_preferred = True
        voter.submit(work.step("voter", MS, times=100))
    for _ in range(30):
        assert len(await work.iterate()) <= 12
    work.queue.charge(voters[0], 9 * MS)
    assert not work.queue.admits(voters[0])


async def test_an_idle_address_does_not_save_up_turns() -> None:
    work = Work()
    busy, idle = work.queue.flow("busy"), work.queue.flow("idle")
    busy.submit(work.step("busy", MS, times=1000))
    for _ in range(300):
        await work.iterate()
    idle.submit(work.step("idle", MS, times=1000))
    ran: list[str] = []
    while len(ran) < 40:
        ran += await work.iterate()
    assert abs(ran.count("busy") - ran.count("idle")) <= 8


async def test_a_step_that_raises_is_reported_and_ends_nothing_else() -> None:
    work = Work()
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    flow = work.queue.flow("a")

    def fail(_: float) -> bool:
        raise RuntimeError("broken")

    flow.submit(fail)
    flow.submit(work.step("next", MS / 10))
    assert await work.iterate() == ["next"]
    assert [str(one["exception"]) for one in told] == ["broken"]


async def test_to_connect_again_is_no_way_to_a_new_share() -> None:
    work = Work()
    work.queue.charge(flow := work.queue.flow("heavy"), 50 * MS)
    flow.close()
    await work.repay()
    again, other = work.queue.flow("heavy"), work.queue.flow("other")
    work.queue.charge(again, MS)
    assert not work.queue.admits(again)
    assert work.queue.admits(other)


async def test_an_address_without_connections_is_forgotten_after_a_while() -> None:
    work = Work()
    flows = [work.queue.flow("a"), work.queue.flow("a")]
    for flow in (*flows, flows[0]):
        flow.close()
    assert set(work.queue._clients) == {"a"}
    work.now_s += 10.0
    work.queue.flow("b")
    assert set(work.queue._clients) == {"b"}


async def test_addresses_that_are_remembered_are_bounded() -> None:
    work = Work()
    for number in range(5000):
        work.queue.flow(str(number)).close()
    assert len(work.queue._clients) <= 4097


async def test_work_inherits_no_callers_context() -> None:
    work, told = Work(), list[str]()
    flow = work.queue.flow("a")

    def step(_: float) -> bool:
        told.append(CALLER.get("nobody"))
        return False

    CALLER.set("somebody")
    flow.submit(step)
    await asyncio.sleep(0)
    assert told == ["nobody"]


# --- tasks ----------------------------------------------------------------------------------------


async def yielding(work: Work, name: str, cost_s: float, times: int) -> str:
    for _ in range(times):
        work.now_s += cost_s
        work.ran.append(name)
        await asyncio.sleep(0)
    return name


async def test_each_step_of_a_task_waits_for_its_turn() -> None:
    work = Work()
    flow = work.queue.flow("a")
    work.queue.charge(flow, 50 * MS)
    tasks = [
        asyncio.get_running_loop().create_task(flow.meter(yielding(work, str(number), MS, 5)))
        for number in range(20)
    ]
    for _ in range(60):
        # What was granted before a step's cost is known is a handful.
        assert len(await work.iterate()) <= 12
    assert await asyncio.gather(*tasks) == [str(number) for number in range(20)]


@pytest.mark.parametrize("is_waiting", [False, True])
async def test_a_task_can_be_cancelled(is_waiting: bool) -> None:  # noqa: FBT001
    work = Work()
    flow = work.queue.flow("a")
    if is_waiting:
        work.queue.charge(flow, 50 * MS)
    task = asyncio.get_running_loop().create_task(flow.meter(yielding(work, "a", MS, 5)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await work.repay()
    assert len(work.ran) <= 1


async def test_a_task_returns_and_raises_what_its_coroutine_does() -> None:
    flow = FairQueue().flow("a")

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await asyncio.get_running_loop().create_task(flow.meter(fail()))
    assert await flow.meter(yielding(Work(), "done", 0.0, 1)) == "done"


async def test_a_coroutine_that_is_never_run_can_be_closed() -> None:
    flow = FairQueue().flow("a")
    flow.meter(yielding(Work(), "never", 0.0, 1)).close()


async def test_one_loop_has_one_queue() -> None:
    assert queue_of_running_loop() is queue_of_running_loop()


async def test_a_client_runs_its_steps_in_the_next_iteration() -> None:
    ran: list[float] = []

    def step(until_s: float) -> bool:
        ran.append(until_s)
        return len(ran) < 3

    UNSHARED.submit(step)
    assert not ran
    for _ in range(4):
        await asyncio.sleep(0)
    assert ran == [float("inf")] * 3
