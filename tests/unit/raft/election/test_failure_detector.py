"""A leader whose process is gone is missed early (rule `early_suspicion`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.failure_detector import SUSPICION_DELAY_MS, SUSPICION_RETRY_MS
from quorate.records.ids import Epoch, Millis, NodeId, OffsetAndEpoch
from tests.unit.raft import cores
from tests.unit.raft.expecting import told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def broken_stream(core: RaftCore, now_ms: int = 10) -> list[api.ProbeLeader]:
    """The follower's Fetch stream breaks: whom it asks then for a sign of life."""
    call = cores.under_way(core)
    update = cores.answer(core, call, api.RequestFailure.DISCONNECTED, now_ms=now_ms)
    return [effect for effect in update.effects if isinstance(effect, api.ProbeLeader)]


def refused_leader(now_ms: int = 10, core: RaftCore | None = None) -> RaftCore:
    """A follower whose stream broke, and whose connect to the leader was refused."""
    core = core or cores.heard()
    (probe,) = broken_stream(core, now_ms)
    core.step(api.ProbeCompleted(probe.call, refused=True), Millis(now_ms))
    return core


@pytest.mark.rule("early_suspicion")
def test_a_refused_connect_ends_the_wait_for_the_leader() -> None:
    core = refused_leader()
    asked = cores.vote(3, 2, 1, cores.end(0, 0), pre_vote=True)
    (response,) = cores.replies(cores.ask(core, asked, now_ms=11))
    assert isinstance(response, m.VoteResponse)
    assert response.vote_granted
    core.step(api.TimerFired(), Millis(10 + 25))
    assert told(core).role == "prospective"


@pytest.mark.rule("early_suspicion")
def test_a_connect_that_is_taken_leaves_the_leader_its_fetch_timeout() -> None:
    core = cores.heard()
    (probe,) = broken_stream(core)
    core.step(api.ProbeCompleted(probe.call, refused=False), Millis(10))
    core.step(api.TimerFired(), Millis(10 + SUSPICION_DELAY_MS))
    assert told(core).role == "follower"
    asked = cores.vote(3, 2, 1, cores.end(0, 0), pre_vote=True)
    (response,) = cores.replies(cores.ask(core, asked, now_ms=100))
    assert isinstance(response, m.VoteResponse)
    assert not response.vote_granted


def lost_the_first_round() -> RaftCore:
    """A follower that timed out on its leader early, and was rejected by all at 36 ms."""
    core = refused_leader()
    asked = cores.calls(core.step(api.TimerFired(), Millis(35)))
    refusal = cores.refused(core)
    for node_id in (1, 3):
        cores.answer(core, asked[node_id][0], refusal, now_ms=36)
    assert told(core).role == "follower"
    return core


@pytest.mark.rule("early_suspicion")
def test_a_lost_round_does_not_put_the_fetch_timeout_off() -> None:
    deadline = 1 + cores.config().fetch_timeout_ms
    core = lost_the_first_round()
    core.step(api.TimerFired(), Millis(deadline - 1))
    assert told(core).role == "follower"
    core.step(api.TimerFired(), Millis(deadline))
    assert told(core).role == "prospective"


@pytest.mark.rule("early_suspicion")
def test_after_a_lost_round_the_leader_is_tried_again() -> None:
    core = lost_the_first_round()
    again = core.step(api.TimerFired(), Millis(36 + SUSPICION_RETRY_MS))
    (probe,) = [effect for effect in again.effects if isinstance(effect, api.ProbeLeader)]
    core.step(api.ProbeCompleted(probe.call, refused=True), Millis(36 + SUSPICION_RETRY_MS))
    assert told(core).role == "prospective"


def follower_of_five_records() -> RaftCore:
    state = cores.recovered(
        1,
        2,
        3,
        log_end=cores.end(5, 1),
        epochs=(m.EpochStart(Epoch(1), cores.end(0, 0).offset),),
        election=m.ElectionState(Epoch(1)),
    )
    core = cores.started(2, state)
    cores.begin(core, 1, 1, now_ms=1)
    cores.answer(core, cores.under_way(core), cores.fetch_answer(), now_ms=1)
    return core


def lost_round(rival_end: OffsetAndEpoch) -> RaftCore:
    """A follower with five records lost its pre-votes, and a rival with this end asks at 400 ms."""
    core = refused_leader(core=follower_of_five_records())
    asked = cores.calls(core.step(api.TimerFired(), Millis(35)))
    refusal = cores.refused(core)
    for node_id in (1, 3):
        cores.answer(core, asked[node_id][0], refusal, now_ms=36)
    # Whether the leader is back is never told: its address is gone.
    core.step(api.TimerFired(), Millis(36 + SUSPICION_RETRY_MS))
    cores.ask(core, cores.vote(3, 2, 1, rival_end, pre_vote=True), now_ms=400)
    return core


@pytest.mark.rule("early_suspicion")
def test_a_lost_round_is_tried_again_when_a_rival_asks_that_cannot_win() -> None:
    core = lost_round(cores.end(4, 1))
    assert told(core).role == "follower"
    core.step(api.TimerFired(), Millis(400 + SUSPICION_DELAY_MS))
    assert told(core).role == "prospective"


@pytest.mark.rule("early_suspicion")
def test_a_rival_that_can_win_is_left_its_round() -> None:
    core = lost_round(cores.end(5, 1))
    core.step(api.TimerFired(), Millis(400 + SUSPICION_DELAY_MS))
    assert told(core).role == "follower"


@pytest.mark.rule("early_suspicion")
def test_a_rival_that_cannot_win_moves_nobody_that_hears_the_leader() -> None:
    core = follower_of_five_records()
    (probe,) = broken_stream(core)
    core.step(api.ProbeCompleted(probe.call, refused=False), Millis(10))
    stale = cores.vote(3, 2, 1, cores.end(0, 0), pre_vote=True)
    cores.ask(core, stale, now_ms=20)
    core.step(api.TimerFired(), Millis(20 + SUSPICION_DELAY_MS))
    assert told(core).role == "follower"


@pytest.mark.rule("early_suspicion")
def test_a_leader_that_told_its_end_is_not_suspected() -> None:
    """The order of its successors rules."""
    core = cores.heard()
    successors = (cores.key(3), cores.key(2))
    request = m.EndQuorumEpochRequest(cores.CLUSTER, NodeId(1), Epoch(1), successors)
    cores.ask(core, request, now_ms=9)
    assert broken_stream(core) == []


def test_who_may_not_campaign_any_more_does_not_when_the_draw_is_over() -> None:
    core = refused_leader()
    core.step(api.ShutdownRequested(Millis(1000)), Millis(11))
    core.step(api.TimerFired(), Millis(10 + 25))
    assert told(core).role != "prospective"
