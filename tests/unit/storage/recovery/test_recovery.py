"""Start-up: what is kept, cut, healed or refused, for every byte that can be wrong."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft.messages import ElectionState, EpochStart, KRaftVersionAt, SnapshotInfo, VotersAt
from quorate.records.batch import iter_batches
from quorate.records.ids import ClusterId, DirectoryId, Epoch, NodeId, Offset
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.healing import HealingState, read_healing
from quorate.storage.meta_properties import encode_meta
from quorate.storage.recovery.recovery import examine
from tests.unit.storage.conftest import ALONE, DIRECTORY, LOG_DIR, THREE, Replica, at, voter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.records.voters import VoterSet

END = at(18, 4)
QUORUM_STATE = f"{LOG_DIR}/quorum-state"
META = f"{DIRECTORY}/meta.properties"
FLUSHED_END = f"{DIRECTORY}/flushed-end"
EPOCHS = f"{LOG_DIR}/leader-epoch-checkpoint"


def with_history(voters: VoterSet = THREE) -> Replica:
    replica = Replica(voters)
    replica.write_history()
    replica.disk.settle()
    return replica


def boundaries(content: bytes) -> dict[int, int]:
    """The offset reached after so many bytes."""
    ends = {position + h.size_bytes: h.last_offset + 1 for position, h in iter_batches(content)}
    return {0: 0, **ends}


def each_byte_flipped(replica: Replica, paths: list[str]) -> Iterator[tuple[str, Replica]]:
    """A copy for each byte of these files, with one bit of it flipped: another one each time."""
    disk = replica.disk
    for path in paths:
        for position in range(len(disk.read(path))):
            spoilt = copy.copy(replica)
            spoilt.disk = copy.deepcopy(disk)
            spoilt.flip(path, position, 1 << position % 8)
            yield f"{path}:{position}", spoilt


def logs(replica: Replica) -> list[str]:
    return [f"{LOG_DIR}/{name}" for name in replica.logs()]


def refusal(replica: Replica) -> str:
    """The reason for which the directory is refused; nothing in it has changed."""
    before = replica.everything()
    with pytest.raises(StorageError) as error:
        replica.open()
    assert replica.everything() == before
    return str(error.value)


# --- what is found --------------------------------------------------------------------------------


@pytest.mark.rule("quorum_state_required")
def test_the_first_start_writes_quorum_state_before_the_first_segment() -> None:
    replica = Replica()
    order: list[str] = []
    replica.disk.hook = lambda operation, path: order.append(f"{operation} {path}")
    recovered = replica.open()
    assert (recovered.state.end, recovered.state.election) == (at(0, 0), None)
    assert recovered.state.voters == (VotersAt(Offset(-1), THREE),)
    assert recovered.state.kraft_versions == (KRaftVersionAt(Offset(-1), 1),)
    assert not recovered.state.abstains
    first_segment = order.index(f"truncate {LOG_DIR}/00000000000000000000.log")
    assert order.index(f"rename {QUORUM_STATE}.tmp") < first_segment


def test_a_log_is_found_as_it_was_left(veteran: Replica) -> None:
    content = veteran.content()
    veteran.snapshot(at(12, 2), b"s")
    recovered = veteran.open()
    state = recovered.state
    assert (state.log_start, state.end, veteran.content()) == (0, END, content)
    assert state.epochs == (
        EpochStart(Epoch(1), Offset(0)),
        EpochStart(Epoch(2), Offset(11)),
        EpochStart(Epoch(4), Offset(12)),
    )
    size = veteran.store.snapshots.size(at(12, 2))
    assert state.snapshots == (SnapshotInfo(at(12, 2), size),)
    assert state.voters == (VotersAt(Offset(11), THREE),)
    assert state.kraft_versions == (KRaftVersionAt(Offset(11), 1),)
    assert state.election == ElectionState(Epoch(4), NodeId(1), voter(1).key)
    assert (state.remembered_end, recovered.findings, recovered.is_damaged) == (None, (), False)
    assert recovered.meta == veteran.meta


def test_sets_in_the_log_follow_those_of_the_bootstrap(veteran: Replica) -> None:
    veteran.set_voters(ALONE)
    veteran.flush()
    assert veteran.open().state.voters == (
        VotersAt(Offset(-1), THREE),
        VotersAt(Offset(2), THREE),
        VotersAt(Offset(18), ALONE),
    )


@pytest.mark.rule("recovery_flush")
def test_written_bytes_of_a_killed_process_are_kept_and_flushed(veteran: Replica) -> None:
    veteran.append(b"written, not flushed")
    content = veteran.content()
    recovered = veteran.open()
    assert (recovered.state.end, veteran.content()) == (at(19, 4), content)
    assert veteran.disk.first_unsafe(LOG_DIR, ".log") is None


def test_leftovers_of_an_earlier_process_go(veteran: Replica) -> None:
    names = ["x.checkpoint.part", "x.log.deleted", "quorum-state.tmp", "00.index", "00.timeindex"]
    for name in names:
        veteran.disk.open(f"{LOG_DIR}/{name}", create=True)
    veteran.open()
    assert not set(names) & set(veteran.files())


# --- tails ----------------------------------------------------------------------------------------


@pytest.mark.rule("flushed_end_file")
def test_every_cut_of_an_unflushed_tail_recovers_to_a_batch_boundary() -> None:
    replica = Replica(segment_bytes=1 << 20)
    replica.open()
    replica.begin_epoch(1)
    replica.flush()
    flushed = replica.content()
    for number in range(3):
        replica.append(b"x" * 20, b"%d" % number)
    whole = replica.content()
    path = f"{LOG_DIR}/{replica.logs()[0]}"
    for size in range(len(flushed), len(whole) + 1):
        torn = copy.copy(replica)
        torn.disk = copy.deepcopy(replica.disk)
        torn.disk.open(path).truncate(size)
        recovered = torn.open()
        kept = max(end for end in boundaries(whole) if end <= size)
        assert (torn.content(), recovered.state.remembered_end) == (whole[:kept], None)
        assert recovered.state.end.offset == boundaries(whole)[kept]
        assert torn.files()[replica.logs()[0]] == kept


@pytest.mark.parametrize("is_alone", [False, True])
def test_every_cut_of_a_stock_log_recovers_to_a_batch_boundary(*, is_alone: bool) -> None:
    replica = Replica(ALONE if is_alone else THREE, segment_bytes=1 << 20)
    replica.write_history()
    replica.disk.remove(FLUSHED_END)
    whole = replica.content()
    path = f"{LOG_DIR}/{replica.logs()[0]}"
    for size in range(len(whole)):
        torn = copy.copy(replica)
        torn.disk = copy.deepcopy(replica.disk)
        torn.disk.open(path).truncate(size)
        recovered = torn.open()
        kept = max(end for end in boundaries(whole) if end <= size)
        assert (torn.content(), recovered.is_damaged) == (whole[:kept], False)


@pytest.mark.parametrize("tail", [bytes(4096), bytes((i * 37 + 11) & 255 for i in range(300))])
def test_garbage_behind_the_log_is_cut_off_and_said(veteran: Replica, tail: bytes) -> None:
    content = veteran.content()
    name = veteran.logs()[-1]
    size = veteran.files()[name]
    veteran.disk.open(f"{LOG_DIR}/{name}").write_at(size, tail)
    recovered = veteran.open()
    assert (recovered.state.end, veteran.content()) == (END, content)
    (finding,) = recovered.findings
    assert finding.startswith(f"tail: {LOG_DIR}/{name}: byte {size}: ")


def test_a_segment_of_the_tail_goes_with_what_is_before_it(replica: Replica) -> None:
    replica.begin_epoch(1)
    replica.flush()
    for _ in range(4):
        replica.append(b"x" * 100)
    names = replica.logs()
    replica.flip(f"{LOG_DIR}/{names[1]}", 70)
    assert replica.open().state.end == at(3, 1)
    assert replica.logs() == names[:1]


# --- damage: every byte ---------------------------------------------------------------------------


def test_a_voter_of_three_heals_for_every_byte_of_its_log() -> None:
    replica = with_history()
    whole = replica.content()
    for where, spoilt in each_byte_flipped(replica, logs(replica)):
        recovered = spoilt.open()
        assert recovered.is_damaged, where
        assert recovered.state.remembered_end == END, where
        assert whole.startswith(spoilt.content()), where
        assert recovered.state.end.offset == boundaries(whole)[len(spoilt.content())], where
        keys = tuple(v.key for v in THREE)
        assert read_healing(spoilt.disk, f"{DIRECTORY}/healing") == HealingState(END, keys), where
        assert spoilt.open().state == replace(recovered.state), where


def test_a_single_voter_refuses_to_start_for_every_byte_of_its_log() -> None:
    replica = with_history(ALONE)
    for where, spoilt in each_byte_flipped(replica, logs(replica)):
        said = refusal(spoilt)
        assert "this is the only voter" in said, where
        assert "restore /data from a backup" in said, where


def test_the_way_out_of_a_single_voter_is_exact() -> None:
    replica = with_history(ALONE)
    content = replica.content()
    names = replica.logs()
    replica.flip(f"{LOG_DIR}/{names[1]}", 150)
    said = refusal(replica)
    assert f"{LOG_DIR}/{names[1]}: byte 85: CRC is" in said
    doomed = " ".join([*(f"{LOG_DIR}/{name}" for name in names[2:]), FLUSHED_END])
    assert f"cut {LOG_DIR}/{names[1]} to 85 bytes and remove {doomed}" in said
    replica.disk.open(f"{LOG_DIR}/{names[1]}").truncate(85)
    for path in doomed.split():
        replica.disk.remove(path)
    recovered = replica.open()
    assert (recovered.state.end, recovered.is_damaged) == (at(7, 1), False)
    assert content.startswith(replica.content())


def test_a_voter_of_three_heals_for_every_byte_of_a_snapshot_that_its_log_needs() -> None:
    replica = with_history()
    replica.snapshot(at(12, 2), b"older")
    replica.snapshot(END, b"state")
    replica.config = replace(replica.config, retention_bytes=0)
    replica.open()
    assert replica.store.clean(END.offset) is not None
    replica.append(b"behind the snapshot")
    replica.flush()
    replica.disk.settle()
    path = replica.store.snapshots.path(END)
    for where, spoilt in each_byte_flipped(replica, [path]):
        recovered = spoilt.open()
        assert recovered.is_damaged, where
        assert (recovered.state.end, recovered.state.remembered_end) == (at(0, 0), at(19, 4)), where
        assert recovered.state.voters == (VotersAt(Offset(-1), THREE),), where
        assert f"{path}.damaged".rpartition("/")[2] in spoilt.files(), where


def test_a_snapshot_that_the_log_can_replace_is_only_set_aside() -> None:
    for voters in (THREE, ALONE):
        replica = with_history(voters)
        content = replica.content()
        replica.snapshot(at(12, 2), b"state")
        path = replica.store.snapshots.path(at(12, 2))
        for where, spoilt in each_byte_flipped(replica, [path]):
            recovered = spoilt.open()
            assert not recovered.is_damaged, where
            assert (recovered.state.end, spoilt.content()) == (END, content), where
            assert recovered.state.snapshots == (), where
            assert path in recovered.findings[0], where


def test_damage_below_the_newest_snapshot_restarts_the_log_there(veteran: Replica) -> None:
    veteran.snapshot(at(12, 2), b"state")
    veteran.flip(f"{LOG_DIR}/{veteran.logs()[1]}", 100)
    names = veteran.logs()
    recovered = veteran.open()
    assert (recovered.state.log_start, recovered.state.end) == (12, at(12, 2))
    assert recovered.state.remembered_end == END
    assert {f"{name}.damaged" for name in names} <= set(veteran.files())
    assert veteran.logs() == ["00000000000000000012.log"]
    assert veteran.disk.read(EPOCHS) == b"0\n1\n2 12\n"


def test_a_stock_log_with_whole_batches_behind_the_damage_is_damaged() -> None:
    replica = with_history()
    replica.disk.remove(FLUSHED_END)
    whole = replica.content()
    last = max(position for position, _ in iter_batches(whole))
    size = sum(replica.files()[name] for name in replica.logs()[:-1])
    for where, spoilt in each_byte_flipped(replica, logs(replica)):
        recovered = spoilt.open()
        position = int(where.rpartition(":")[2])
        in_last = where.startswith(logs(replica)[-1]) and size + position >= last
        if not in_last:
            assert recovered.is_damaged, where
            assert recovered.state.remembered_end == END, where
        assert recovered.state.end < END, where


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.rule("quorum_state_required")
def test_a_log_without_quorum_state_is_refused(veteran: Replica) -> None:
    veteran.disk.remove(QUORUM_STATE)
    assert "could vote twice in one epoch" in refusal(veteran)


@pytest.mark.rule("quorum_state_required")
@pytest.mark.parametrize("kept", ["flushed-end", "snapshot"])
def test_any_trace_of_an_earlier_life_needs_quorum_state(kept: str) -> None:
    replica = Replica()
    replica.open()
    replica.disk.remove(QUORUM_STATE)
    if kept == "snapshot":
        replica.disk.remove(FLUSHED_END)
        name = "00000000000000000009-0000000001.checkpoint"
        replica.disk.open(f"{LOG_DIR}/{name}", create=True)
    assert kept.replace("snapshot", "checkpoint") in refusal(replica)


def test_a_quorum_state_from_before_the_log_is_refused(veteran: Replica) -> None:
    old = (
        b'{"leaderId":-1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    )
    write_atomically(veteran.disk, QUORUM_STATE, old + b'"data_version":1}')
    assert "quorum-state: epoch 3, but this log was flushed up to 18@4" in refusal(veteran)


@pytest.mark.parametrize(
    ("path", "data", "reason"),
    [
        (QUORUM_STATE, b'{"leaderId":1,"leaderEp', "quorum-state: not JSON"),
        (EPOCHS, b"0\n3\n1 0\n", "leader-epoch-checkpoint: the count is '3'"),
        (EPOCHS, b"0\n2\n1 0\n4 12\n", "leader-epoch-checkpoint: says that epochs begin at 0"),
        (META, b"", "meta.properties: version is missing"),
        (f"{DIRECTORY}/healing", b"{}", "healing: malformed"),
    ],
)
def test_malformed_files_are_refused(veteran: Replica, path: str, data: bytes, reason: str) -> None:
    write_atomically(veteran.disk, path, data)
    assert reason in refusal(veteran)


def test_a_directory_without_identity_is_refused(veteran: Replica) -> None:
    veteran.disk.remove(META)
    assert "meta.properties is missing: format the directory first" in refusal(veteran)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"cluster_id": ClusterId("other")}, "cluster.id"),
        ({"directory_id": DirectoryId(b"\x07" * 16)}, "directory.id"),
        ({"node_id": NodeId(7)}, "node.id"),
    ],
)
def test_another_identity_is_refused(
    veteran: Replica, changed: dict[str, object], name: str
) -> None:
    veteran.config = replace(veteran.config, **changed)  # type: ignore[arg-type]
    assert f"meta.properties: {name} is " in refusal(veteran)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        (b"cluster.id=", b"cluster.id=X", "cluster.id"),
        (b"AQEBAQEBAQEBAQEBAQEBAQ", b"AQEBAQEBAQEBAQEBAQEBAg", "directory.id"),
    ],
)
def test_an_identity_that_was_changed_under_the_log_is_refused(
    veteran: Replica, old: bytes, new: bytes, name: str
) -> None:
    changed = veteran.disk.read(META).replace(old, new)
    if name == "directory.id":
        changed = changed.replace(b"AQEBAQEBAQEBAQEBAQEBAg", b"AgICAgICAgICAgICAgICAg")
    write_atomically(veteran.disk, META, changed)
    assert f"meta.properties: {name} is " in refusal(veteran)


def test_a_stock_directory_knows_its_id_from_its_first_voters() -> None:
    replica = Replica()
    changed = replica.disk.read(META).replace(b"AQEBAQEBAQEBAQEBAQEBAQ", b"AgICAgICAgICAgICAgICAg")
    write_atomically(replica.disk, META, changed)
    assert "belongs to AQEBAQEBAQEBAQEBAQEBAQ" in refusal(replica)


# --- rebuilt where nothing can be lost ------------------------------------------------------------


def test_a_missing_epoch_history_is_made_anew(veteran: Replica) -> None:
    before = veteran.disk.read(EPOCHS)
    veteran.disk.remove(EPOCHS)
    recovered = veteran.open()
    assert veteran.disk.read(EPOCHS) == before
    assert recovered.findings == (f"{EPOCHS} is missing: built anew from the log",)


def test_missing_partition_metadata_is_written_anew(veteran: Replica) -> None:
    path = f"{LOG_DIR}/partition.metadata"
    before = veteran.disk.read(path)
    veteran.disk.remove(path)
    recovered = veteran.open()
    assert veteran.disk.read(path) == before
    assert recovered.findings == (f"{path} was missing: written anew",)


def test_the_first_voters_are_not_needed_once_the_log_has_them(veteran: Replica) -> None:
    veteran.flip(f"{LOG_DIR}/00000000000000000000-0000000000.checkpoint", 80)
    recovered = veteran.open()
    assert recovered.state.voters == (VotersAt(Offset(2), THREE),)
    assert "not needed any more" in recovered.findings[0]


def test_damaged_first_voters_are_refused_as_long_as_nothing_else_names_them() -> None:
    replica = Replica()
    replica.flip(f"{LOG_DIR}/00000000000000000000-0000000000.checkpoint", 80)
    assert "copy the file from another of the first voters" in refusal(replica)


def test_a_log_emptied_by_hand_restarts_at_the_snapshot_of_a_stock_directory() -> None:
    replica = with_history(ALONE)
    replica.snapshot(at(12, 2), b"state")
    replica.disk.remove(FLUSHED_END)
    for path in logs(replica):
        replica.disk.remove(path)
    recovered = replica.open()
    assert (recovered.state.log_start, recovered.state.end) == (12, at(12, 2))
    assert recovered.findings == ()


def test_damage_is_measured_by_what_lies_behind_it_where_the_flushed_end_is_older() -> None:
    replica = Replica()
    replica.open()
    replica.begin_epoch(1)
    for number in range(3):
        replica.append(b"early %d" % number)
    replica.flush()
    replica.store.log.sync_flushed_end()
    known = replica.end
    for number in range(3):
        replica.append(b"late %d" % number)
        replica.flush()
    once = replica.end
    replica.lose_all_unflushed()
    tail = copy.copy(replica)
    tail.disk = copy.deepcopy(replica.disk)
    size = len(replica.disk.read(f"{LOG_DIR}/{replica.logs()[0]}"))
    replica.flip(f"{LOG_DIR}/{replica.logs()[0]}", size // 2)
    recovered = replica.open()
    assert recovered.state.end < known < once
    assert recovered.state.remembered_end == once
    # Above the end that is known, bit rot looks like a torn tail: it is truncated.
    last = tail.logs()[-1]
    tail.flip(f"{LOG_DIR}/{last}", len(tail.disk.read(f"{LOG_DIR}/{last}")) - 1)
    recovered = tail.open()
    assert known <= recovered.state.end < once
    assert recovered.state.remembered_end is None


def test_an_examination_judges_as_recovery_does_and_changes_nothing() -> None:
    replica = with_history()
    replica.flip(logs(replica)[1], 80)
    before = replica.everything()
    examined = examine(replica.disk, DIRECTORY, replica.config)
    assert replica.everything() == before
    recovered = replica.open()
    assert (examined.state, examined.meta) == (recovered.state, recovered.meta)
    assert examined.log_decision.remembered_end == END
    assert examined.voters == tuple(voter.key for voter in THREE)
    assert set(examined.findings) <= set(recovered.findings)


def test_a_directory_without_a_log_is_no_subject_of_an_examination() -> None:
    replica = with_history()
    replica.disk.wipe()
    replica.disk.make_dirs(DIRECTORY)
    write_atomically(replica.disk, META, encode_meta(replica.meta))
    with pytest.raises(StorageError, match="has never been in use"):
        examine(replica.disk, DIRECTORY, replica.config)
