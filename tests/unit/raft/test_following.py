"""The follower's side of replication: fetch, append, truncate, snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.calls import CallKind
from quorate.raft.roles import Follower, Prospective
from quorate.records.control import LeaderChange
from quorate.records.errors import ErrorCode
from quorate.records.ids import UNKNOWN_OFFSET, CallId, Epoch, Millis, NodeId, Offset
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


def test_rule_17_batches_that_do_not_continue_the_log_are_refused() -> None:
    core = cores.follower()
    gap = m.FetchedBatches(b"", (m.BatchInfo(Offset(1), Offset(1), Epoch(1)),))
    update = cores.answer(core, under_way(core), response(records=gap), now_ms=2)
    assert update.effects == ()
    assert "offset 1 where 0 is next" in update.notes[0].text


def test_an_epoch_that_begins_without_a_leader_change_is_refused() -> None:
    core = cores.follower()
    batch = m.FetchedBatches(b"", (m.BatchInfo(Offset(0), Offset(0), Epoch(1)),))
    update = cores.answer(core, under_way(core), response(records=batch), now_ms=2)
    assert update.effects == ()


def test_a_follower_cuts_where_its_leader_diverges_once_the_disk_has() -> None:
    core = fed()
    answer = response(diverging=cores.end(4, 1))
    update = cores.answer(core, under_way(core), answer, now_ms=4)
    assert update.effects == (api.TruncateLog(cores.end(4, 1), 1),)
    assert core.replica.log.end == cores.end(5, 1)
    update = core.step(api.LogTruncated(cores.end(4, 1), 1), Millis(5))
    assert core.replica.log.end == cores.end(4, 1)
    ((_, request),) = cores.calls(update).values()
    assert isinstance(request, m.FetchRequest)
    assert request.fetch_offset == 4


def test_no_timer_acts_on_a_log_that_the_disk_has_cut() -> None:
    core = fed()
    cores.answer(core, under_way(core), response(diverging=cores.end(4, 1)), now_ms=4)
    update = core.step(api.LogTruncated(cores.end(4, 1), 1), Millis(9000))
    assert core.replica.log.end == cores.end(4, 1)
    assert isinstance(core.replica.role, Follower)
    assert not [r for _, r in cores.calls(update).values() if isinstance(r, m.VoteRequest)]


def test_a_cut_inside_a_batch_is_refused_and_its_leader_not_believed() -> None:
    core = fed()
    cores.answer(core, under_way(core), response(diverging=cores.end(4, 1)), now_ms=4)
    refused = core.step(api.TruncationRefused(1, "offset 4 lies inside a batch"), Millis(5))
    assert core.replica.log.end == cores.end(5, 1)
    assert not core.hears_leader
    assert cores.calls(refused) == {}


def committed(*batches: m.BatchInfo) -> m.FetchedBatches:
    return m.FetchedBatches(b"b", batches)


RECORD = m.BatchInfo(Offset(5), Offset(5), Epoch(1))
IMPOSSIBLE: dict[str, m.FetchResponse | api.CallFailure] = {
    "diverges below what is committed": response(diverging=cores.end(2, 1)),
    "diverges where nothing differs": response(diverging=cores.end(9, 1)),
    "diverges in an epoch to come": response(diverging=cores.end(4, 7)),
    "its high watermark falls": response(high_watermark=Offset(2)),
    "it falls beside records": response(high_watermark=Offset(1), records=committed(RECORD)),
    "another leader of its epoch": m.FetchResponse(
        ErrorCode.NONE, m.LeaderInfo(NodeId(3), Epoch(1)), Offset(3)
    ),
    "a snapshot of what is here": response(snapshot_id=cores.end(3, 1)),
    "a snapshot of less": response(snapshot_id=cores.end(1, 1)),
    "a snapshot of a later epoch": response(snapshot_id=cores.end(9, 2)),
    "a snapshot of an earlier epoch": response(snapshot_id=cores.end(9, 0)),
    "records with a gap": response(records=committed(replace(RECORD, base_offset=Offset(6)))),
    "an answer that does not check": api.CallFailure.UNREADABLE,
}


@pytest.mark.parametrize("what", list(IMPOSSIBLE))
def test_rule_29_a_leader_that_contradicts_what_is_committed_changes_nothing(what: str) -> None:
    core = fed()
    assert cores_heard(core)
    deadline = core.replica.role.fetch_deadline  # type: ignore[union-attr]
    update = cores.answer(core, under_way(core), IMPOSSIBLE[what], now_ms=4)
    log = core.replica.log
    assert update.effects == ()
    assert (log.end, log.flushed, core.replica.high_watermark) == (cores.end(5, 1), 5, 3)
    assert core.replica.role.fetch_deadline == deadline  # type: ignore[union-attr]
    assert not core.hears_leader
    (note,) = update.notes
    assert note.text.startswith("does not believe leader 1: ")
    assert any("does not believe leader 1 of epoch 1" in line for line in core.remarks())


def cores_heard(core: RaftCore) -> bool:
    return core.hears_leader and core.remarks() == []


def lie(core: RaftCore, *, until_ms: int) -> tuple[int, list[str]]:
    """A leader whose high watermark has fallen."""
    return answer_all(core, response(high_watermark=Offset(1)), until_ms=until_ms)


def answer_all(core: RaftCore, answer: m.FetchResponse, *, until_ms: int) -> tuple[int, list[str]]:
    """Answer every Fetch in the same way; how often it asked, and what it said."""
    asked, now = 0, Millis(10)
    said: list[str] = []
    while now < until_ms:
        open_ = [c for c in core.replica.calls._by_id.values() if c.kind is CallKind.FETCH]
        if open_:
            update = cores.answer(core, open_[0].call, answer, now_ms=now)
            asked += 1
        else:
            assert update.wake_at_ms is not None
            now = update.wake_at_ms
            if now >= until_ms:
                break
            update = core.step(api.TimerFired(), now)
        said += cores.said(update)
    return asked, said


def test_rule_29_it_backs_off_and_says_so_once() -> None:
    core = fed()
    asked, said = lie(core, until_ms=1900)
    assert asked <= 8
    assert len(said) == 1
    assert core.replica.contradictions.total == asked


def test_rule_29_its_voters_look_for_another_leader_meanwhile() -> None:
    core = fed()
    lie(core, until_ms=1900)
    core.step(api.TimerFired(), Millis(2100))
    assert isinstance(core.replica.role, Prospective)
    pre_vote = cores.vote(3, 2, 1, cores.end(5, 1), pre_vote=True)
    other = fed()
    lie(other, until_ms=500)
    (granted,) = cores.replies(cores.ask(other, pre_vote, now_ms=600))
    assert isinstance(granted, m.VoteResponse)
    assert granted.vote_granted


def test_rule_29_a_leader_that_is_consistent_again_is_believed() -> None:
    core = fed()
    lie(core, until_ms=1000)
    update = core.step(api.TimerFired(), Millis(1900))
    sound = response(high_watermark=Offset(4), records=committed(RECORD))
    update = cores.answer(core, under_way(core), sound, now_ms=1901)
    assert core.hears_leader
    assert core.replica.high_watermark == 4
    assert core.remarks() == []
    assert any("believes leader 1 again" in note.text for note in update.notes)


def test_rule_29_a_later_epoch_is_asked_at_once() -> None:
    core = fed()
    lie(core, until_ms=1000)
    update = cores.begin(core, 3, 2, now_ms=1001)
    assert isinstance(cores.calls(update)[3][1], m.FetchRequest)
    assert core.remarks() == []


def test_a_second_leader_of_an_epoch_is_never_followed_and_told_once() -> None:
    core = fed()
    said: list[str] = []
    for now in (10, 20):
        said += cores.said(cores.begin(core, 3, 1, now_ms=now))
    learned = m.FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, m.LeaderInfo(NodeId(3), Epoch(1)))
    said += cores.said(cores.answer(core, under_way(core), learned, now_ms=30))[1:]
    assert said == ["3 is named as leader of epoch 1, which 1 leads: it is not followed"]
    assert core.replica.election.leader_id == 1
    assert any("voted twice" in line for line in core.remarks())


def test_an_error_that_is_repeated_is_said_once_and_asked_ever_later() -> None:
    error = m.FetchResponse(ErrorCode.UNSUPPORTED_VERSION, LEADER)
    asked, said = answer_all(fed(), error, until_ms=1900)
    assert said == ["1 answers Fetch with UNSUPPORTED_VERSION"]
    assert asked <= 8


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
    core.step(api.TimerFired(), Millis(499))
    cores.answer(core, under_way(core), response(snapshot_id=cores.end(9, 1)), now_ms=500)
    core.step(api.SnapshotRefused(cores.end(9, 1), "crc"), Millis(504))
    assert core.replica.role.download is None


def test_a_refused_snapshot_leaves_the_log_and_its_flushes_as_they_were() -> None:
    core = cores.follower()
    snapshot = cores.end(9, 1)
    cores.answer(core, under_way(core), response(snapshot_id=snapshot), now_ms=2)
    whole = m.FetchSnapshotResponse(ErrorCode.NONE, LEADER, snapshot, 3, 0, b"abc")
    cores.answer(core, under_way(core, CallKind.FETCH_SNAPSHOT), whole, now_ms=3)
    update = core.step(api.SnapshotRefused(snapshot, "crc"), Millis(4))
    assert cores.calls(update) == {}
    update = core.step(api.TimerFired(), Millis(400))
    assert isinstance(cores.calls(update).popitem()[1][1], m.FetchRequest)
    cores.answer(core, under_way(core), response(records=FIRST), now_ms=401)
    core.step(api.LogFlushed(cores.end(5, 1), 0), Millis(402))
    assert core.replica.log.flushed == 5
    late = core.step(api.SnapshotInstalled(m.SnapshotInfo(snapshot, 3), 0, None, 1), Millis(403))
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
    assert core.following.fetch_request(Millis(0)).read_round == 4
    cores.begin(core, 3, 2, now_ms=5)
    assert core.following.fetch_request(Millis(0)).read_round == 0


def test_what_a_leader_told_of_commits_is_known_only_from_this_life() -> None:
    """A log and a snapshot do not tell what was committed while their replica was down."""
    core = cores.follower()
    assert core.told_high_watermark is None
    cores.answer(core, under_way(core), response(high_watermark=UNKNOWN_OFFSET), now_ms=2)
    assert core.told_high_watermark is None
    cores.answer(core, under_way(core), response(high_watermark=Offset(7)), now_ms=3)
    assert core.told_high_watermark == 7
    assert cores.leader().told_high_watermark is None
