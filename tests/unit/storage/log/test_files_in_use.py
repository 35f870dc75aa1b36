"""Files in use that another program removes or replaces: noticed, and put back."""

from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING

import pytest

from quorate.raft.api import SaveElection
from quorate.raft.messages import ElectionState
from quorate.records.ids import Epoch, NodeId
from quorate.records.voters import VoterSet
from quorate.sim.engine.disk import SimulatedFile
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem, write_atomically
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.log.files_in_use import LostFile, PutBack
from quorate.storage.log_store import LogStore
from quorate.storage.quorum_state import decode_quorum_state
from quorate.storage.storage_config import StorageConfig
from tests.unit.storage.conftest import DIRECTORY, LOG_DIR, THREE, Crashed, Replica, at, voter

if TYPE_CHECKING:
    from pathlib import Path

QUORUM_STATE = f"{LOG_DIR}/quorum-state"


def remove(replica: Replica, *names: str) -> None:
    for name in names:
        replica.disk.put_back(f"{LOG_DIR}/{name}", None)


def remove_logs(replica: Replica) -> None:
    remove(replica, *replica.logs())


def put_back(replica: Replica) -> PutBack:
    return replica.store.files.put_back(replica.store.files.lost())


def test_what_a_replica_does_to_its_own_files_is_no_loss() -> None:
    replica = Replica()
    replica.write_history()
    lost = replica.store.files.lost
    assert lost() == ()
    replica.open()
    assert lost() == ()
    replica.save(5)
    assert replica.store.files.lost() == ()
    replica.truncate(at(13, 4))
    assert replica.store.files.lost() == ()
    replica.snapshot(at(12, 2))
    replica.store.log.advance_start(at(12, 2).offset, [])
    assert replica.store.files.lost() == ()
    assert len(replica.logs()) < 5


def test_a_cut_that_finds_its_segment_gone_leaves_it_open(veteran: Replica) -> None:
    content = veteran.content()
    remove_logs(veteran)
    with pytest.raises(FileNotFoundError):
        veteran.truncate(at(3, 1))
    assert put_back(veteran).problem == ""
    recovered = veteran.open()
    assert (veteran.content(), recovered.state.remembered_end) == (content, None)


def test_all_that_is_lost_is_named_and_put_back(veteran: Replica) -> None:
    content, end, names = veteran.content(), veteran.end, veteran.logs()
    election = veteran.disk.read(QUORUM_STATE)
    remove(veteran, *names, "quorum-state")
    lost = veteran.store.files.lost()
    paths = (QUORUM_STATE, *(f"{LOG_DIR}/{name}" for name in names))
    assert lost == tuple(LostFile(path, is_replaced=False) for path in paths)
    assert str(lost[0]) == f"{QUORUM_STATE} is gone"
    assert veteran.store.files.put_back(lost) == PutBack(paths)
    assert veteran.store.files.lost() == ()
    assert veteran.disk.read(QUORUM_STATE) == election
    veteran.lose_all_unflushed()
    recovered = veteran.open()
    assert (veteran.content(), veteran.end, recovered.findings) == (content, end, ())


def test_what_was_written_into_a_file_without_a_name_is_put_back(veteran: Replica) -> None:
    remove_logs(veteran)
    veteran.append(b"acknowledged")
    veteran.flush()
    veteran.append(b"not even flushed")
    content, end = veteran.content(), veteran.end
    assert put_back(veteran).problem == ""
    # The image may stand above what was flushed here, where the others had flushed it.
    veteran.snapshot(end)
    veteran.lose_all_unflushed()
    recovered = veteran.open()
    assert (veteran.content(), veteran.end) == (content, end)
    assert recovered.state.remembered_end is None


def test_one_older_segment_is_put_back_alone(veteran: Replica) -> None:
    content, name = veteran.content(), veteran.logs()[1]
    remove(veteran, name)
    assert put_back(veteran) == PutBack((f"{LOG_DIR}/{name}",))
    veteran.open()
    assert veteran.content() == content


