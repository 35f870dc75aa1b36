"""The core's storage effects, and what a crash between any two calls to the disk leaves of them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft.api import (
    AppendToLog,
    CheckSnapshot,
    InstallSnapshot,
    LogCleaned,
    SnapshotInstalled,
    SnapshotRefused,
    WriteSnapshotChunk,
)
from quorate.raft.messages import LogRange, SnapshotInfo, SnapshotRange
from quorate.raft.replication.batch_info import batch_infos
from quorate.records.batch import iter_batches
from quorate.records.control import (
    KRaftVersion,
    SnapshotFooter,
    SnapshotHeader,
    encode_control_batch,
)
from quorate.records.ids import Offset
from quorate.sim.engine.disk import Survival
from quorate.storage.healing import HealingState
from quorate.storage.snapshots.writer import SnapshotWriter
from tests.unit.storage.conftest import DIRECTORY, LOG_DIR, THREE, Crashed, Replica, at

if TYPE_CHECKING:
    from quorate.records.ids import OffsetAndEpoch
    from quorate.records.voters import VoterSet


def snapshot_file(
    where: OffsetAndEpoch, *, kraft_version: int = 1, voters: VoterSet | None = THREE
) -> bytes:
    """A snapshot as a leader would send it."""
    replica = Replica()
    writer = SnapshotWriter(
        replica.disk,
        f"{DIRECTORY}/x",
        where,
        timestamp_ms=1,
        last_contained_log_timestamp_ms=1,
        kraft_version=kraft_version,
        voters=voters,
    )
    writer.append([b"fetched"])
    writer.freeze()
    return replica.disk.read(f"{DIRECTORY}/x")


def test_fetched_batches_are_appended_as_they_came(veteran: Replica) -> None:
    follower = Replica()
    follower.open()
    follower.save(4)
    fetched = batch_infos(veteran.content())
    follower.store.append(AppendToLog(Offset(0), veteran.end, fetched), timestamp_ms=0)
    follower.flush()
    assert follower.content() == veteran.content()
    assert follower.store.log.state.epochs == veteran.store.log.state.epochs
    assert follower.store.log.state.voters == veteran.store.log.state.voters


def test_own_batches_are_stamped_with_their_place(replica: Replica) -> None:
    replica.begin_epoch(3)
    replica.append(b"a", b"b")
    headers = [header for _, header in iter_batches(replica.content())]
    assert [(h.base_offset, h.epoch, h.max_timestamp_ms) for h in headers] == [
        (0, 3, 100),
        (3, 3, 103),
    ]


def test_the_start_of_a_log_has_the_epoch_before_it(veteran: Replica) -> None:
    assert veteran.store.start == at(0, 0)
    veteran.save(7)
    veteran.install(at(50, 6), snapshot_file(at(50, 6)))
    assert veteran.store.start == at(50, 6)


def test_a_snapshot_is_fetched_in_chunks_and_restarts_the_log(veteran: Replica) -> None:
    data = snapshot_file(at(50, 6))
    veteran.save(7)
    event = veteran.install(at(50, 6), data)
    info = SnapshotInfo(at(50, 6), len(data))
    assert event == SnapshotInstalled(snapshot=info, generation=1, voters=THREE, kraft_version=1)
    assert (veteran.end, veteran.store.log.log_start, veteran.content()) == (at(50, 6), 50, b"")
    assert veteran.store.read_snapshot(at(50, 6)).records == [b"fetched"]
    assert (
        veteran.store.read_chunk(SnapshotRange(snapshot_id=at(50, 6), position=10, bytes_max=20))
        == data[10:30]
    )
    assert [name for name in veteran.files() if name[0] == "0"] == [
        "00000000000000000000-0000000000.checkpoint",
        "00000000000000000050-0000000006.checkpoint",
        "00000000000000000050.log",
    ]
    assert veteran.disk.read(f"{LOG_DIR}/leader-epoch-checkpoint") == b"0\n1\n6 50\n"
    before = veteran.store.log.state
    state = veteran.open().state
    assert (state.end, state.snapshots, state.remembered_end) == (at(50, 6), (info,), None)
    assert (list(state.epochs), list(state.voters)) == (before.epochs, before.voters)
    assert list(state.kraft_versions) == before.kraft_versions


def test_a_snapshot_replaces_the_older_ones(veteran: Replica) -> None:
    veteran.snapshot(at(12, 2))
    veteran.save(7)
    veteran.install(at(50, 6), snapshot_file(at(50, 6)))
    assert [info.snapshot_id for info in veteran.store.snapshots.stored()] == [at(50, 6)]


def test_a_fetched_snapshot_takes_no_kraft_version_back(veteran: Replica) -> None:
    files = veteran.files()
    head = encode_control_batch((SnapshotHeader(0), KRaftVersion(1)), timestamp_ms=1, epoch=6)
    foot = encode_control_batch((SnapshotFooter(),), timestamp_ms=1, base_offset=2, epoch=6)
    for data in (
        snapshot_file(at(50, 6), kraft_version=0, voters=None),
        snapshot_file(at(50, 6), kraft_version=2),
        head + foot,
    ):
        veteran.store.write_chunk(WriteSnapshotChunk(at(50, 6), 0, data))
        event = veteran.store.install(
            InstallSnapshot(snapshot_id=at(50, 6), generation=1, kraft_version=1)
        )
        assert isinstance(event, SnapshotRefused)
        assert (veteran.end, veteran.files()) == (at(18, 4), files)


def test_a_fetched_snapshot_that_does_not_check_changes_nothing(veteran: Replica) -> None:
    content, files = veteran.content(), veteran.files()
    data = bytearray(snapshot_file(at(50, 6)))
    data[-1] ^= 1
    event = veteran.install(at(50, 6), bytes(data))
    assert isinstance(event, SnapshotRefused)
    assert event.snapshot_id == at(50, 6)
    assert (veteran.end, veteran.content(), veteran.files()) == (at(18, 4), content, files)


def test_the_log_goes_on_behind_an_installed_snapshot(veteran: Replica) -> None:
    veteran.save(7)
    veteran.install(at(50, 6), snapshot_file(at(50, 6)))
    veteran.begin_epoch(7)
    veteran.flush()
    assert veteran.disk.read(f"{LOG_DIR}/leader-epoch-checkpoint") == b"0\n1\n7 50\n"
    recovered = veteran.open()
    assert (recovered.state.end, recovered.findings) == (at(51, 7), ())


@pytest.mark.rule("snapshot_within_flush")
@pytest.mark.parametrize(
    ("where", "reason"),
    [(at(19, 4), "outside"), (at(12, 4), "another epoch"), (at(25, 4), "outside")],
)
def test_a_snapshot_is_only_of_what_is_flushed_and_ours(
    veteran: Replica, where: OffsetAndEpoch, reason: str
) -> None:
    veteran.append(b"not flushed")
    with pytest.raises(ValueError, match=reason):
        veteran.snapshot(where)


def test_a_snapshot_says_when_its_last_record_was_written(veteran: Replica) -> None:
    info = veteran.snapshot(at(15, 4))
    summary = veteran.store.snapshots.check(info.snapshot_id)
    assert summary.last_contained_log_timestamp_ms == 100 + 13
    veteran.save(7)
    veteran.install(at(50, 6), snapshot_file(at(50, 6)))
    again = veteran.snapshot(at(50, 6))
    assert veteran.store.snapshots.last_contained_log_timestamp_ms(again.snapshot_id) == 999
    veteran.store.begin_snapshot(at(50, 6), timestamp_ms=999, contained_ms=170).freeze()
    assert veteran.store.snapshots.last_contained_log_timestamp_ms(again.snapshot_id) == 170


def test_cleaning_moves_the_start_to_the_oldest_snapshot_kept(veteran: Replica) -> None:
    veteran.snapshot(at(5, 1))
    info = veteran.snapshot(at(13, 4))
    veteran.config = replace(veteran.config, retention_bytes=0)
    veteran.open()
    content = veteran.content(12)
    assert veteran.store.clean(Offset(12)) is None
    assert veteran.store.clean(Offset(13)) == LogCleaned(Offset(13), (info,))
    assert veteran.store.clean(Offset(13)) is None
    assert veteran.logs() == ["00000000000000000012.log"]
    assert veteran.disk.read(f"{LOG_DIR}/leader-epoch-checkpoint") == b"0\n1\n4 13\n"
    recovered = veteran.open()
    state = recovered.state
    assert (state.log_start, state.end, state.snapshots) == (13, at(18, 4), (info,))
    assert content.endswith(veteran.content())
    assert recovered.findings == ()


def test_a_snapshot_that_is_published_during_a_cleaning_stays(
    veteran: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread writes snapshots in parallel with the one that cleans."""
    veteran.snapshot(at(5, 1))
    kept = veteran.snapshot(at(13, 4))
    veteran.config = replace(veteran.config, retention_bytes=0)
    veteran.open()
    store = veteran.store
    writer = store.begin_snapshot(at(18, 4), timestamp_ms=999)
    writer.append([b"meanwhile"])
    advance = store.log.advance_start

    def advance_meanwhile(start: Offset, snapshots: list[SnapshotInfo]) -> None:
        advance(start, snapshots)
        published.append(writer.freeze())

    published: list[SnapshotInfo] = []
    monkeypatch.setattr(store.log, "advance_start", advance_meanwhile)
    assert store.clean(Offset(13)) == LogCleaned(Offset(13), (kept,))
    assert [*store.snapshots.stored()] == [kept, *published]
    store.snapshot_stored(published[0])
    assert veteran.open().state.snapshots == (kept, *published)


