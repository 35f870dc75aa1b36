"""The follower's side of replication: fetch, append, truncate, snapshots."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.campaign import REPEAT_SHARE
from quorate.raft.request_manager import RequestKind
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import UNKNOWN_OFFSET, CallId, Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, told


def test_a_follower_fetches_again_only_after_its_log_is_flushed() -> None:
    core = cores.follower()
    update = cores.answer(
        core, cores.under_way(core), cores.fetch_answer(records=cores.FIRST), now_ms=2
    )
    expect(
        update,
        api.AppendToLog(Offset(0), cores.end(5, 1), cores.FIRST),
        wake_at_ms=cores.config().fetch_timeout_ms,
    )
    expect(cores.flush(core, now_ms=3), traffic.fetch_sent(3, 5, 1), wake_at_ms=2000)


@pytest.mark.rule("log_generation")
def test_a_flush_of_an_older_generation_counts_for_nothing() -> None:
    core = cores.fed()
    answer = cores.fetch_answer(diverging=cores.end(4, 1))
    cores.answer(core, cores.under_way(core), answer, now_ms=4)
    core.step(api.LogTruncated(cores.end(4, 1), 1), Millis(5))
    another = cores.batches(replace(cores.RECORD, base_offset=Offset(4), last_offset=Offset(4)))
    cores.answer(core, cores.under_way(core), cores.fetch_answer(records=another), now_ms=6)
    # What was flushed is the record that is no more.
    expect(core.step(api.LogFlushed(cores.end(5, 1), 0), Millis(7)), wake_at_ms=2000)
    expect(
        core.step(api.LogFlushed(cores.end(5, 1), 1), Millis(8)),
        traffic.fetch_sent(5, 5, 1, high_watermark=3),
        wake_at_ms=2000,
    )


@pytest.mark.rule("disk_fail_stop")
def test_batches_that_do_not_continue_the_log_are_refused() -> None:
    core = cores.follower()
    gap = m.FetchedBatches(
        b"", (m.BatchInfo(base_offset=Offset(1), last_offset=Offset(1), epoch=Epoch(1)),)
    )
    update = cores.answer(core, cores.under_way(core), cores.fetch_answer(records=gap), now_ms=2)
    expect(
        update,
        wake_at_ms=18,
        notes=(
            (
                TraceEventKind.CONTRADICTED,
                "does not believe leader 1: offset 1 where 0 is next; nothing is changed",
            ),
        ),
    )


def test_an_epoch_that_begins_without_a_leader_change_is_refused() -> None:
    core = cores.follower()
    batch = m.FetchedBatches(
        b"", (m.BatchInfo(base_offset=Offset(0), last_offset=Offset(0), epoch=Epoch(1)),)
    )
    update = cores.answer(core, cores.under_way(core), cores.fetch_answer(records=batch), now_ms=2)
    expect(
        update,
        wake_at_ms=18,
        notes=(
            (
                TraceEventKind.CONTRADICTED,
                "does not believe leader 1: epoch 1 without a LeaderChange at 0, after 0; "
                "nothing is changed",
            ),
        ),
    )


def test_a_follower_cuts_where_its_leader_diverges_once_the_disk_has() -> None:
    core = cores.fed()
    answer = cores.fetch_answer(diverging=cores.end(4, 1))
    update = cores.answer(core, cores.under_way(core), answer, now_ms=4)
    expect(
        update,
        api.TruncateLog(cores.end(4, 1), 1),
        wake_at_ms=cores.config().fetch_timeout_ms,
        notes=((TraceEventKind.LOG_CUT, "leader diverges at 4@1: cuts 1 record(s)"),),
    )
    update = core.step(api.LogTruncated(cores.end(4, 1), 1), Millis(5))
    expect(update, traffic.fetch_sent(4, 4, 1, high_watermark=3), wake_at_ms=2000)


def test_no_timer_acts_on_a_log_that_the_disk_has_cut() -> None:
    core = cores.fed()
    cores.answer(
        core, cores.under_way(core), cores.fetch_answer(diverging=cores.end(4, 1)), now_ms=4
    )
    update = core.step(api.LogTruncated(cores.end(4, 1), 1), Millis(9000))
    deadline = 9000 + cores.config().fetch_timeout_ms
    expect(update, traffic.fetch_sent(4, 4, 1, high_watermark=3), wake_at_ms=deadline)


def test_a_cut_inside_a_batch_is_refused_and_its_leader_not_believed() -> None:
    core = cores.fed()
    cores.answer(
        core, cores.under_way(core), cores.fetch_answer(diverging=cores.end(4, 1)), now_ms=4
    )
    refused = core.step(api.TruncationRefused(1, "offset 4 lies inside a batch"), Millis(5))
    expect(
        refused,
        wake_at_ms=21,
        notes=(
            (
                TraceEventKind.CONTRADICTED,
                "does not believe leader 1: offset 4 lies inside a batch; nothing is changed",
            ),
        ),
    )
    assert not core.has_live_leader
    again = core.step(api.TimerFired(), Millis(21))
    expect(again, traffic.fetch_sent(4, 5, 1, high_watermark=3), wake_at_ms=2000)


def test_a_second_leader_of_an_epoch_is_never_followed_and_told_once() -> None:
    core = cores.fed()
    said: list[str] = []
    for now in (10, 20):
        said += cores.said(cores.begin(core, 3, 1, now_ms=now))
    learned = m.FetchResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(NodeId(3), Epoch(1))
    )
    said += cores.said(cores.answer(core, cores.under_way(core), learned, now_ms=30))[1:]
    assert said == ["3 is named as leader of epoch 1, which 1 leads: it is not followed"]
    assert told(core).leader_id == 1
    assert any("voted twice" in line for line in core.status_warnings())


def test_the_high_watermark_is_not_learned_from_an_answer_that_diverges() -> None:
    core = cores.fed()
    answer = cores.fetch_answer(diverging=cores.end(4, 1), high_watermark=Offset(5))
    cores.answer(core, cores.under_way(core), answer, now_ms=4)
    assert told(core).high_watermark == 3


def test_a_fetch_timeout_asks_for_pre_votes() -> None:
    core = cores.follower()
    expect(
        core.step(api.TimerFired(), Millis(2001)),
        *(
            api.SendRequest(
                CallId(call),
                cores.peer(node),
                cores.vote(2, node, 1, cores.end(0, 0), pre_vote=True),
            )
            for call, node in ((3, 1), (4, 3))
        ),
        cores.progress("prospective", 1, leader_id=1),
        wake_at_ms=2001 + cores.part_of_election_timeout(REPEAT_SHARE),
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "no fetch from leader 1 for 2000 ms: follower becomes prospective in epoch 1",
            ),
        ),
    )


def test_an_unattached_replica_asks_the_voters_in_turn() -> None:
    core = cores.unattached()
    found = m.FetchResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        leader=m.LeaderInfo(NodeId(3), Epoch(1), cores.endpoints(3)),
    )
    cores.answer(core, cores.under_way(core, RequestKind.DISCOVERY), found, now_ms=2)
    assert told(core).role == "follower"


def test_a_read_round_is_echoed_only_to_the_leader_that_sent_it() -> None:
    core = cores.follower()
    cores.answer(core, cores.under_way(core), cores.fetch_answer(read_round=4), now_ms=2)
    core.step(api.TimerFired(), Millis(3))
    assert core.follower_replication.fetch_request(Millis(0)).read_round == 4
    cores.begin(core, 3, 2, now_ms=5)
    assert core.follower_replication.fetch_request(Millis(0)).read_round == 0


def test_what_a_leader_told_of_commits_is_known_only_from_this_life() -> None:
    """A log and a snapshot do not tell what was committed while their replica was down."""
    core = cores.follower()
    assert core.known_high_watermark is None
    cores.answer(
        core, cores.under_way(core), cores.fetch_answer(high_watermark=UNKNOWN_OFFSET), now_ms=2
    )
    assert core.known_high_watermark is None
    cores.answer(
        core, cores.under_way(core), cores.fetch_answer(high_watermark=Offset(7)), now_ms=3
    )
    assert core.known_high_watermark == 7
    assert cores.leader().known_high_watermark is None