def test_an_older_copy_in_the_place_of_a_file_is_set_aside() -> None:
    veteran = Replica(segment_bytes=4096)
    veteran.write_history()
    path = f"{LOG_DIR}/{veteran.logs()[-1]}"
    old_log, old_election = veteran.disk.read(path), veteran.disk.read(QUORUM_STATE)
    veteran.append(b"newer")
    veteran.flush()
    veteran.save(9)
    content = veteran.content()
    for name, data in ((path, old_log), (QUORUM_STATE, old_election)):
        veteran.disk.put_back(name, data)
    lost = veteran.store.files.lost()
    assert lost == (LostFile(QUORUM_STATE, is_replaced=True), LostFile(path, is_replaced=True))
    assert str(lost[1]) == f"{path} was replaced"
    assert veteran.store.files.put_back(lost).problem == ""
    assert veteran.disk.read(f"{path}.damaged") == old_log
    assert veteran.disk.read(f"{QUORUM_STATE}.damaged") == old_election
    recovered = veteran.open()
    assert veteran.content() == content
    assert recovered.state.election == ElectionState(Epoch(9), NodeId(1), voter(1).key)


def test_an_unreadable_quorum_state_counts_as_replaced(veteran: Replica) -> None:
    veteran.disk.put_back(QUORUM_STATE, b"{")
    assert veteran.store.files.lost() == (LostFile(QUORUM_STATE, is_replaced=True),)


def test_a_file_system_that_numbers_open_files_anew_is_no_loss(
    veteran: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedFile, "is_at", lambda _file, _path: False)
    assert veteran.store.files.lost() == ()
    veteran.append(b"not flushed")
    assert veteran.store.files.lost() == ()
    remove(veteran, veteran.logs()[0])
    assert len(veteran.store.files.lost()) == 1


def test_a_copy_of_a_file_is_noticed_once_it_lacks_something() -> None:
    veteran = Replica(segment_bytes=4096)
    veteran.write_history()
    path = f"{LOG_DIR}/{veteran.logs()[-1]}"
    veteran.disk.put_back(path, veteran.disk.read(path))
    assert veteran.store.files.lost() == ()
    veteran.append(b"more")
    assert veteran.store.files.lost() == (LostFile(path, is_replaced=True),)


@pytest.mark.parametrize("other", [None, b"node.id=2\n"])
def test_nothing_is_written_where_the_directory_is_another(
    veteran: Replica, other: bytes | None
) -> None:
    if other is not None:
        other += veteran.disk.read(f"{DIRECTORY}/meta.properties").replace(b"node.id=1\n", b"")
    veteran.disk.put_back(f"{DIRECTORY}/meta.properties", other)
    remove_logs(veteran)
    before = veteran.files()
    back = put_back(veteran)
    assert (back.paths, back.is_refused, veteran.files()) == ((), True, before)
    assert "meta.properties is" in back.problem
    assert "removed or moved, or its disk unmounted" in back.problem


def test_nothing_is_written_to_a_disk_that_has_failed(veteran: Replica) -> None:
    veteran.log.fail(OSError(errno.EIO, "bad sector"))
    veteran.log.fail(FileNotFoundError("later"))
    remove_logs(veteran)
    back = put_back(veteran)
    assert back.is_refused
    assert "the disk failed before" in back.problem
    assert veteran.logs() == []


def test_a_full_disk_is_told_with_what_is_back_already(veteran: Replica) -> None:
    names = veteran.logs()
    remove(veteran, *names, "quorum-state")

    def is_full(operation: str, path: str) -> None:
        if operation == "write_at" and path.endswith(f"{names[1]}.tmp"):
            raise OSError(errno.ENOSPC, "No space left on device", path)

    veteran.disk.hook = is_full
    back = put_back(veteran)
    assert back.paths == (QUORUM_STATE, f"{LOG_DIR}/{names[0]}")
    assert not back.is_refused
    assert "No space left on device" in back.problem


def test_a_descriptor_that_gives_less_back_puts_nothing_in_its_place(veteran: Replica) -> None:
    name = veteran.logs()[-1]
    segment = veteran.log.segments.files[-1]
    segment.file.truncate(segment.size_bytes - 1)
    remove(veteran, name)
    assert "does not give back all of it" in put_back(veteran).problem
    assert name not in veteran.logs()


