"""The leader's side of replication: appends, fetches, the high watermark, check-quorum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.epoch_announcements import REPEAT_SHARE
from quorate.raft.identity.log_identity import marks_below
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import (
    DirectoryId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    ReplicaKey,
    ReplyToken,
)
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def test_a_proposal_of_another_epoch_is_refused() -> None:
    refusal = m.ProposalResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=cores.LEADER)
    expect(
        cores.propose(cores.leader(), epoch=2, token=9),
        api.SendReply(ReplyToken(9), refusal),
        wake_at_ms=3000,
    )


def test_a_leader_that_commits_its_own_removal_resigns() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    cores.append(core, cores.voters(2, 3), now_ms=2002)
    cores.ask(core, cores.fetch(2, 4, 1, wait_ms=0), now_ms=2003, token=2)
    assert told(core).role == "leader"
    update = cores.ask(core, cores.fetch(3, 4, 1, wait_ms=0), now_ms=2004, token=3)
    expect(
        update,
        traffic.fetch_refusal(3, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        traffic.end_sent(8, 2, 2, 3),
        traffic.end_sent(9, 3, 2, 3),
        cores.progress("resigned", 1, leader_id=1, high_watermark=4),
        wake_at_ms=2004 + cores.part_of_election_timeout(REPEAT_SHARE),
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "its own removal is committed: leader becomes resigned in epoch 1",
            ),
        ),
    )


def test_a_diverging_replica_is_told_where_the_epoch_ends() -> None:
    core = cores.leader()
    expect(
        cores.ask(core, cores.fetch(2, 5, 1), now_ms=2001),
        traffic.fetch_reply(
            1,
            diverging=cores.end(3, 1),
            voters_known=marks_below(core.replica.log, Offset(3)),
        ),
        wake_at_ms=3000,
    )


def test_a_replica_without_records_begins_with_the_newest_snapshot() -> None:
    """It gets the snapshot although the log has all records; a reader without an id gets these."""
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    core.step(api.SnapshotStored(m.SnapshotInfo(cores.end(0, 0), 100)), Millis(2002))
    from_format = cores.fetched(cores.ask(core, cores.fetch(3, 0, 0), now_ms=2003, token=3))
    assert from_format.snapshot_id is None
    core.step(api.SnapshotStored(m.SnapshotInfo(cores.end(3, 1), 100)), Millis(2004))
    answer = cores.fetched(cores.ask(core, cores.fetch(3, 0, 0), now_ms=2005, token=4))
    assert answer.snapshot_id == cores.end(3, 1)
    reader = replace(cores.fetch(3, 0, 0), replica=None)
    answer = cores.fetched(cores.ask(core, reader, now_ms=2006, token=5))
    assert answer.snapshot_id is None


def test_a_replica_behind_the_log_start_is_sent_to_the_snapshot() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    info = m.SnapshotInfo(cores.end(3, 1), 100)
    core.step(api.SnapshotStored(info), Millis(2002))
    core.step(api.LogCleaned(Offset(3), (info,)), Millis(2003))
    answer = cores.fetched(cores.ask(core, cores.fetch(3, 0, 0), now_ms=2004, token=3))
    assert answer.snapshot_id == cores.end(3, 1)
    request = m.FetchSnapshotRequest(
        cluster_id=cores.CLUSTER,
        replica=cores.key(3),
        current_leader_epoch=Epoch(1),
        snapshot_id=cores.end(3, 1),
        position=40,
        max_bytes=16,
    )
    cores.ask(core, request, now_ms=2004, token=5)
    core.step(api.SnapshotChecked(cores.end(3, 1), None), Millis(2005))
    (chunk,) = cores.replies(cores.ask(core, request, now_ms=2005, token=4))
    assert isinstance(chunk, m.FetchSnapshotResponse)
    assert chunk.chunk == m.SnapshotRange(snapshot_id=cores.end(3, 1), position=40, bytes_max=16)
    beyond = m.FetchSnapshotRequest(
        cluster_id=cores.CLUSTER,
        replica=cores.key(3),
        current_leader_epoch=Epoch(1),
        snapshot_id=cores.end(3, 1),
        position=100,
        max_bytes=16,
    )
    (error,) = cores.replies(cores.ask(core, beyond, now_ms=2006, token=5))
    assert isinstance(error, m.FetchSnapshotResponse)
    assert error.error is ErrorCode.POSITION_OUT_OF_RANGE


def test_fetches_of_other_epochs_and_clusters_are_refused() -> None:
    core = cores.leader()
    for epoch, error in (
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        update = cores.ask(core, cores.fetch(2, 0, 0, epoch=epoch), now_ms=2001)
        expect(update, traffic.fetch_refusal(1, error), wake_at_ms=3000)


def test_a_fetch_with_the_leader_s_own_id_is_refused() -> None:
    core = cores.leader()
    other = replace(cores.fetch(1, 3, 1), replica=ReplicaKey(NodeId(1), DirectoryId(b"o" * 16)))
    for request in (cores.fetch(1, 3, 1), other):
        answer = cores.fetched(cores.ask(core, request, now_ms=2001))
        assert answer.error is ErrorCode.INVALID_REQUEST
    state = cores.described(core, now_ms=2002)
    assert state.observers == ()
    assert {voter.key.node_id for voter in state.voters if voter.last_fetch_ms is not None} == {1}


def test_a_last_fetched_epoch_above_the_current_one_is_refused() -> None:
    core = cores.leader()
    answer = cores.fetched(cores.ask(core, cores.fetch(2, 3, 2), now_ms=2001))
    assert answer.error is ErrorCode.INVALID_REQUEST


def test_no_hint_at_a_step_down_carries_the_own_endpoints_under_another_s_id() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    request = m.BeginQuorumEpochRequest(
        cores.CLUSTER, cores.key(1), NodeId(3), Epoch(2), cores.endpoints(3)
    )
    hint = cores.fetched(cores.ask(core, request, now_ms=2002, token=2)).leader
    assert hint == m.LeaderInfo(NodeId(3), Epoch(2), cores.endpoints(3))


@pytest.mark.rule("disk_call_deadline")
def test_a_leader_whose_flush_does_not_return_resigns_although_others_commit() -> None:
    core = cores.owing_a_flush(1, 2, 3)
    for token, now_ms in enumerate(range(2100, 5000, 100), 100):
        for node_id in (2, 3):
            request = cores.fetch(node_id, 5, 1)
            update = cores.ask(core, request, now_ms=now_ms, token=token * 10 + node_id)
    assert told(core).high_watermark == 5
    assert update.wake_at_ms is not None
    assert update.wake_at_ms <= 2001 + 3000
    assert told(core).role == "leader"
    core.step(api.TimerFired(), Millis(5001))
    assert told(core).role == "resigned"
    assert "has not confirmed a flush for 3.0 s" in " ".join(core.status_warnings())


def preferred(core: RaftCore, *, now_ms: int) -> list[int]:
    """The successors that the leader names when it resigns, best first."""
    return cores.successors(core.step(api.ResignRequested("test"), Millis(now_ms)))


def test_the_voter_with_the_longest_log_is_the_best_successor() -> None:
    core = cores.grown_up_leader()
    cores.propose(core, now_ms=4401)
    cores.ask(core, cores.fetch(3, 5, 1), now_ms=4402, token=3)
    assert preferred(core, now_ms=4403) == [3, 2]


def test_a_successor_that_end_quorum_epoch_would_not_reach_comes_last() -> None:
    core = cores.grown_up_leader()
    cores.propose(core, now_ms=4401)
    cores.ask(core, cores.fetch(3, 5, 1), now_ms=4402, token=3)
    moved = replace(cores.fetch(3, 5, 1), replica_endpoints=cores.endpoints(9))
    cores.ask(core, moved, now_ms=4403, token=4)
    assert preferred(core, now_ms=4404) == [2, 3]


def test_a_successor_that_has_fallen_silent_comes_last() -> None:
    core = cores.grown_up_leader()
    cores.ask(core, cores.fetch(3, 3, 1), now_ms=5399, token=3)
    assert preferred(core, now_ms=5400) == [3, 2]


def test_a_successor_that_cannot_be_elected_comes_last_of_all() -> None:
    """A voter that lacks committed entries gets no majority, however good its contact is."""
    core = cores.grown_up_leader()
    cores.propose(core, now_ms=4401)
    cores.flush(core, now_ms=4402)
    moved = replace(cores.fetch(3, 5, 1), replica_endpoints=cores.endpoints(9))
    cores.ask(core, moved, now_ms=4403, token=4)
    assert told(core).high_watermark == 5
    assert preferred(core, now_ms=4404) == [3, 2]
