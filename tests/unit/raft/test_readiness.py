"""A replica that could not lead now leaves an election to others."""

from __future__ import annotations

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.ids import Millis
from tests.unit.raft import cores
from tests.unit.raft.expecting import told


def test_rule_11_a_state_machine_that_loads_waits_once_an_epoch() -> None:
    core = cores.unattached()
    core.step(api.StateMachineProgress(ready=False), Millis(1))
    core.step(api.TimerFired(), Millis(1500))
    assert told(core).role == "unattached"
    core.step(api.TimerFired(), Millis(3000))
    assert told(core).role == "prospective"


def test_a_disk_that_confirms_something_is_slow_and_does_not_hang() -> None:
    core = cores.owing_a_flush(1, 2, 3)
    cores.ask(core, cores.fetch(2, 5, 1), now_ms=4000, token=2)
    cores.propose(core, now_ms=4000)
    half = api.LogFlushed(cores.end(5, 1), core.replica.log.generation)
    core.step(half, Millis(4999))
    core.step(api.TimerFired(), Millis(5001))
    assert told(core).role == "leader"
    assert core.replica.readiness.flush_deadline == 4999 + 3000
    cores.flush(core, now_ms=5002)
    assert core.replica.readiness.flush_deadline is None


def test_an_only_voter_with_a_disk_that_hangs_has_nobody_to_yield_to() -> None:
    core = cores.owing_a_flush(1)
    update = core.step(api.TimerFired(), Millis(9000))
    assert told(core).role == "leader"
    assert core.replica.readiness.is_disk_hanging
    assert update.wake_at_ms is None or update.wake_at_ms > 9000


def test_nobody_campaigns_while_its_own_disk_hangs() -> None:
    core = cores.owing_a_flush(1, 2, 3)
    core.step(api.TimerFired(), Millis(5001))
    cores.begin(core, 2, 2, now_ms=5100)
    for now_ms in range(5200, 60_000, 1000):
        update = core.step(api.TimerFired(), Millis(now_ms))
        votes = [r for _, r in cores.calls(update).values() if isinstance(r, m.VoteRequest)]
        assert votes == []
    assert not core.hears_leader
