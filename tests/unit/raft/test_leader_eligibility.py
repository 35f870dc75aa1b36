"""A replica that could not lead now leaves an election to others."""

from __future__ import annotations

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.ids import Millis
from tests.unit.raft import cores
from tests.unit.raft.expecting import expect, told


@pytest.mark.rule("unready_voter_waits")
def test_a_state_machine_that_loads_waits_once_an_epoch() -> None:
    core = cores.unattached()
    core.step(api.StateMachineProgress(ready=False), Millis(1))
    core.step(api.TimerFired(), Millis(1500))
    assert told(core).role == "unattached"
    core.step(api.TimerFired(), Millis(3000))
    assert told(core).role == "prospective"


@pytest.mark.parametrize("is_flushed", [False, True])
def test_a_disk_that_confirms_something_is_slow_and_does_not_hang(*, is_flushed: bool) -> None:
    core = cores.owing_a_flush(1, 2, 3)
    cores.ask(core, cores.fetch(2, 5, 1), now_ms=4000, token=2)
    cores.propose(core, now_ms=4000)
    core.step(api.LogFlushed(cores.end(5, 1), generation=0), Millis(4999))
    core.step(api.TimerFired(), Millis(5001))
    assert told(core).role == "leader"
    cores.ask(core, cores.fetch(2, 5, 1), now_ms=6000, token=3)
    late = Millis(4999 + 3000)
    if is_flushed:
        cores.flush(core, now_ms=late - 1)
    core.step(api.TimerFired(), Millis(late - 1))
    assert told(core).role == "leader"
    core.step(api.TimerFired(), late)
    assert told(core).role == ("leader" if is_flushed else "resigned")


def test_an_only_voter_with_a_disk_that_hangs_has_nobody_to_yield_to() -> None:
    core = cores.owing_a_flush(1)
    expect(core.step(api.TimerFired(), Millis(9000)), wake_at_ms=10_000)
    assert told(core).role == "leader"
    (remark,) = core.status_warnings()
    assert remark.startswith("the disk has not confirmed a flush for 7.0 s")


def test_nobody_campaigns_while_its_own_disk_hangs() -> None:
    core = cores.owing_a_flush(1, 2, 3)
    core.step(api.TimerFired(), Millis(5001))
    cores.begin(core, 2, 2, now_ms=5100)
    for now_ms in range(5200, 60_000, 1000):
        update = core.step(api.TimerFired(), Millis(now_ms))
        votes = [r for _, r in cores.calls(update).values() if isinstance(r, m.VoteRequest)]
        assert votes == []
    assert not core.has_live_leader
