"""A leader whose process is gone is missed early (rule 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.calls import CallKind
from quorate.raft.roles import Follower, Prospective
from quorate.records.ids import Millis
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def refused_leader(now_ms: int = 10) -> RaftCore:
    """A follower whose stream broke, and whose connect to the leader was refused."""
    core = cores.follower()
    assert isinstance(core.replica.role, Follower)
    core.replica.role.has_fetched = True
    calls = core.replica.calls._by_id.values()
    call = next(call for call in calls if call.kind is CallKind.FETCH)
    update = cores.answer(core, call.call, api.CallFailure.DISCONNECTED, now_ms=now_ms)
    (probe,) = [e for e in update.effects if isinstance(e, api.ProbeLeader)]
    core.step(api.ProbeAnswered(probe.call, refused=True), Millis(now_ms))
    return core


def test_rule_10_a_refused_connect_ends_the_wait_for_the_leader() -> None:
    core = refused_leader()
    asked = cores.vote(3, 2, 1, cores.end(0, 0), pre_vote=True)
    (response,) = cores.replies(cores.ask(core, asked, now_ms=11))
    assert isinstance(response, m.VoteResponse)
    assert response.vote_granted
    core.step(api.TimerFired(), Millis(10 + 25))
    assert isinstance(core.replica.role, Prospective)


def test_who_may_not_campaign_any_more_does_not_when_the_draw_is_over() -> None:
    core = refused_leader()
    core.step(api.ShutdownRequested(Millis(1000)), Millis(11))
    core.step(api.TimerFired(), Millis(10 + 25))
    assert not isinstance(core.replica.role, Prospective)
