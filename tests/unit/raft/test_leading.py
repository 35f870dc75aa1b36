"""The leader's side of replication: appends, fetches, the high watermark, check-quorum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.roles import Leader, Resigned
from quorate.records.control import KRaftVoters
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
from quorate.records.voters import Endpoint
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore
    from quorate.records.voters import VoterSet


def fetched(update: api.Update) -> m.FetchResponse:
    (response,) = [r for r in cores.replies(update) if isinstance(r, m.FetchResponse)]
    return response


def propose(core: object, *, now_ms: int = 2001, epoch: int = 1) -> api.Update:
    batch = api.ProposedBatch(b"x" * 70, 2)
    event = api.RecordsProposed(ReplyToken(9), Epoch(epoch), batch)
    return core.step(event, Millis(now_ms))  # type: ignore[attr-defined, no-any-return]


def test_the_epoch_start_rule_commits_nothing_before_a_record_of_the_own_epoch() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 0, 0), now_ms=2001)
    assert core.replica.high_watermark == 0
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2002, token=2)
    assert core.replica.high_watermark == 3


def test_the_leader_counts_itself_only_up_to_what_is_flushed() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    propose(core)
    cores.ask(core, cores.fetch(2, 5, 1), now_ms=2002, token=3)
    assert core.replica.high_watermark == 3
    cores.flush(core, now_ms=2003)
    assert core.replica.high_watermark == 5


def test_an_append_answers_the_parked_fetch_before_any_flush() -> None:
    core = cores.leader()
    assert cores.replies(cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)) == []
    update = propose(core)
    proposal, answer = cores.replies(update)
    assert isinstance(proposal, m.ProposalResponse)
    assert (proposal.base_offset, proposal.last_offset) == (3, 4)
    assert isinstance(answer, m.FetchResponse)
    assert answer.records == m.LogRange(Offset(3), Offset(5), 1024)


def test_a_proposal_of_another_epoch_is_refused() -> None:
    (answer,) = cores.replies(propose(cores.leader(), epoch=2))
    assert isinstance(answer, m.ProposalResponse)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_observer_is_served_committed_records_only() -> None:
    core = cores.leader()
    update = cores.ask(core, cores.fetch(7, 0, 0, wait_ms=0), now_ms=2001)
    assert fetched(update).records is None
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2002, token=2)
    update = cores.ask(core, cores.fetch(7, 0, 0, wait_ms=0), now_ms=2003, token=3)
    assert fetched(update).records == m.LogRange(Offset(0), Offset(3), 1024)


def test_rule_3_an_observer_that_becomes_a_voter_gets_its_parked_fetch_answered() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    cores.ask(core, cores.fetch(7, 3, 1), now_ms=2002, token=7)
    update = append(core, cores.voters(1, 2, 3, 7), now_ms=2003)
    assert fetched(update).records == m.LogRange(Offset(3), Offset(4), 1024)


def append(core: RaftCore, voters: VoterSet, *, now_ms: int) -> api.Update:
    core.replica.now = Millis(now_ms)
    core.leading.append_voters(KRaftVoters(voters))
    return core.step(api.TimerFired(), Millis(now_ms))


def test_rule_5_a_new_set_gets_a_whole_interval_before_its_quorum_is_checked() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    append(core, cores.voters(1, 2, 3, 4), now_ms=4900)
    assert isinstance(core.replica.role, Leader)
    assert core.replica.role.check_quorum_deadline == 4900 + 3000


def test_a_leader_that_commits_its_own_removal_resigns() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    append(core, cores.voters(2, 3), now_ms=2002)
    cores.ask(core, cores.fetch(2, 4, 1, wait_ms=0), now_ms=2003, token=2)
    assert isinstance(core.replica.role, Leader)
    update = cores.ask(core, cores.fetch(3, 4, 1, wait_ms=0), now_ms=2004, token=3)
    assert isinstance(core.replica.role, Resigned)
    assert fetched(update).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_diverging_replica_is_told_where_the_epoch_ends() -> None:
    core = cores.leader()
    answer = fetched(cores.ask(core, cores.fetch(2, 5, 1), now_ms=2001))
    assert answer.diverging == cores.end(3, 1)


def test_check_quorum_counts_only_those_whose_log_fits() -> None:
    """A replica that is told to cut, or sent to a snapshot, could commit nothing yet."""
    core = cores.leader()
    role = core.replica.role
    assert isinstance(role, Leader)
    before = role.check_quorum_deadline
    update = cores.ask(core, cores.fetch(2, 9, 1), now_ms=2500)
    assert fetched(update).diverging == cores.end(3, 1)
    assert role.check_quorum_deadline == before
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2501, token=2)
    assert role.check_quorum_deadline == 2501 + 3000


def test_check_quorum_does_not_count_who_is_sent_to_a_snapshot() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    info = m.SnapshotInfo(cores.end(3, 1), 100)
    core.step(api.SnapshotStored(info), Millis(2002))
    core.step(api.LogCleaned(Offset(3), (info,)), Millis(2003))
    role = core.replica.role
    assert isinstance(role, Leader)
    before = role.check_quorum_deadline
    assert fetched(cores.ask(core, cores.fetch(3, 0, 0), now_ms=2004, token=3)).snapshot_id
    assert role.check_quorum_deadline == before


def test_a_replica_behind_the_log_start_is_sent_to_the_snapshot() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    info = m.SnapshotInfo(cores.end(3, 1), 100)
    core.step(api.SnapshotStored(info), Millis(2002))
    core.step(api.LogCleaned(Offset(3), (info,)), Millis(2003))
    answer = fetched(cores.ask(core, cores.fetch(3, 0, 0), now_ms=2004, token=3))
    assert answer.snapshot_id == cores.end(3, 1)
    request = m.FetchSnapshotRequest(cores.CLUSTER, cores.key(3), Epoch(1), cores.end(3, 1), 40, 16)
    cores.ask(core, request, now_ms=2004, token=5)
    core.step(api.SnapshotChecked(cores.end(3, 1), None), Millis(2005))
    (chunk,) = cores.replies(cores.ask(core, request, now_ms=2005, token=4))
    assert isinstance(chunk, m.FetchSnapshotResponse)
    assert chunk.chunk == m.SnapshotRange(cores.end(3, 1), 40, 16)
    beyond = m.FetchSnapshotRequest(cores.CLUSTER, cores.key(3), Epoch(1), cores.end(3, 1), 100, 16)
    (error,) = cores.replies(cores.ask(core, beyond, now_ms=2006, token=5))
    assert isinstance(error, m.FetchSnapshotResponse)
    assert error.error is ErrorCode.POSITION_OUT_OF_RANGE


def test_rule_20_a_newer_fetch_of_a_replica_releases_the_older() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001, token=11)
    update = cores.ask(core, cores.fetch(2, 3, 1), now_ms=2002, token=12)
    (reply,) = [e for e in update.effects if isinstance(e, api.SendReply)]
    assert reply.token == 11


def test_a_parked_fetch_is_answered_empty_when_its_time_is_over() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    answer = fetched(core.step(api.TimerFired(), Millis(2501)))
    assert (answer.error, answer.records) == (ErrorCode.NONE, None)


def test_fetches_of_other_epochs_and_clusters_are_refused() -> None:
    core = cores.leader()
    old = cores.ask(core, cores.fetch(2, 0, 0, epoch=0), now_ms=2001)
    assert fetched(old).error is ErrorCode.FENCED_LEADER_EPOCH
    new = cores.ask(core, cores.fetch(2, 0, 0, epoch=2), now_ms=2002)
    assert fetched(new).error is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_check_quorum_a_leader_that_nobody_fetches_from_resigns_before_it_answers() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    update = cores.ask(core, cores.fetch(3, 3, 1), now_ms=2001 + 3000, token=3)
    assert isinstance(core.replica.role, Resigned)
    errors = [r.error for r in cores.replies(update) if isinstance(r, m.FetchResponse)]
    assert errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2


def test_the_high_watermark_is_unknown_before_the_own_epoch_has_committed() -> None:
    core = cores.leader()
    core.replica.high_watermark = Offset(1)
    core.replica.role.epoch_start = Offset(2)  # type: ignore[union-attr]
    answer = fetched(cores.ask(core, cores.fetch(2, 0, 0), now_ms=2001))
    assert answer.high_watermark == -1
    answer = fetched(cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2002, token=2))
    assert answer.high_watermark == 3


def answers_while_idle(
    core: RaftCore, request: m.FetchRequest, *, from_ms: int, until_ms: int
) -> int:
    """How often a fetcher that asks again at once is answered, with nothing to send."""
    count, now = 0, Millis(from_ms)
    update = cores.ask(core, request, now_ms=now, token=from_ms)
    while now <= until_ms:
        if any(isinstance(e, api.SendReply) and e.token == from_ms + count for e in update.effects):
            count += 1
            update = cores.ask(core, request, now_ms=now, token=from_ms + count)
            continue
        assert update.wake_at_ms is not None
        now = update.wake_at_ms
        update = core.step(api.TimerFired(), now)
    return count


def test_a_fetcher_that_never_sends_a_high_watermark_is_told_of_it_once() -> None:
    core = cores.leader()
    silent = replace(cores.fetch(7, 3, 1), high_watermark=Offset(-1))
    assert answers_while_idle(core, silent, from_ms=2010, until_ms=2500) == 0
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2501, token=2)
    assert answers_while_idle(core, silent, from_ms=2510, until_ms=3000) == 1


def test_a_replica_that_starts_anew_is_told_the_high_watermark_again() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    silent = replace(cores.fetch(3, 3, 1), high_watermark=Offset(-1))
    for start in (2100, 2600):
        known = replace(silent, high_watermark=Offset(3), max_wait_ms=Millis(0))
        cores.ask(core, known, now_ms=start, token=start - 1)
        assert answers_while_idle(core, silent, from_ms=start, until_ms=start + 300) == 1


def test_a_fetch_with_the_leader_s_own_id_is_refused() -> None:
    core = cores.leader()
    other = replace(cores.fetch(1, 3, 1), replica=ReplicaKey(NodeId(1), DirectoryId(b"o" * 16)))
    for request in (cores.fetch(1, 3, 1), other):
        answer = fetched(cores.ask(core, request, now_ms=2001))
        assert answer.error is ErrorCode.INVALID_REQUEST
    assert core.replica.role.progress == {}  # type: ignore[union-attr]


def test_a_last_fetched_epoch_above_the_current_one_is_refused() -> None:
    core = cores.leader()
    answer = fetched(cores.ask(core, cores.fetch(2, 3, 2), now_ms=2001))
    assert answer.error is ErrorCode.INVALID_REQUEST


def test_a_replica_was_caught_up_when_it_fetched_before() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 0, 0, wait_ms=0), now_ms=2001)
    progress = core.replica.role.progress[cores.key(2)]  # type: ignore[union-attr]
    assert progress.last_caught_up_ms is None
    propose(core, now_ms=2050)
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2100, token=2)
    assert progress.last_caught_up_ms == 2001
    cores.ask(core, cores.fetch(2, 5, 1, wait_ms=0), now_ms=2200, token=3)
    assert progress.last_caught_up_ms == 2200


def test_rule_4_an_observer_has_caught_up_with_what_is_committed() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    propose(core, now_ms=2050)
    for node_id in (3, 7):
        cores.ask(core, cores.fetch(node_id, 3, 1), now_ms=2100, token=node_id)
    progress = core.replica.role.progress  # type: ignore[union-attr]
    assert progress[cores.key(3)].last_caught_up_ms is None
    assert progress[cores.key(7)].last_caught_up_ms == 2100


def test_no_hint_at_a_step_down_carries_the_own_endpoints_under_another_s_id() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    request = m.BeginQuorumEpochRequest(
        cores.CLUSTER, cores.key(1), NodeId(3), Epoch(2), cores.endpoints(3)
    )
    hint = fetched(cores.ask(core, request, now_ms=2002, token=2)).leader
    assert hint == m.LeaderInfo(NodeId(3), Epoch(2), cores.endpoints(3))


def owing_a_flush(*node_ids: int) -> RaftCore:
    """A leader that has appended a batch at 2,001 ms which its disk does not confirm."""
    core = cores.leader(1, *node_ids)
    propose(core)
    return core


def test_rule_24_a_leader_whose_flush_does_not_return_resigns_although_others_commit() -> None:
    core = owing_a_flush(1, 2, 3)
    for token, now_ms in enumerate(range(2100, 5000, 100), 100):
        for node_id in (2, 3):
            request = cores.fetch(node_id, 5, 1)
            update = cores.ask(core, request, now_ms=now_ms, token=token * 10 + node_id)
    assert core.replica.high_watermark == 5
    assert update.wake_at_ms is not None
    assert update.wake_at_ms <= 2001 + 3000
    assert isinstance(core.replica.role, Leader)
    core.step(api.TimerFired(), Millis(5001))
    assert isinstance(core.replica.role, Resigned)
    assert "has not confirmed a flush for 3.0 s" in " ".join(core.remarks())


def test_a_disk_that_confirms_something_is_slow_and_does_not_hang() -> None:
    core = owing_a_flush(1, 2, 3)
    cores.ask(core, cores.fetch(2, 5, 1), now_ms=4000, token=2)
    propose(core, now_ms=4000)
    half = api.LogFlushed(cores.end(5, 1), core.replica.log.generation)
    core.step(half, Millis(4999))
    core.step(api.TimerFired(), Millis(5001))
    assert isinstance(core.replica.role, Leader)
    assert core.replica.flush_deadline == 4999 + 3000
    cores.flush(core, now_ms=5002)
    assert core.replica.flush_deadline is None


def test_an_only_voter_with_a_disk_that_hangs_has_nobody_to_yield_to() -> None:
    core = owing_a_flush(1)
    update = core.step(api.TimerFired(), Millis(9000))
    assert isinstance(core.replica.role, Leader)
    assert core.replica.is_disk_hanging
    assert update.wake_at_ms is None or update.wake_at_ms > 9000


def test_nobody_campaigns_while_its_own_disk_hangs() -> None:
    core = owing_a_flush(1, 2, 3)
    core.step(api.TimerFired(), Millis(5001))
    cores.begin(core, 2, 2, now_ms=5100)
    for now_ms in range(5200, 60_000, 1000):
        update = core.step(api.TimerFired(), Millis(now_ms))
        votes = [r for _, r in cores.calls(update).values() if isinstance(r, m.VoteRequest)]
        assert votes == []
    assert not core.hears_leader


def test_invented_observers_push_out_the_longest_silent_one_and_never_a_voter() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    most = core.replica.config.observers_max
    for node_id in range(100, 100 + most + 50):
        request = cores.fetch(9, 3, 1, wait_ms=0)
        request = replace(request, replica=replace(cores.key(9), node_id=NodeId(node_id)))
        cores.ask(core, request, now_ms=2002, token=node_id)
    role = core.replica.role
    assert isinstance(role, Leader)
    assert len(role.progress) == most
    assert cores.key(2) in role.progress
    assert {key.node_id for key in role.progress} >= set(range(200, 100 + most + 50))


def test_the_endpoints_of_a_replica_are_kept_where_they_can_be_told() -> None:
    core = cores.leader()
    large = (Endpoint("GRPC", "h" * 100_000, 9094),)
    request = replace(cores.fetch(7, 3, 1, wait_ms=0), replica_endpoints=large)
    cores.ask(core, request, now_ms=2001)
    role = core.replica.role
    assert isinstance(role, Leader)
    assert role.progress[cores.key(7)].endpoints == ()
