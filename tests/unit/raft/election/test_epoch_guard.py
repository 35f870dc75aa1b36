"""Checks of others' messages: their epochs, their rejections, their responses of long ago."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.epoch_guard import (
    ASKED_MAX,
    EPOCH_ACCEPTED_MAX,
    EPOCH_JUMP_MAX,
    EPOCH_MAX,
)
from quorate.raft.request_manager import RequestKind
from quorate.raft.trace_events import RoleChangeCause
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId, ClusterId, Epoch, Millis, NodeId, ReplicaKey
from tests.unit.raft import cores
from tests.unit.raft.expecting import WatchedCore, expect, saved, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

FAR = [EPOCH_MAX, EPOCH_ACCEPTED_MAX + 1, EPOCH_JUMP_MAX + 2]


def requests(epoch: int) -> list[m.Request]:
    """All requests that show replica 1 such an epoch."""
    leader, claimed = NodeId(2), Epoch(epoch)
    return [
        cores.vote(2, 1, epoch, cores.end(9, 1)),
        cores.vote(2, 1, epoch, cores.end(9, 1), pre_vote=True),
        m.BeginQuorumEpochRequest(cores.CLUSTER, cores.key(1), leader, claimed, cores.endpoints(2)),
        m.EndQuorumEpochRequest(cores.CLUSTER, leader, claimed, ()),
    ]


@pytest.mark.rule("input_bounds")
@pytest.mark.parametrize("epoch", FAR)
@pytest.mark.parametrize("which", range(4))
def test_no_request_brings_an_epoch_that_nobody_can_explain(epoch: int, which: int) -> None:
    core = cores.leader()
    (reply,) = cores.replies(cores.ask(core, requests(epoch)[which], now_ms=2001))
    assert isinstance(reply, m.VoteResponse | m.BeginQuorumEpochResponse | m.EndQuorumEpochResponse)
    assert (reply.error, reply.leader) == (ErrorCode.INVALID_REQUEST, m.NOTHING_KNOWN)
    assert told(core).role == "leader"
    assert told(core).epoch == 1


@pytest.mark.parametrize("which", range(4))
def test_the_epoch_of_a_recovery_and_of_many_elections_is_believed(which: int) -> None:
    core = cores.leader()
    cores.ask(core, requests(1 + EPOCH_JUMP_MAX)[which], now_ms=2001)
    assert told(core).epoch == 1 + EPOCH_JUMP_MAX


def test_the_epochs_are_not_used_up_in_many_steps_either() -> None:
    core = cores.unattached()
    for now_ms in range(10, 10_000, 50):
        claimed = told(core).epoch + EPOCH_JUMP_MAX // 2
        cores.ask(core, cores.vote(2, 1, claimed, cores.end(0, 0)), now_ms=now_ms)
        cores.ask(core, cores.vote(2, 1, told(core).epoch + 1, cores.end(0, 0)), now_ms=now_ms)
    assert EPOCH_JUMP_MAX // 2 < told(core).epoch <= EPOCH_JUMP_MAX + 1000


def asking(epoch: int = 1) -> tuple[RaftCore, CallId]:
    """A nominee, and its request for the pre-vote of replica 2."""
    core = cores.unattached()
    core.transitions.become_unattached(Epoch(epoch), RoleChangeCause.HIGHER_EPOCH, "test")
    call, _ = cores.calls(core.step(api.TimerFired(), Millis(1500)))[2]
    assert told(core).role == "prospective"
    return core, call


def vote_answer(error: ErrorCode, epoch: int, leader: int | None = 3) -> m.VoteResponse:
    leader_id = None if leader is None else NodeId(leader)
    endpoints = () if leader is None else cores.endpoints(leader)
    return m.VoteResponse(error, m.LeaderInfo(leader_id, Epoch(epoch), endpoints))


@pytest.mark.parametrize("epoch", [EPOCH_JUMP_MAX * 5, ASKED_MAX])
def test_a_voter_that_was_asked_may_be_far_ahead(epoch: int) -> None:
    """Or a replica that was away for long could never follow again."""
    core, call = asking()
    answer = vote_answer(ErrorCode.FENCED_LEADER_EPOCH, epoch)
    cores.answer(core, call, answer, now_ms=1501)
    assert told(core).epoch == epoch
    assert told(core).role == "follower"


@pytest.mark.parametrize("epoch", [EPOCH_MAX, ASKED_MAX + 1])
def test_an_answer_brings_no_epoch_near_the_last_one(epoch: int) -> None:
    core, call = asking()
    answer = vote_answer(ErrorCode.FENCED_LEADER_EPOCH, epoch)
    cores.answer(core, call, answer, now_ms=1501)
    assert told(core).epoch == 1


def test_beyond_what_is_believed_at_once_elections_go_on() -> None:
    core, call = asking(ASKED_MAX + 5)
    answer = vote_answer(ErrorCode.FENCED_LEADER_EPOCH, ASKED_MAX + 6)
    cores.answer(core, call, answer, now_ms=1501)
    assert told(core).epoch == ASKED_MAX + 6


@pytest.mark.rule("no_state_from_rejections")
@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_VERSION,
    ],
)
def test_what_is_refused_outright_teaches_nothing(error: ErrorCode) -> None:
    core, call = asking()
    cores.answer(core, call, vote_answer(error, 7), now_ms=1501)
    assert told(core).epoch == 1
    assert told(core).leader_id is None
    assert told(core).role == "prospective"
    assert cores.described(core, now_ms=1502).heard == ()


@pytest.mark.rule("no_state_from_rejections")
def test_no_answer_of_another_cluster_deposes_a_leader() -> None:
    """Another cluster's controller has taken over the address of a dead voter."""
    core = cores.leader()
    (call, *_) = cores.open_calls(core, RequestKind.BEGIN_QUORUM_EPOCH)
    info = m.LeaderInfo(NodeId(3), Epoch(9), cores.endpoints(3))
    answer = m.BeginQuorumEpochResponse(ErrorCode.INCONSISTENT_CLUSTER_ID, info)
    cores.answer(core, call.call, answer, now_ms=2001)
    assert told(core).role == "leader"
    assert told(core).epoch == 1