def test_cleaning_by_age_needs_the_time(veteran: Replica) -> None:
    veteran.snapshot(at(5, 1))
    veteran.snapshot(at(13, 4))
    veteran.config = replace(veteran.config, retention_bytes=-1, retention_ms=1000)
    veteran.open()
    assert veteran.store.clean(Offset(18)) is None
    assert veteran.store.clean(Offset(18), now_ms=1103) is None
    cleaned = veteran.store.clean(Offset(18), now_ms=1104)
    assert cleaned is not None
    assert cleaned.log_start == 13


def test_age_without_limit_cleans_nothing(veteran: Replica) -> None:
    veteran.snapshot(at(5, 1))
    veteran.snapshot(at(13, 4))
    veteran.config = replace(veteran.config, retention_bytes=-1, retention_ms=-1)
    veteran.open()
    assert veteran.store.clean(Offset(18), now_ms=1 << 60) is None


def test_healing_is_forgotten_when_the_core_says_so(veteran: Replica) -> None:
    veteran.flip(f"{LOG_DIR}/{veteran.logs()[1]}", 100)
    assert veteran.open().healing_state.remembered_end == at(18, 4)
    veteran.store.end_healing()
    assert veteran.open().healing_state == HealingState()


# --- crashes --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Promises:
    """Everything acknowledged so far, and its possible states since."""

    content: bytes = b""
    epoch: int = 0
    cleaned: Offset = field(default=Offset(0))
    may_be_installed: bool = False
    is_installed: bool = False