def test_a_crash_at_any_call_leaves_a_log_that_is_whole_or_known_to_be_less() -> None:
    seen = set()
    for calls in range(200):
        replica = Replica()
        replica.write_history()
        content, end = replica.content(), replica.end
        remove(replica, *replica.logs(), "quorum-state")
        replica.crash_after(calls)
        try:
            put_back(replica)
            is_over = True
        except Crashed:
            is_over = False
        replica.revive()
        replica.lose_all_unflushed()
        try:
            recovered = replica.open()
        except StorageError as error:
            seen.add(str(error).split(",")[0])
        else:
            if replica.content() == content:
                assert recovered.state.remembered_end is None
                seen.add("whole")
            else:
                assert recovered.state.remembered_end == end
                seen.add("heals")
        if is_over:
            break
    else:
        pytest.fail("it never ends")
    assert seen == {f"{QUORUM_STATE} is missing", "heals", "whole"}


def test_a_vote_keeps_its_directory_at_kraft_version_0() -> None:
    """A file of version 1 that was read at the start, put back where version 0 would do."""
    replica = Replica(voters=None)
    replica.config = StorageConfig(node_id=NodeId(1), static_voters=THREE)
    replica.open()
    state = ElectionState(Epoch(3), None, voter(2).key)
    replica.store.save_election(SaveElection(state, 1, VoterSet()))
    replica.open()
    remove(replica, "quorum-state")
    assert put_back(replica).paths == (QUORUM_STATE,)
    assert decode_quorum_state(replica.disk.read(QUORUM_STATE)) == state
    assert replica.store.files.lost() == ()


def test_a_first_start_has_lost_nothing(replica: Replica) -> None:
    assert replica.store.files.lost() == ()


# --- on the operating system's files --------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """An open replica without records."""
    fs, meta = OsFileSystem(), Replica().meta
    formatting = Formatting(meta=meta, records=[], voters=THREE)
    format_directory(fs, str(tmp_path), formatting, timestamp_ms=1)
    store, _ = LogStore.open(fs, str(tmp_path), StorageConfig(node_id=NodeId(1)))
    state = ElectionState(Epoch(1), NodeId(1), voter(1).key)
    store.save_election(SaveElection(state, 1, THREE))
    return store


def test_a_removed_directory_is_made_anew(store: LogStore, tmp_path: Path) -> None:
    assert store.files.lost() == ()
    shutil.rmtree(tmp_path / "__cluster_metadata-0")
    lost = store.files.lost()
    assert len(lost) == 2
    assert store.files.put_back(lost) == PutBack(tuple(file.path for file in lost))
    store.close()
    again, recovered = LogStore.open(
        OsFileSystem(), str(tmp_path), StorageConfig(node_id=NodeId(1))
    )
    assert recovered.state.election == ElectionState(Epoch(1), NodeId(1), voter(1).key)
    again.close()


def test_a_directory_in_the_place_of_a_file_or_of_a_folder_is_told(
    store: LogStore, tmp_path: Path
) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    segment = folder / f"{0:020d}.log"
    segment.unlink()
    segment.mkdir()
    assert store.files.lost() == (LostFile(str(segment), is_replaced=True),)
    shutil.rmtree(folder)
    folder.write_bytes(b"")
    lost = store.files.lost()
    assert [file.is_replaced for file in lost] == [False, False]
    assert "it is no directory" in store.files.put_back(lost).problem
    store.close()


def test_a_file_with_another_number_is_another_file(tmp_path: Path) -> None:
    fs, path = OsFileSystem(), str(tmp_path / "a")
    write_atomically(fs, path, b"1")
    file = fs.open(path)
    assert file.is_at(path)
    write_atomically(fs, path, b"1")
    assert not file.is_at(path)
    assert not file.is_at(f"{path}/b")
    file.close()
    with pytest.raises(OSError, match=path):
        file.read_at(0, 1)
