"""The check of a replica that answers: the one that was addressed, or another one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft import messages as m
from quorate.raft.api import Peer
from quorate.raft.identity.peer_identity import (
    ReplicaIdentity,
    addressed,
    identity_problem,
    needs_check,
    outcome,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Millis, NodeId, Offset, ReplicaKey
from tests.unit.raft import cores

OWN = ReplicaIdentity(cores.CLUSTER, cores.key(1))
LEADER = m.LeaderInfo(NodeId(1), Epoch(4))
PEER = Peer(NodeId(2), "two.example", 9094)
VOTE = m.VoteRequest(
    cluster_id=cores.CLUSTER,
    voter=cores.key(2),
    replica=cores.key(1),
    replica_epoch=Epoch(3),
    last=cores.end(7, 2),
    pre_vote=True,
)
BEGIN = m.BeginQuorumEpochRequest(cores.CLUSTER, cores.key(2), NodeId(1), Epoch(4), ())
END = m.EndQuorumEpochRequest(cores.CLUSTER, NodeId(1), Epoch(4), ())
FETCH = m.FetchRequest(
    cluster_id=cores.CLUSTER,
    replica=cores.key(1),
    current_leader_epoch=Epoch(4),
    fetch_offset=Offset(7),
    last_fetched_epoch=Epoch(4),
    max_wait_ms=Millis(0),
    max_bytes=1,
)
SNAPSHOT = m.FetchSnapshotRequest(
    cluster_id=cores.CLUSTER,
    replica=cores.key(1),
    current_leader_epoch=Epoch(4),
    snapshot_id=cores.end(7, 2),
    position=0,
    max_bytes=1,
)
UPDATE = m.UpdateRaftVoterRequest(
    cluster_id=cores.CLUSTER,
    current_leader_epoch=Epoch(4),
    voter=cores.key(1),
    listeners=(),
    kraft_version_min=0,
    kraft_version_max=1,
)
WRONG = ErrorCode.INVALID_VOTER_KEY
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("request_", "answer", "is_needed"),
    [
        (VOTE, m.VoteResponse(ErrorCode.NONE, LEADER), False),
        (VOTE, m.VoteResponse(WRONG, LEADER), True),
        (VOTE, m.VoteResponse(ErrorCode.INCONSISTENT_CLUSTER_ID, LEADER), True),
        (BEGIN, m.BeginQuorumEpochResponse(ErrorCode.NONE, LEADER), False),
        (BEGIN, m.BeginQuorumEpochResponse(WRONG, LEADER), True),
        (END, m.EndQuorumEpochResponse(ErrorCode.NONE, LEADER), True),
        (FETCH, m.FetchResponse(error=ErrorCode.NONE, leader=LEADER), False),
        (FETCH, m.FetchResponse(error=NOT_LEADER, leader=LEADER), True),
        (SNAPSHOT, m.FetchSnapshotResponse(error=NOT_LEADER, leader=LEADER), True),
        (
            SNAPSHOT,
            m.FetchSnapshotResponse(error=ErrorCode.SNAPSHOT_NOT_FOUND, leader=LEADER),
            False,
        ),
        (UPDATE, m.MembershipResponse(NOT_LEADER, "", LEADER), True),
    ],
)
def test_an_answer_that_another_replica_could_give_needs_a_check(
    request_: m.PeerRequest, answer: m.PeerResponse, *, is_needed: bool
) -> None:
    assert needs_check(request_, answer) is is_needed


def test_a_request_names_its_replica_with_the_directory_where_it_can() -> None:
    assert [addressed(PEER, each) for each in (VOTE, BEGIN)] == [cores.key(2)] * 2
    assert [addressed(PEER, each) for each in (END, FETCH, SNAPSHOT, UPDATE)] == [
        ReplicaKey(NodeId(2))
    ] * 4


def found(key: ReplicaKey) -> m.ApiVersionsResponse:
    return m.ApiVersionsResponse(
        error=ErrorCode.NONE,
        cluster_id=cores.CLUSTER,
        key=key,
        kraft_version_min=0,
        kraft_version_max=1,
    )


SERVER = ReplicaKey(NodeId(-2))


@pytest.mark.parametrize("wanted", [cores.key(2), ReplicaKey(NodeId(2)), SERVER])
def test_the_right_replica_is_no_problem(wanted: ReplicaKey) -> None:
    assert identity_problem(wanted, found(cores.key(2)), OWN) is None


def test_what_is_found_in_place_of_a_replica_is_named() -> None:
    def words(wanted: ReplicaKey, answer: m.ApiVersionsResponse) -> str | None:
        return identity_problem(wanted, answer, OWN)

    two, three = cores.key(2), cores.key(3)
    assert words(ReplicaKey(NodeId(2)), found(three)) == f"node {three}, not node 2"
    newer = replace(two, directory_id=three.directory_id)
    assert words(two, found(newer)) == f"node {newer}, not node {two}"
    own = f"this process, node {OWN.key}, not"
    assert words(two, found(OWN.key)) == f"{own} node {two}"
    assert words(SERVER, found(OWN.key)) == f"{own} another controller"
    other = replace(found(two), cluster_id=ClusterId("other"))
    cluster = f"node {two} of cluster other, not"
    assert words(two, other) == f"{cluster} node {two} of cluster {cores.CLUSTER}"
    assert words(SERVER, other) == f"{cluster} another controller of cluster {cores.CLUSTER}"


def test_an_outcome_says_what_was_answered() -> None:
    granted = m.VoteResponse(ErrorCode.NONE, LEADER, vote_granted=True)
    rejected = m.VoteResponse(ErrorCode.NONE, LEADER, refusal=m.VoteRefusal.LOG_BEHIND)
    assert outcome(VOTE, granted) == "grants a vote"
    assert outcome(VOTE, rejected) == "rejects a vote (log_behind)"
    wrong = m.VoteResponse(WRONG, LEADER)
    assert outcome(VOTE, wrong) == "answers Vote with INVALID_VOTER_KEY"
    fetched = m.FetchResponse(error=NOT_LEADER, leader=m.LeaderInfo(None, Epoch(4)))
    text = "answers Fetch with NOT_LEADER_OR_FOLLOWER and names"
    assert outcome(FETCH, fetched) == f"{text} no leader in epoch 4"
    assert outcome(FETCH, replace(fetched, leader=LEADER)) == f"{text} leader 1 in epoch 4"