INSTALLED = at(1000, 7)
FETCHED = snapshot_file(INSTALLED)


def live(replica: Replica, promises: Promises) -> None:
    """A life with everything in it: epochs, rolls, a cut, snapshots, cleaning, a fetched one."""

    def flush() -> None:
        content = replica.content()
        replica.flush()
        promises.content = content

    def begin_epoch(epoch: int) -> None:
        replica.begin_epoch(epoch)
        promises.epoch = epoch
        flush()

    replica.config = replace(replica.config, retention_bytes=0)
    replica.open()
    begin_epoch(1)
    for number in range(5):
        replica.append(b"one %d" % number, b"x" * number)
        if number % 2:
            flush()
    begin_epoch(2)
    replica.append(b"diverging")
    flush()
    promises.content = replica.store.read_range(
        LogRange(start=Offset(0), end=Offset(9), bytes_max=1 << 20)
    )
    replica.truncate(at(9, 1))
    begin_epoch(3)
    replica.append(b"three")
    flush()
    replica.snapshot(replica.end, b"older state")
    for number in range(4):
        replica.append(b"more %d" % number)
        flush()
    replica.snapshot(replica.end, b"newer state")
    promises.cleaned = replica.end.offset
    assert replica.store.clean(replica.end.offset) is not None
    replica.append(b"after cleaning")
    flush()
    replica.save(7)
    promises.epoch = 7
    promises.may_be_installed = True
    replica.install(INSTALLED, FETCHED)
    promises.is_installed, promises.content = True, b""
    replica.append(b"after installing")
    flush()


