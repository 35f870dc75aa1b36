"""Snapshots of a leader while others fetch them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, Offset
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore
    from quorate.records.ids import OffsetAndEpoch

OLD = cores.end(1, 1)
NEW = cores.end(3, 1)
SIZE = 100


def leader() -> RaftCore:
    """A leader whose log begins at the snapshot OLD, with all below 3 committed."""
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    info = m.SnapshotInfo(OLD, SIZE)
    core.step(api.SnapshotStored(info), Millis(2002))
    core.step(api.LogCleaned(Offset(1), (info,)), Millis(2003))
    return core


def ask(
    core: RaftCore, now_ms: int, snapshot_id: OffsetAndEpoch = OLD, *, position: int = 0
) -> tuple[m.FetchSnapshotResponse, bool]:
    """The answer to node 3, and whether the file is being checked because of it."""
    request = m.FetchSnapshotRequest(
        cluster_id=cores.CLUSTER,
        replica=cores.key(3),
        current_leader_epoch=Epoch(1),
        snapshot_id=snapshot_id,
        position=position,
        max_bytes=60,
    )
    update = cores.ask(core, request, now_ms=now_ms, token=now_ms)
    slices = [r for r in cores.replies(update) if isinstance(r, m.FetchSnapshotResponse)]
    (answer,) = slices
    return answer, api.CheckSnapshot(snapshot_id) in update.effects


@pytest.mark.rule("snapshot_pinning")
def test_a_snapshot_is_checked_once_before_its_first_slice() -> None:
    core = leader()
    first, is_checked = ask(core, 2010)
    assert (first.error, first.snapshot_id, first.size_bytes) == (ErrorCode.NONE, OLD, SIZE)
    assert (first.chunk, is_checked) == (b"", True)
    assert ask(core, 2011)[1] is False
    core.step(api.SnapshotChecked(OLD, None), Millis(2012))
    for position in (0, 60):
        answer, is_checked = ask(core, 2013, position=position)
        assert answer.chunk == m.SnapshotRange(snapshot_id=OLD, position=position, bytes_max=60)
        assert not is_checked


def test_who_comes_back_for_the_whole_has_it_checked_again() -> None:
    core = leader()
    ask(core, 2010)
    core.step(api.SnapshotChecked(OLD, None), Millis(2012))
    assert ask(core, 2013)[1] is False
    assert ask(core, 2014)[1] is False
    ask(core, 2015, position=60)
    again, is_checked = ask(core, 2016)
    assert (again.chunk, is_checked) == (b"", True)


def test_a_damaged_snapshot_is_not_sent_and_its_successor_takes_its_place() -> None:
    core = leader()
    ask(core, 2010)
    update = core.step(api.SnapshotChecked(OLD, "the CRC is wrong"), Millis(2012))
    assert any("the CRC is wrong" in note.text for note in update.trace)
    answer, is_checked = ask(core, 2013)
    assert (answer.error, answer.chunk, is_checked) == (ErrorCode.NONE, b"", False)
    core.step(api.SnapshotStored(m.SnapshotInfo(NEW, 50)), Millis(2014))
    assert ask(core, 2015)[0].error is ErrorCode.SNAPSHOT_NOT_FOUND
    assert ask(core, 2016, NEW)[1] is True


def test_a_snapshot_that_rotted_after_it_was_served_is_not_sent_any_more() -> None:
    core = leader()
    ask(core, 2010)
    core.step(api.SnapshotChecked(OLD, None), Millis(2012))
    assert ask(core, 2013, position=60)[0].chunk == m.SnapshotRange(
        snapshot_id=OLD, position=60, bytes_max=60
    )
    core.step(api.SnapshotChecked(OLD, "the CRC is wrong"), Millis(2014))
    assert ask(core, 2015, position=60)[0].chunk == b""


def test_a_snapshot_written_anew_under_the_same_id_is_checked_again() -> None:
    core = leader()
    ask(core, 2010)
    core.step(api.SnapshotChecked(OLD, "the CRC is wrong"), Millis(2012))
    core.step(api.SnapshotStored(m.SnapshotInfo(OLD, 70)), Millis(2014))
    answer, is_checked = ask(core, 2015)
    assert (answer.size_bytes, is_checked) == (70, True)


@pytest.mark.rule("snapshot_pinning")
def test_a_snapshot_is_pinned_until_the_fetch_has_been_silent_for_a_fetch_timeout() -> None:
    core = leader()
    assert core.pinned_snapshots() == frozenset()
    ask(core, 2010)
    assert core.pinned_snapshots() == {OLD}
    core.step(api.TimerFired(), Millis(4010))
    assert core.pinned_snapshots() == {OLD}
    core.step(api.TimerFired(), Millis(4011))
    assert core.pinned_snapshots() == frozenset()


def test_what_is_said_of_snapshots_that_are_gone_is_forgotten() -> None:
    core = leader()
    ask(core, 2010)
    core.step(api.SnapshotStored(m.SnapshotInfo(NEW, 50)), Millis(2014))
    core.step(api.LogCleaned(Offset(3), (m.SnapshotInfo(NEW, 50),)), Millis(2015))
    assert core.pinned_snapshots() == frozenset()
    core.step(api.SnapshotChecked(OLD, "gone"), Millis(2016))
    assert ask(core, 2017, NEW)[0].error is ErrorCode.NONE