@pytest.mark.rule("no_state_from_rejections")
@pytest.mark.parametrize("is_following", [True, False])
def test_no_fetch_answer_of_another_cluster_names_a_leader(*, is_following: bool) -> None:
    core = cores.unattached(2)
    update = cores.begin(core, 1, 1, now_ms=1)
    if not is_following:
        core = WatchedCore(cores.config(2), cores.recovered(1, 2, 3), cores.Midway())
        update = core.start(Millis(0))
    before = (told(core), saved(core))
    (call, _), *_ = cores.calls(update).values()
    info = m.LeaderInfo(NodeId(3), Epoch(9), cores.endpoints(3))
    answer = m.FetchResponse(error=ErrorCode.INCONSISTENT_CLUSTER_ID, leader=info)
    cores.answer(core, call, answer, now_ms=2)
    assert (told(core), saved(core)) == before


@pytest.mark.rule("no_state_from_rejections")
def test_another_cluster_is_not_told_who_leads_here() -> None:
    core = cores.follower()
    request = cores.vote(3, 2, 2, cores.end(0, 0))
    stranger = m.VoteRequest(
        cluster_id=ClusterId("other"),
        voter=request.voter,
        replica=request.replica,
        replica_epoch=request.replica_epoch,
        last=request.last,
        pre_vote=False,
    )
    (reply,) = cores.replies(cores.ask(core, stranger, now_ms=2))
    assert isinstance(reply, m.VoteResponse)
    assert (reply.error, reply.leader) == (ErrorCode.INCONSISTENT_CLUSTER_ID, m.NOTHING_KNOWN)


@pytest.mark.rule("no_state_from_rejections")
def test_a_voter_key_that_does_not_fit_hides_no_epoch_and_no_leader() -> None:
    core = cores.unattached()
    wrong = ReplicaKey(NodeId(1), cores.key(9).directory_id)
    asked = cores.vote(2, 1, 5, cores.end(0, 0))
    request = m.VoteRequest(
        cluster_id=cores.CLUSTER,
        voter=wrong,
        replica=asked.replica,
        replica_epoch=Epoch(5),
        last=asked.last,
        pre_vote=False,
    )
    (vote,) = cores.replies(cores.ask(core, request, now_ms=1))
    assert isinstance(vote, m.VoteResponse)
    assert (vote.error, vote.vote_granted) == (ErrorCode.INVALID_VOTER_KEY, False)
    assert told(core).role == "unattached"
    assert saved(core) == m.ElectionState(Epoch(5))
    begin = m.BeginQuorumEpochRequest(cores.CLUSTER, wrong, NodeId(2), Epoch(6), cores.endpoints(2))
    (reply,) = cores.replies(cores.ask(core, begin, now_ms=2))
    assert isinstance(reply, m.BeginQuorumEpochResponse)
    assert reply.error is ErrorCode.INVALID_VOTER_KEY
    assert saved(core) == m.ElectionState(Epoch(6), NodeId(2))
    assert told(core).role == "follower"


def test_a_fetch_answer_of_an_older_epoch_appends_nothing() -> None:
    core = cores.unattached(2)
    update = cores.begin(core, 1, 4, now_ms=1)
    (call, _), *_ = cores.calls(update).values()
    answer = m.FetchResponse(
        error=ErrorCode.NONE,
        leader=m.LeaderInfo(NodeId(1), Epoch(3), ()),
        high_watermark=cores.end(7, 1).offset,
    )
    expect(cores.answer(core, call, answer, now_ms=2), wake_at_ms=18)
    assert not core.has_live_leader