def since(content: bytes, start: int) -> bytes:
    """The batches from `start` on."""
    ends = [position for position, header in iter_batches(content) if header.base_offset >= start]
    return content[ends[0] :] if ends else b""


def check(replica: Replica, promises: Promises) -> None:
    """Recovery keeps every promise, and takes nothing for damage."""
    recovered = replica.open()
    state = recovered.state
    assert (recovered.is_damaged, state.remembered_end) == (False, None)
    assert (state.election.epoch if state.election else 0) >= promises.epoch
    assert state.log_start <= promises.cleaned or state.log_start == INSTALLED.offset
    if state.end.offset >= INSTALLED.offset:
        assert promises.may_be_installed
        assert replica.content().startswith(promises.content if promises.is_installed else b"")
        return
    assert not promises.is_installed
    start = max(state.log_start, promises.cleaned)
    assert replica.content(start).startswith(since(promises.content, start))


def calls_of(replica: Replica) -> int:
    count = 0

    def note(operation: str, path: str) -> None:
        nonlocal count
        del operation, path
        count += 1

    replica.disk.hook = note
    live(replica, Promises())
    return count


@pytest.mark.parametrize("survival", [None, *Survival])
@pytest.mark.parametrize("second_crash", [None, 15, 25])
def test_nothing_acknowledged_is_lost_wherever_a_crash_comes(
    survival: Survival | None, second_crash: int | None
) -> None:
    for calls in range(calls_of(Replica())):
        replica, promises = Replica(), Promises()
        replica.crash_after(calls)
        with pytest.raises(Crashed):
            live(replica, promises)
        replica.revive()
        if survival is not None:
            replica.lose_power(survival, seed=calls)
        if second_crash is not None:
            replica.crash_after(second_crash)
            with pytest.raises(Crashed):
                replica.open()
            replica.revive()
            replica.lose_power(survival or Survival.NOTHING, seed=calls)
        check(replica, promises)


def test_a_chunk_may_come_twice_from_the_beginning(replica: Replica) -> None:
    for _ in range(2):
        replica.store.write_chunk(WriteSnapshotChunk(INSTALLED, 0, FETCHED[:40]))
    replica.store.write_chunk(WriteSnapshotChunk(INSTALLED, 40, FETCHED[40:]))
    assert isinstance(
        replica.store.install(InstallSnapshot(snapshot_id=INSTALLED, generation=1)),
        SnapshotInstalled,
    )


def test_closing_ends_the_use_of_the_files(replica: Replica) -> None:
    replica.store.close()
    assert replica.open().findings == ()


# --- snapshots that others fetch, or that are corrupt (rule `snapshot_pinning`) -------------------


def with_three_snapshots() -> Replica:
    """A log of several segments with snapshots at 5, 12 and 18, of which retention keeps one."""
    replica = Replica()
    replica.config = replace(replica.config, retention_bytes=0)
    replica.write_history()
    for where in (at(5, 1), at(12, 2), at(18, 4)):
        replica.snapshot(where)
    return replica


def checkpoints(replica: Replica) -> list[str]:
    return [name for name in replica.files() if name.startswith("0000") and ".checkpoint" in name]


@pytest.mark.rule("snapshot_pinning")
def test_a_rotten_snapshot_that_was_only_to_be_deleted_is_set_aside() -> None:
    replica = with_three_snapshots()
    replica.config = replace(replica.config, retention_bytes=-1, retention_ms=1)
    replica.store._config = replica.config
    replica.flip(replica.store.snapshots.path(at(5, 1)), 70)
    said: list[str] = []
    cleaned = replica.store.clean(Offset(18), now_ms=1 << 40, report=said.append)
    assert cleaned is not None
    assert cleaned.log_start == 18
    assert len(said) == 1
    assert "00000000000000000005-0000000001.checkpoint: damaged at byte 0" in said[0]
    assert "00000000000000000005-0000000001.checkpoint.damaged" in replica.files()
    assert replica.open().state.end == at(18, 4)


