"""The follower's side of replication: fetch, append, truncate, snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.calls import CallKind
from quorate.raft.roles import Follower, Prospective
from quorate.records.control import LeaderChange
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId, Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

LEADER = m.LeaderInfo(NodeId(1), Epoch(1), cores.endpoints(1))
FIRST = m.FetchedBatches(
    b"batches",
    (
        m.BatchInfo(Offset(0), Offset(0), Epoch(1), (LeaderChange(NodeId(1), (), ()),)),
        m.BatchInfo(Offset(1), Offset(4), Epoch(1)),
    ),
)


def under_way(core: RaftCore, kind: CallKind = CallKind.FETCH) -> CallId:
    (call,) = [c.call for c in core.replica.calls._by_id.values() if c.kind is kind]
    return call


def response(**parts: object) -> m.FetchResponse:
    return m.FetchResponse(ErrorCode.NONE, LEADER, **parts)  # type: ignore[arg-type]


def fed() -> RaftCore:
    """A follower that appended and flushed five records, three of them committed."""
    core = cores.follower()
    answer = response(records=FIRST, high_watermark=Offset(3))
    cores.answer(core, under_way(core), answer, now_ms=2)
    cores.flush(core, now_ms=3)
    return core


def test_a_follower_fetches_again_only_after_its_log_is_flushed() -> None:
    core = cores.follower()
    update = cores.answer(core, under_way(core), response(records=FIRST), now_ms=2)
    assert [type(e) for e in update.effects] == [api.AppendToLog]
    update = cores.flush(core, now_ms=3)
    ((_, request),) = cores.calls(update).values()
    assert isinstance(request, m.FetchRequest)
    assert (request.fetch_offset, request.last_fetched_epoch) == (5, 1)


def test_rule_14_a_flush_of_an_older_generation_counts_for_nothing() -> None:
    core = cores.follower()
    cores.answer(core, under_way(core), response(records=FIRST), now_ms=2)
    core.replica.log.generation += 1
    core.step(api.LogFlushed(cores.end(5, 1), 0), Millis(3))
    assert core.replica.log.flushed == 0


def test_batches_that_do_not_continue_the_log_are_refused() -> None:
    core = cores.follower()
    gap = m.FetchedBatches(b"", (m.BatchInfo(Offset(1), Offset(1), Epoch(1)),))
    update = cores.answer(core, under_way(core), response(records=gap), now_ms=2)
    assert update.effects == ()
    assert "offset 1 where 0 is next" in update.notes[0]


def test_an_epoch_that_begins_without_a_leader_change_is_refused() -> None:
    core = cores.follower()
    batch = m.FetchedBatches(b"", (m.BatchInfo(Offset(0), Offset(0), Epoch(1)),))
    update = cores.answer(core, under_way(core), response(records=batch), now_ms=2)
    assert update.effects == ()


def test_a_follower_cuts_where_its_leader_diverges() -> None:
    core = fed()
    answer = response(diverging=cores.end(4, 1))
    update = cores.answer(core, under_way(core), answer, now_ms=4)
    assert update.effects[0] == api.TruncateLog(cores.end(4, 1), 1)
    assert core.replica.log.end == cores.end(4, 1)


def test_nothing_below_the_high_watermark_is_ever_cut() -> None:
    core = fed()
    answer = response(diverging=cores.end(2, 1))
    update = cores.answer(core, under_way(core), answer, now_ms=4)
    assert update.effects == ()
    assert core.replica.log.end == cores.end(5, 1)


def test_the_high_watermark_is_not_learned_from_an_answer_that_diverges() -> None:
    core = fed()
    answer = response(diverging=cores.end(4, 1), high_watermark=Offset(5))
    cores.answer(core, under_way(core), answer, now_ms=4)
    assert core.replica.high_watermark == 3


def test_a_snapshot_is_fetched_in_slices_and_installed() -> None:
    core = cores.follower()
    snapshot = cores.end(9, 1)
    cores.answer(core, under_way(core), response(snapshot_id=snapshot), now_ms=2)
    for position, chunk in ((0, b"abc"), (3, b"de")):
        part = m.FetchSnapshotResponse(ErrorCode.NONE, LEADER, snapshot, 5, position, chunk)
        update = cores.answer(core, under_way(core, CallKind.FETCH_SNAPSHOT), part, now_ms=3)
        assert api.WriteSnapshotChunk(snapshot, position, chunk) in update.effects
    assert api.InstallSnapshot(snapshot, 1) in update.effects
    info = m.SnapshotInfo(snapshot, 5)
    update = core.step(api.SnapshotInstalled(info, 1, cores.voters(1, 2), 1), Millis(4))
    assert core.replica.log.end == snapshot
    assert core.replica.high_watermark == 9
    ((_, request),) = cores.calls(update).values()
    assert isinstance(request, m.FetchRequest)
    assert request.fetch_offset == 9


def test_a_snapshot_that_is_gone_or_does_not_check_is_begun_anew() -> None:
    core = cores.follower()
    cores.answer(core, under_way(core), response(snapshot_id=cores.end(9, 1)), now_ms=2)
    gone = m.FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, LEADER)
    cores.answer(core, under_way(core, CallKind.FETCH_SNAPSHOT), gone, now_ms=3)
    assert isinstance(core.replica.role, Follower)
    assert core.replica.role.download is None
    assert core.replica.role.fetch_deadline == 3 + 2000
    core.step(api.SnapshotRefused(cores.end(9, 1), "crc"), Millis(4))
    assert core.replica.role.download is None


def test_a_refused_snapshot_leaves_the_log_and_its_flushes_as_they_were() -> None:
    core = cores.follower()
    snapshot = cores.end(9, 1)
    cores.answer(core, under_way(core), response(snapshot_id=snapshot), now_ms=2)
    whole = m.FetchSnapshotResponse(ErrorCode.NONE, LEADER, snapshot, 3, 0, b"abc")
    cores.answer(core, under_way(core, CallKind.FETCH_SNAPSHOT), whole, now_ms=3)
    update = core.step(api.SnapshotRefused(snapshot, "crc"), Millis(4))
    assert isinstance(cores.calls(update).popitem()[1][1], m.FetchRequest)
    cores.answer(core, under_way(core), response(records=FIRST), now_ms=5)
    core.step(api.LogFlushed(cores.end(5, 1), 0), Millis(6))
    assert core.replica.log.flushed == 5
    late = core.step(api.SnapshotInstalled(m.SnapshotInfo(snapshot, 3), 0, None, 1), Millis(7))
    assert late.effects == ()
    assert core.replica.log.end == cores.end(5, 1)


def test_a_fetch_timeout_asks_for_pre_votes() -> None:
    core = cores.follower()
    core.step(api.TimerFired(), Millis(2001))
    assert isinstance(core.replica.role, Prospective)


def test_an_error_names_the_leader_to_follow() -> None:
    core = cores.follower()
    info = m.LeaderInfo(NodeId(3), Epoch(2), cores.endpoints(3))
    error = m.FetchResponse(ErrorCode.FENCED_LEADER_EPOCH, info)
    cores.answer(core, under_way(core), error, now_ms=2)
    assert core.replica.election == m.ElectionState(Epoch(2), NodeId(3))


def test_an_unattached_replica_asks_the_voters_in_turn() -> None:
    core = cores.unattached()
    found = m.FetchResponse(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, m.LeaderInfo(NodeId(3), Epoch(1), cores.endpoints(3))
    )
    cores.answer(core, under_way(core, CallKind.DISCOVERY), found, now_ms=2)
    assert isinstance(core.replica.role, Follower)


def test_rule_16_a_healed_voter_forgets_what_it_once_had() -> None:
    state = cores.recovered(1, 2, 3, remembered_end=cores.end(5, 1))
    core = cores.started(2, state)
    cores.begin(core, 1, 1, now_ms=1)
    cores.answer(core, under_way(core), response(records=FIRST), now_ms=2)
    update = cores.flush(core, now_ms=3)
    assert api.ForgetRememberedEnd() in update.effects
    assert core.replica.remembered_end is None


def test_a_read_round_is_echoed_only_to_the_leader_that_sent_it() -> None:
    core = cores.follower()
    cores.answer(core, under_way(core), response(read_round=4), now_ms=2)
    core.step(api.TimerFired(), Millis(3))
    assert core.following._fetch_request(Millis(0)).read_round == 4
    cores.begin(core, 3, 2, now_ms=5)
    assert core.following._fetch_request(Millis(0)).read_round == 0
