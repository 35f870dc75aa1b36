"""Discovery of a leader: its targets, its times, its use of answers (rule `leader_discovery`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.leader_discovery import IN_FLIGHT_MAX
from quorate.raft.request_manager import RequestKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId, Epoch, Millis, NodeId
from quorate.records.voters import Endpoint
from tests.unit.raft import cores
from tests.unit.raft.expecting import WatchedCore, expect, now_ms, told, unanswered

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

BOOTSTRAP = (("boot-4", 9094), ("boot-5", 9094))
NO_LEADER = m.FetchResponse(
    error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(None, Epoch(3))
)


def restarted(request_timeout_ms: Millis = Millis(2000)) -> RaftCore:
    """A voter whose disk names leader 2 of epoch 3."""
    election = m.ElectionState(Epoch(3), NodeId(2))
    state = cores.recovered(1, 2, 3, election=election)
    config = replace(
        cores.config(1), bootstrap_servers=BOOTSTRAP, request_timeout_ms=request_timeout_ms
    )
    core = WatchedCore(config, state, cores.Midway())
    core.start(Millis(0))
    return core


def discovery(core: RaftCore) -> CallId | None:
    """The oldest question who leads that has no answer yet."""
    return next((sent.call for sent in cores.open_calls(core, RequestKind.DISCOVERY)), None)


def let_pass(core: RaftCore, until_ms: int, *, refuse: bool) -> list[str]:
    """Leave all requests unanswered; return the hosts that were asked who leads."""
    asked: list[str] = []
    update = core.step(api.TimerFired(), Millis(0))
    while update.wake_at_ms is not None and update.wake_at_ms <= until_ms:
        now = max(update.wake_at_ms, now_ms(core))
        update = core.step(api.TimerFired(), now)
        asked += [
            sent.to.host
            for sent in cores.open_calls(core, RequestKind.DISCOVERY)
            if sent in update.effects
        ]
        for sent in unanswered(core) if refuse else ():
            update = cores.answer(core, sent.call, api.RequestFailure.DISCONNECTED, now_ms=now)
    return asked


@pytest.mark.rule("leader_discovery")
@pytest.mark.parametrize("refuse", [True, False])
def test_a_voter_that_knows_a_dead_leader_asks_everybody(*, refuse: bool) -> None:
    core = restarted()
    assert told(core).role == "follower"
    asked = let_pass(core, 60_000, refuse=refuse)
    assert set(asked) == {"node-2", "node-3", "boot-4", "boot-5"}


def test_an_address_that_swallows_questions_does_not_hold_up_the_others() -> None:
    core = restarted(request_timeout_ms=Millis(600_000))
    asked = let_pass(core, 590_000, refuse=False)
    assert set(asked) == {"boot-4", "boot-5", "node-2", "node-3"}
    assert len(asked) <= IN_FLIGHT_MAX


def test_a_late_answer_counts() -> None:
    core = restarted(request_timeout_ms=Millis(600_000))
    call = next_question(core)
    assert let_pass(core, 60_000, refuse=False)
    info = m.LeaderInfo(NodeId(4), Epoch(9), cores.endpoints(4))
    answer = m.FetchResponse(error=ErrorCode.FENCED_LEADER_EPOCH, leader=info)
    cores.answer(core, call, answer, now_ms=now_ms(core))
    assert told(core).epoch == 9


def test_the_leader_that_a_bootstrap_server_names_is_followed() -> None:
    core = restarted()
    let_pass(core, 6000, refuse=True)
    call = next_question(core)
    info = m.LeaderInfo(NodeId(4), Epoch(9), cores.endpoints(4))
    cores.answer(
        core,
        call,
        m.FetchResponse(error=ErrorCode.FENCED_LEADER_EPOCH, leader=info),
        now_ms=now_ms(core),
    )
    assert (told(core).role, told(core).leader_id, told(core).epoch) == ("follower", 4, 9)


def next_question(core: RaftCore) -> CallId:
    """The next discovery that is in flight."""
    update = core.step(api.TimerFired(), now_ms(core))
    while discovery(core) is None:
        assert update.wake_at_ms is not None
        update = core.step(api.TimerFired(), max(update.wake_at_ms, now_ms(core)))
    call = discovery(core)
    assert call is not None
    return call


def lost() -> RaftCore:
    """A voter that requests pre-votes again, since no voter answered the first time."""
    core = restarted()
    let_pass(core, 6000, refuse=False)
    while told(core).role != "prospective":
        wake = core.step(api.TimerFired(), now_ms(core)).wake_at_ms
        assert wake is not None
        core.step(api.TimerFired(), max(wake, now_ms(core)))
    return core


def test_the_name_of_the_lost_leader_does_not_end_the_election() -> None:
    core = lost()
    call = next_question(core)
    info = m.LeaderInfo(NodeId(2), Epoch(3), cores.endpoints(2))
    answer = m.FetchResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=info)
    expect(cores.answer(core, call, answer, now_ms=now_ms(core)), wake_at_ms=6247)
    assert told(core).role == "prospective"


def test_another_address_of_the_lost_leader_is_news() -> None:
    core = lost()
    call = next_question(core)
    there = (Endpoint("GRPC", "node-2", 9095),)
    info = m.LeaderInfo(NodeId(2), Epoch(3), there)
    answer = m.FetchResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=info)
    update = cores.answer(core, call, answer, now_ms=now_ms(core))
    assert cores.said(update) == ["leader 2 is at node-2:9095"]
    # It is asked there once the round is over.
    while not (fetches := cores.open_calls(core, RequestKind.FETCH)):
        assert update.wake_at_ms is not None
        update = core.step(api.TimerFired(), max(update.wake_at_ms, now_ms(core)))
    assert [sent.to for sent in fetches] == [api.Peer(NodeId(2), "node-2", 9095)]


def test_the_word_of_the_leader_itself_ends_the_election() -> None:
    core = lost()
    call = next_question(core)
    info = m.LeaderInfo(NodeId(2), Epoch(3), cores.endpoints(2))
    cores.answer(
        core,
        call,
        m.FetchResponse(error=ErrorCode.NONE, leader=info),
        now_ms=now_ms(core),
    )
    assert told(core).role == "follower"


def test_a_follower_that_is_answered_asks_nobody() -> None:
    core = cores.follower(2, 1)
    assert not core.leader_discovery.has_no_leader()


def test_a_bootstrap_server_of_another_cluster_is_told_once_and_teaches_nothing() -> None:
    core = cores.unattached()
    wrong = m.LeaderInfo(NodeId(9), Epoch(99), cores.endpoints(9))
    notes: list[str] = []
    now = 0
    for _ in range(30):
        call = discovery(core)
        if call is not None:
            answer = m.FetchResponse(error=ErrorCode.INCONSISTENT_CLUSTER_ID, leader=wrong)
            notes += cores.said(cores.answer(core, call, answer, now_ms=now))
        now += 30
        notes += cores.said(core.step(api.TimerFired(), Millis(now)))
    assert sum("another cluster" in note for note in notes) == 2
    assert told(core).role == "unattached"
    assert told(core).epoch == 0


def test_questions_come_ever_later() -> None:
    core = cores.started(1, cores.recovered(1, 2, 3, abstains=True))
    waits = []
    for _ in range(12):
        call = discovery(core)
        assert call is not None
        before = now_ms(core)
        update = cores.answer(core, call, NO_LEADER_YET, now_ms=before)
        assert update.wake_at_ms is not None
        waits.append(core.leader_discovery.next_ms - before)
        core.step(api.TimerFired(), core.leader_discovery.next_ms)
    assert waits[0] == cores.config().retry_backoff_ms * 5
    assert waits == sorted(waits)
    assert waits[-1] <= cores.config().election_timeout_ms // 2


NO_LEADER_YET = m.FetchResponse(
    error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(None, Epoch(0))
)
