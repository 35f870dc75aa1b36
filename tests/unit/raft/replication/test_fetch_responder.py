"""Fetches are answered immediately, or wait until there is something to send."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, Offset, ReplyToken
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, log_end, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def answers_while_idle(
    core: RaftCore, request: m.FetchRequest, *, from_ms: int, until_ms: int
) -> int:
    """The number of answers without data to a fetcher that asks again immediately."""
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


def test_an_append_answers_the_parked_fetch_before_any_flush() -> None:
    core = cores.leader()
    assert cores.replies(cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)) == []
    appended = m.ProposalResponse(
        error=ErrorCode.NONE,
        leader=cores.LEADER,
        base_offset=Offset(3),
        last_offset=Offset(4),
    )
    expect(
        cores.propose(core, token=9),
        api.AppendToLog(Offset(3), cores.end(5, 1), api.ProposedBatch(b"x" * 70, 2)),
        api.SendReply(ReplyToken(9), appended),
        traffic.fetch_reply(1, records=(3, 5), high_watermark=3),
        wake_at_ms=3000,
    )


def test_an_observer_is_served_committed_records_only() -> None:
    core = cores.leader()
    update = cores.ask(core, cores.fetch(7, 0, 0, wait_ms=0), now_ms=2001)
    assert cores.fetched(update).records is None
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2002, token=2)
    update = cores.ask(core, cores.fetch(7, 0, 0, wait_ms=0), now_ms=2003, token=3)
    assert cores.fetched(update).records == m.LogRange(
        start=Offset(0), end=Offset(3), bytes_max=1024
    )


@pytest.mark.rule("fetch_view_at_response")
def test_an_observer_that_becomes_a_voter_gets_its_parked_fetch_answered() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    cores.ask(core, cores.fetch(7, 3, 1), now_ms=2002, token=7)
    update = cores.append(core, cores.voters(1, 2, 3, 7), now_ms=2003)
    assert cores.fetched(update).records == m.LogRange(
        start=Offset(3), end=Offset(4), bytes_max=1024
    )


@pytest.mark.rule("stream_responses")
def test_a_newer_fetch_of_a_replica_releases_the_older() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001, token=11)
    update = cores.ask(core, cores.fetch(2, 3, 1), now_ms=2002, token=12)
    linger_ms = cores.config().high_watermark_linger_ms
    expect(update, traffic.fetch_reply(11, high_watermark=3), wake_at_ms=2002 + linger_ms)


def test_a_parked_fetch_is_answered_empty_when_its_time_is_over() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    has_all = replace(cores.fetch(2, 3, 1), high_watermark=Offset(3))
    expect(cores.ask(core, has_all, now_ms=2001, token=2), wake_at_ms=2501)
    expect(core.step(api.TimerFired(), Millis(2500)), wake_at_ms=2501)
    update = core.step(api.TimerFired(), Millis(2501))
    expect(update, traffic.fetch_reply(2, high_watermark=3), wake_at_ms=3000)


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


def test_the_high_watermark_is_unknown_before_the_own_epoch_has_committed() -> None:
    state = cores.recovered(
        1,
        2,
        3,
        log_end=cores.end(5, 1),
        epochs=(m.EpochStart(Epoch(1), Offset(0)),),
        election=m.ElectionState(Epoch(1)),
    )
    # All in a snapshot is committed, and who knows what else.
    state = replace(state, snapshots=(m.SnapshotInfo(cores.end(3, 1), 100),))
    core = cores.elected(cores.started(1, state))
    end = log_end(core)
    assert (told(core).epoch_start, told(core).high_watermark) == (5, 3)
    answer = cores.fetched(cores.ask(core, cores.fetch(2, 5, 1, epoch=2), now_ms=2001))
    assert answer.high_watermark == -1
    newest = cores.fetch(2, end.offset, 2, epoch=2, wait_ms=0)
    answer = cores.fetched(cores.ask(core, newest, now_ms=2002, token=2))
    assert answer.high_watermark == end.offset