@pytest.mark.parametrize(("pinned", "start"), [(at(5, 1), 5), (at(12, 2), 12), (at(18, 4), 18)])
def test_what_others_fetch_is_not_cleaned_away(pinned: OffsetAndEpoch, start: int) -> None:
    replica = with_three_snapshots()
    replica.store.clean(Offset(18), pinned=frozenset({pinned}))
    assert replica.store.log.log_start == (start if start > 5 else 0)
    assert pinned in {info.snapshot_id for info in replica.store.snapshots.stored()}
    assert replica.store.clean(Offset(18)) is not None or start == 18
    assert [info.snapshot_id for info in replica.store.snapshots.stored()] == [at(18, 4)]


def damage_of(replica: Replica, snapshot_id: OffsetAndEpoch) -> str | None:
    *_, found = replica.store.check_snapshot(CheckSnapshot(snapshot_id))
    assert found is not None
    return found.damage


@pytest.mark.parametrize("place", [20, 70, 100])
def test_a_check_finds_what_rotted(place: int) -> None:
    replica = with_three_snapshots()
    assert damage_of(replica, at(12, 2)) is None
    path = replica.store.snapshots.path(at(12, 2))
    replica.flip(path, place)
    damage = damage_of(replica, at(12, 2))
    assert damage is not None
    assert path in damage
    assert damage_of(replica, at(13, 2)) is not None


def test_nothing_older_goes_before_a_damaged_snapshot_has_a_successor() -> None:
    replica = with_three_snapshots()
    replica.flip(replica.store.snapshots.path(at(18, 4)), 70)
    replica.store.mark_damaged(at(18, 4))
    cleaned = replica.store.clean(Offset(18))
    assert cleaned is not None
    assert [info.snapshot_id for info in cleaned.snapshots] == [at(12, 2), at(18, 4)]
    # A crash before there is one: the older snapshot and the log have everything.
    crashed = copy.copy(replica)
    crashed.disk = copy.deepcopy(replica.disk)
    recovered = crashed.open()
    assert (recovered.state.end, recovered.is_damaged) == (at(18, 4), False)
    replica.append(b"more")
    replica.flush()
    replica.snapshot(at(19, 4))
    assert [info.snapshot_id for info in replica.store.snapshots.stored()] == [
        at(12, 2),
        at(19, 4),
    ]
    assert replica.store.log.state.snapshot(at(18, 4)) is None
    assert checkpoints(replica)[-2].endswith(".checkpoint.damaged")


def test_a_damaged_snapshot_is_written_anew_under_its_own_id() -> None:
    replica = with_three_snapshots()
    replica.store.clean(Offset(18))
    replica.flip(replica.store.snapshots.path(at(18, 4)), 70)
    replica.store.mark_damaged(at(18, 4))
    info = replica.snapshot(at(18, 4), b"state", b"anew")
    assert damage_of(replica, at(18, 4)) is None
    assert replica.store.log.state.snapshots == [info]
    assert replica.open().state.snapshots == (info,)


def test_a_slice_of_a_file_that_is_gone_is_empty() -> None:
    replica = with_three_snapshots()
    replica.disk.remove(replica.store.snapshots.path(at(12, 2)))
    assert (
        replica.store.read_chunk(SnapshotRange(snapshot_id=at(12, 2), position=0, bytes_max=10))
        == b""
    )


def test_what_was_fetched_of_another_snapshot_goes() -> None:
    replica = Replica()
    replica.open()
    for where in (at(5, 1), at(9, 1), at(12, 1)):
        replica.store.write_chunk(WriteSnapshotChunk(where, 0, b"abc"))
        replica.store.write_chunk(WriteSnapshotChunk(where, 3, b"def"))
    parts = [name for name in replica.files() if name.endswith(".part")]
    assert parts == ["00000000000000000012-0000000001.checkpoint.part"]
