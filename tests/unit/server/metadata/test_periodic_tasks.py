from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from quorate.controller.authorization.authorizer import Caller
from quorate.controller.brokers.messages import BrokerHeartbeat
from quorate.controller.decision import Decision
from quorate.records.ids import Offset
from quorate.server.host import Host
from quorate.server.metadata.decision_queue import DecisionQueue, QueuedRequest
from quorate.server.metadata.periodic_tasks import (
    AGAIN_FIRST_MS,
    AGAIN_LONGEST_MS,
    SWEEP_AFTER_MS,
    PeriodicTasks,
)
from quorate.server.metadata.session_clock import LAST_CALL_MS, TICK_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from quorate.controller.request_types import Sender


@dataclass
class Decider:
    """A controller of which only its own decisions are left; it has `slices` to decide."""

    wake_at_ms: int | None = None
    slices: list[Decision | None] = field(default_factory=lambda: [None])
    is_active: bool = True
    is_deciding: bool = False
    exit_reason: None = None
    is_stopping: bool = False
    asked_ms: list[int] = field(default_factory=list)
    renewed_ms: list[int] = field(default_factory=list)
    waiting: Container[Sender] = ()
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    host: Host = field(default_factory=Host)

    def expire(self, now_ms: int, waiting: Container[Sender]) -> Decision | None:
        self.waiting = waiting
        self.asked_ms.append(now_ms)
        self.asked.set()
        decision, *self.slices = self.slices
        if not self.slices:
            self.wake_at_ms = None
        return decision

    def reset_timers(self, now_ms: int) -> None:
        self.renewed_ms.append(now_ms)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the time that the expiry reads."""

    def set_ms(now_ms: int) -> None:
        monkeypatch.setattr(Host, "monotonic_ms", lambda _: now_ms)

    set_ms(1000)
    return set_ms


def expiry_of(
    decider: Any,  # noqa: ANN401 - a stand-in for driver and controller
    accept: Callable[[Decision], None] = lambda _: None,
    waiting: DecisionQueue | None = None,
) -> PeriodicTasks:
    return PeriodicTasks(decider, decider, waiting or DecisionQueue(), accept, pause_ms=3000)


def by_hand(
    wake_ms: int | None, accept: Callable[[Decision], None] = lambda _: None
) -> tuple[Decider, Timers, PeriodicTasks]:
    """An expiry of a controller that has become active, whose timers run out by hand."""
    decider, timers = Decider(wake_at_ms=wake_ms), Timers([])
    expiry = expiry_of(decider, accept)
    expiry._loop = timers  # type: ignore[assignment]
    expiry.begin(expiry._driver.host.monotonic_ms())
    return decider, timers, expiry


@pytest.mark.parametrize(("stood_ms", "renewed"), [(3000, []), (3001, [1000 + TICK_MS + 3001])])
async def test_sessions_begin_again_after_a_pause_in_which_no_broker_could_be_heard(
    clock: Callable[[int], None], stood_ms: int, renewed: list[int]
) -> None:
    decider, _, expiry = by_hand(wake_ms=1000)
    clock(1000 + TICK_MS + stood_ms)
    expiry._due()
    assert decider.renewed_ms == renewed


async def test_a_pause_is_seen_while_a_slice_waits_for_its_commit(
    clock: Callable[[int], None],
) -> None:
    decider, _, expiry = by_hand(wake_ms=0)
    decider.slices = [slice_of(4, 7), None]
    expiry._due()
    assert (decider.asked_ms, decider.wake_at_ms) == ([1000 - LAST_CALL_MS], 0)
    decider.wake_at_ms = 9000
    clock(11_000)
    # The commit comes before the tick: it may not fence immediately either.
    expiry.committed(Offset(7))
    expiry._due()
    assert (decider.renewed_ms, decider.asked_ms[1:]) == ([11_000], [11_000 - LAST_CALL_MS])


async def test_a_tick_sees_a_pause_while_no_other_timer_runs(clock: Callable[[int], None]) -> None:
    decider, timers, expiry = by_hand(wake_ms=None)
    assert timers.delays == [TICK_MS / 1000]
    for now_ms in range(1050, 2000, TICK_MS):
        clock(now_ms)
        expiry._tick()
    assert decider.renewed_ms == []
    clock(11_000)
    expiry._tick()
    assert decider.renewed_ms == [11_000]
    assert set(timers.delays) == {TICK_MS / 1000}


async def test_who_does_not_lead_any_more_ticks_no_more(clock: Callable[[int], None]) -> None:
    decider, timers, expiry = by_hand(wake_ms=9000)
    expiry.stop()
    assert timers.cancelled == len(timers.delays) == 2
    decider.is_active = False
    clock(11_000)
    expiry._tick()
    assert decider.renewed_ms == []


async def test_what_is_due_waits_for_a_last_call_in_which_what_has_come_is_read(
    clock: Callable[[int], None],
) -> None:
    decider, timers, expiry = by_hand(wake_ms=1100)
    assert timers.delays[1:] == [(100 + LAST_CALL_MS) / 1000]
    for now_ms in (1050, 1100):
        clock(now_ms)
        expiry.look()
    expiry._due()
    assert (timers.delays[2:], decider.asked_ms) == ([LAST_CALL_MS / 1000], [])
    # All brokers sent heartbeats in that time.
    decider.wake_at_ms = 1200
    clock(1100 + LAST_CALL_MS)
    expiry._due()
    assert decider.asked_ms == []
    for now_ms in (1200, 1200 + LAST_CALL_MS):
        clock(now_ms)
        expiry._due()
    assert decider.asked_ms == [1200]


@pytest.mark.usefixtures("clock")
async def test_what_is_decided_at_once_is_decided_by_the_time_before_the_last_call() -> None:
    """So that it fences no broker whose heartbeat may not be read yet."""
    decider, _, expiry = by_hand(wake_ms=0)
    expiry._due()
    assert decider.asked_ms == [1000 - LAST_CALL_MS]


@pytest.mark.parametrize("comes_first", ["_due", "_tick", "catch_up"])
async def test_a_loop_that_stood_reads_for_as_long_as_it_stood(
    clock: Callable[[int], None], comes_first: str
) -> None:
    decider, _, expiry = by_hand(wake_ms=1010)
    expiry._is_held_up = comes_first == "catch_up"
    clock(1000 + TICK_MS + 700)
    getattr(expiry, comes_first)()
    for now_ms in range(1750, 2450, TICK_MS):
        clock(now_ms)
        expiry._tick()
        expiry._due()
    # Requests of that time are decided by the time at which the loop stood first.
    assert set(decider.asked_ms) <= {1000 - LAST_CALL_MS}
    decider.wake_at_ms = 1010
    clock(2450)
    expiry._due()
    assert decider.asked_ms[-1] == 2450 - LAST_CALL_MS
    assert decider.renewed_ms == []


@pytest.mark.usefixtures("clock")
async def test_brokers_whose_heartbeats_wait_for_their_decisions_are_excused() -> None:
    waiting, decider = DecisionQueue(), Decider(wake_at_ms=0)
    beat = BrokerHeartbeat(broker_id=1, broker_epoch=5, current_metadata_offset=Offset(7))
    future = asyncio.get_running_loop().create_future()
    assert waiting.add(QueuedRequest(beat, Caller("User:broker"), future, sender=(1, 5)))
    expiry_of(decider, waiting=waiting).arm()
    await decider.asked.wait()
    assert (1, 5) in decider.waiting
    assert (1, 6) not in decider.waiting


@pytest.mark.usefixtures("clock")
async def test_what_is_due_during_a_decision_is_decided_behind_it() -> None:
    decider = Decider(wake_at_ms=0, is_deciding=True)
    expiry = expiry_of(decider)
    expiry.arm()
    for _ in range(3):
        await asyncio.sleep(0)
    assert decider.asked_ms == []
    decider.is_deciding = False
    expiry.catch_up()
    assert decider.asked_ms == [1000 - LAST_CALL_MS]


@pytest.mark.usefixtures("clock")
async def test_the_earliest_time_counts() -> None:
    decider = Decider(wake_at_ms=1_000_000)
    expiry = expiry_of(decider)
    expiry.arm()
    decider.wake_at_ms = 0
    expiry.arm()
    decider.wake_at_ms = 2_000_000
    expiry.arm()
    decider.wake_at_ms = 0
    await decider.asked.wait()
    assert decider.asked_ms == [1000 - LAST_CALL_MS]


@pytest.mark.usefixtures("clock")
async def test_who_does_not_lead_any_more_decides_nothing() -> None:
    decider = Decider(wake_at_ms=0)
    expiry = expiry_of(decider)
    expiry.arm()
    expiry.stop()
    expiry.arm()
    decider.is_active = False
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert decider.asked_ms == []


@pytest.mark.usefixtures("clock")
async def test_the_next_slice_waits_until_the_last_one_is_committed() -> None:
    slices = [slice_of(4, 7), slice_of(7, 7), slice_of(7, 9), None]
    decider = Decider(0, list(slices))
    accepted: list[Decision] = []
    expiry = expiry_of(decider, accepted.append)
    expiry.arm()
    await decider.asked.wait()
    assert accepted == slices[:1]
    decider.asked.clear()
    for _ in range(3):
        expiry.arm()
        expiry.committed(Offset(6))
        await asyncio.sleep(0)
    assert not decider.asked.is_set()
    expiry.committed(Offset(7))
    # What found nothing to change has nothing to wait for.
    await until(lambda: len(accepted) == 2)
    assert accepted[1] == slices[2]
    expiry.committed(Offset(12))
    await until(lambda: not decider.slices)
    assert len(accepted) == 2


@pytest.mark.usefixtures("clock")
async def test_lost_leadership_waits_for_no_commit_any_more() -> None:
    decider = Decider(0, [slice_of(4, 7), slice_of(4, 7)])
    accepted: list[Decision] = []
    expiry = expiry_of(decider, accepted.append)
    expiry.arm()
    await until(lambda: len(accepted) == 1)
    expiry.stop()
    expiry.arm()
    await until(lambda: len(accepted) == 2)


async def test_writers_go_before_what_a_predecessor_left(clock: Callable[[int], None]) -> None:
    decider = Decider(wake_at_ms=0)
    delays: list[float] = []
    expiry = expiry_of(decider)
    expiry._loop = Timers(delays)  # type: ignore[assignment]
    expiry.begin(expiry._driver.host.monotonic_ms())
    clock(1000 + SWEEP_AFTER_MS)
    expiry.stop()
    expiry.arm()
    assert delays == [TICK_MS / 1000, SWEEP_AFTER_MS / 1000, 0]


class Timers:
    """A loop that only notes for how long it is asked to wait."""

    def __init__(self, delays: list[float]) -> None:
        self.delays = delays
        self.cancelled = 0

    def call_later(self, delay_s: float, _: Callable[[], None]) -> Timers:
        self.delays.append(delay_s)
        return self

    def cancel(self) -> None:
        self.cancelled += 1


def slice_of(base: int, end: int) -> Decision:
    return Decision(
        values=(b"",) * (end - base),
        reply=None,
        base_offset=Offset(base),
        end_offset=Offset(end),
    )


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run, as often as it takes."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is looked at has no event
            await asyncio.sleep(0)


async def test_what_could_not_be_decided_is_tried_again_ever_later(
    clock: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    decider = Decider(wake_at_ms=0)
    delays: list[float] = []
    expiry = expiry_of(decider)
    expiry._loop = Timers(delays)  # type: ignore[assignment]

    def fails(_now_ms: int, _waiting: Container[Sender]) -> Decision | None:
        raise KeyError("a defect")

    monkeypatch.setattr(decider, "expire", fails)
    expiry.arm()
    for _ in range(12):
        expiry._due()
        clock(expiry._timer_ms)
    assert len(delays) == 13
    assert AGAIN_FIRST_MS / 2 <= delays[1] * 1000 <= AGAIN_FIRST_MS + 1
    assert AGAIN_LONGEST_MS / 2 <= delays[-1] * 1000 <= AGAIN_LONGEST_MS + 1
    assert set(caplog.messages) == {"no decision on what is due"}
    monkeypatch.undo()
    decider.slices = [None, None]
    expiry._expire()
    assert decider.asked_ms
    assert delays[-1] * 1000 <= AGAIN_LONGEST_MS + 1


@pytest.mark.usefixtures("clock")
async def test_a_decision_that_cannot_be_taken_goes_where_other_defects_go() -> None:
    decider = Decider(0, [slice_of(4, 7), None])
    failures: list[Exception] = []

    def refuse(_decision: Decision) -> None:
        raise RuntimeError("a defect")

    decider.fail = failures.append  # type: ignore[attr-defined]
    expiry = expiry_of(decider, refuse)
    expiry.arm()
    await until(lambda: bool(failures))
    assert str(failures[0]) == "a defect"


@pytest.mark.usefixtures("clock")
async def test_a_controller_that_is_active_again_has_one_tick() -> None:
    _, timers, expiry = by_hand(wake_ms=9000)
    expiry.begin(1000)
    expiry.stop()
    assert timers.cancelled == len(timers.delays)


@pytest.mark.usefixtures("clock")
async def test_what_was_due_during_a_decision_is_tried_again_after_a_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decider, _, expiry = by_hand(wake_ms=0)
    tried: list[int] = []

    def fails(now_ms: int, _: Container[Sender]) -> None:
        tried.append(now_ms)
        raise KeyError("a defect")

    monkeypatch.setattr(decider, "expire", fails)
    decider.is_deciding = True
    expiry._due()
    decider.is_deciding = False
    expiry._due()
    expiry.catch_up()
    assert len(tried) == 1
