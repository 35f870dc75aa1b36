"""Snapshots that a follower fetches and installs."""

from __future__ import annotations

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.request_manager import RequestKind
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, told


def test_a_snapshot_is_fetched_in_slices_and_installed() -> None:
    core = cores.follower()
    snapshot = cores.end(9, 1)
    cores.answer(core, cores.under_way(core), cores.fetch_answer(snapshot_id=snapshot), now_ms=2)
    for position, chunk in ((0, b"abc"), (3, b"de")):
        part = m.FetchSnapshotResponse(
            error=ErrorCode.NONE,
            leader=cores.LEADER,
            snapshot_id=snapshot,
            size_bytes=5,
            position=position,
            chunk=chunk,
        )
        update = cores.answer(
            core, cores.under_way(core, RequestKind.FETCH_SNAPSHOT), part, now_ms=3
        )
        assert update.effects[0] == api.WriteSnapshotChunk(snapshot, position, chunk)
    expect(
        update,
        api.WriteSnapshotChunk(snapshot, 3, b"de"),
        api.InstallSnapshot(snapshot_id=snapshot, generation=1),
        wake_at_ms=2000,
    )
    info = m.SnapshotInfo(snapshot, 5)
    update = core.step(
        api.SnapshotInstalled(
            snapshot=info, generation=1, voters=cores.voters(1, 2), kraft_version=1
        ),
        Millis(4),
    )
    expect(
        update,
        traffic.fetch_sent(5, 9, 1, high_watermark=9),
        cores.progress("follower", 1, leader_id=1, high_watermark=9),
        wake_at_ms=2000,
        notes=((TraceEventKind.SNAPSHOT_INSTALLED, "installed snapshot 9@1; voters are [1, 2]"),),
    )


def test_a_snapshot_that_is_gone_or_does_not_check_is_begun_anew() -> None:
    core = cores.follower()
    cores.answer(
        core, cores.under_way(core), cores.fetch_answer(snapshot_id=cores.end(9, 1)), now_ms=2
    )
    gone = m.FetchSnapshotResponse(error=ErrorCode.SNAPSHOT_NOT_FOUND, leader=cores.LEADER)
    update = cores.answer(core, cores.under_way(core, RequestKind.FETCH_SNAPSHOT), gone, now_ms=3)
    # A plain Fetch tells what there is, after a while.
    expect(
        update,
        wake_at_ms=19,
        notes=((TraceEventKind.DOWNLOAD, "1 answers FetchSnapshot with SNAPSHOT_NOT_FOUND"),),
    )
    core.step(api.TimerFired(), Millis(499))
    cores.answer(
        core, cores.under_way(core), cores.fetch_answer(snapshot_id=cores.end(9, 1)), now_ms=500
    )
    expect(
        core.step(api.SnapshotRefused(cores.end(9, 1), "crc"), Millis(504)),
        wake_at_ms=520,
        notes=(
            (
                TraceEventKind.CONTRADICTED,
                "does not believe leader 1: fetched snapshot 9@1: crc; nothing is changed",
            ),
        ),
    )
    update = core.step(api.TimerFired(), Millis(520))
    expect(update, traffic.fetch_sent(6, 0, 0), wake_at_ms=2000)


def test_a_leader_whose_snapshot_is_gone_is_heard() -> None:
    core = cores.follower()
    cores.answer(
        core, cores.under_way(core), cores.fetch_answer(snapshot_id=cores.end(9, 1)), now_ms=2
    )
    gone = m.FetchSnapshotResponse(error=ErrorCode.SNAPSHOT_NOT_FOUND, leader=cores.LEADER)
    cores.answer(core, cores.under_way(core, RequestKind.FETCH_SNAPSHOT), gone, now_ms=3)
    deadline = 3 + cores.config().fetch_timeout_ms
    core.step(api.TimerFired(), Millis(deadline - 1))
    assert told(core).role == "follower"
    core.step(api.TimerFired(), Millis(deadline))
    assert told(core).role == "prospective"


def test_a_refused_snapshot_leaves_the_log_and_its_flushes_as_they_were() -> None:
    core = cores.follower()
    snapshot = cores.end(9, 1)
    cores.answer(core, cores.under_way(core), cores.fetch_answer(snapshot_id=snapshot), now_ms=2)
    whole = m.FetchSnapshotResponse(
        error=ErrorCode.NONE,
        leader=cores.LEADER,
        snapshot_id=snapshot,
        size_bytes=3,
        position=0,
        chunk=b"abc",
    )
    cores.answer(core, cores.under_way(core, RequestKind.FETCH_SNAPSHOT), whole, now_ms=3)
    update = core.step(api.SnapshotRefused(snapshot, "crc"), Millis(4))
    assert cores.calls(update) == {}
    update = core.step(api.TimerFired(), Millis(400))
    assert isinstance(cores.calls(update).popitem()[1][1], m.FetchRequest)
    cores.answer(core, cores.under_way(core), cores.fetch_answer(records=cores.FIRST), now_ms=401)
    update = core.step(api.LogFlushed(cores.end(5, 1), 0), Millis(402))
    assert fetch_offset(update) == 5
    late = core.step(
        api.SnapshotInstalled(
            snapshot=m.SnapshotInfo(snapshot, 3), generation=0, voters=None, kraft_version=1
        ),
        Millis(403),
    )
    assert late.effects == ()
    update = cores.answer(core, cores.under_way(core), cores.fetch_answer(), now_ms=404)
    assert fetch_offset(update) == 5


def fetch_offset(update: api.Update) -> int:
    """The offset that it fetches next."""
    ((_, request),) = cores.calls(update).values()
    assert isinstance(request, m.FetchRequest)
    return request.fetch_offset


@pytest.mark.rule("damaged_voter_heals")
def test_a_healed_voter_forgets_what_it_once_had() -> None:
    state = cores.recovered(1, 2, 3, remembered_end=cores.end(5, 1))
    core = cores.started(2, state)
    cores.begin(core, 1, 1, now_ms=1)
    cores.answer(core, cores.under_way(core), cores.fetch_answer(records=cores.FIRST), now_ms=2)
    assert any("healing" in line for line in core.status_warnings())
    expect(
        cores.flush(core, now_ms=3),
        api.EndHealing(),
        traffic.fetch_sent(3, 5, 1),
        wake_at_ms=2000,
        notes=((TraceEventKind.HEALED, "healed: log end 5@1 has reached 5@1"),),
    )
    assert core.status_warnings() == []
