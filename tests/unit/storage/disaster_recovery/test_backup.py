"""The content of a backup: snapshot and log behind it, also while the directory changes."""

from __future__ import annotations

import pytest

from quorate.records.batch import iter_batches
from quorate.records.ids import Offset
from quorate.storage.disaster_recovery.backup import local_end, open_source
from quorate.storage.errors import StorageError
from tests.unit.storage.conftest import DIRECTORY, LOG_DIR, Replica, at

END = at(18, 4)


def backed_up(replica: Replica, below: int | None = None) -> tuple[list[str], bytes]:
    """The names of the files in a backup, and what it holds of the log."""
    source = open_source(replica.disk, DIRECTORY, below=None if below is None else Offset(below))
    log = b"".join(
        part.file.read_at(part.position, part.size_bytes)
        for part in source.parts
        if part.name.endswith(".log")
    )
    names = [part.name for part in source.parts]
    source.close()
    return names, log


def test_a_log_without_a_snapshot_is_taken_whole(veteran: Replica) -> None:
    source = open_source(veteran.disk, DIRECTORY)
    assert (source.end, source.snapshot, source.epoch, source.meta) == (END, None, 4, veteran.meta)
    names, log = backed_up(veteran)
    assert names[0] == "bootstrap.checkpoint"
    assert names[1:] == [f"__cluster_metadata-0/{name}" for name in veteran.logs()]
    assert log == veteran.content()


def test_of_a_log_with_a_snapshot_only_what_lies_behind_it_is_taken(veteran: Replica) -> None:
    veteran.snapshot(at(11, 1), b"old")
    veteran.snapshot(at(15, 4), b"state")
    source = open_source(veteran.disk, DIRECTORY)
    assert (source.end, source.snapshot) == (END, at(15, 4))
    names, log = backed_up(veteran)
    assert names == [
        "bootstrap.checkpoint",
        "__cluster_metadata-0/00000000000000000015-0000000004.checkpoint",
        "__cluster_metadata-0/00000000000000000015.log",
    ]
    assert log == veteran.content(15)


def test_a_snapshot_at_the_end_of_the_log_is_enough(veteran: Replica) -> None:
    veteran.snapshot(END, b"state")
    assert backed_up(veteran) == (
        ["bootstrap.checkpoint", "__cluster_metadata-0/00000000000000000018-0000000004.checkpoint"],
        b"",
    )


def test_the_highest_epoch_that_is_known_goes_with_it(veteran: Replica) -> None:
    veteran.save(9)
    assert open_source(veteran.disk, DIRECTORY).epoch == 9


def test_a_backup_ends_where_it_is_told(veteran: Replica) -> None:
    for below, epoch in ((18, 4), (15, 4), (12, 2), (11, 1), (5, 1)):
        source = open_source(veteran.disk, DIRECTORY, below=Offset(below))
        assert source.end == at(below, epoch)
        _, log = backed_up(veteran, below)
        assert max(h.last_offset for _, h in iter_batches(log)) == below - 1
        assert veteran.content().startswith(log)


def test_a_backup_never_ends_below_its_snapshot(veteran: Replica) -> None:
    veteran.snapshot(at(15, 4), b"state")
    assert open_source(veteran.disk, DIRECTORY, below=Offset(12)).end == at(15, 4)


def test_a_torn_tail_stays_behind(veteran: Replica) -> None:
    content = veteran.content()
    file = veteran.disk.open(f"{LOG_DIR}/{veteran.logs()[-1]}")
    file.write_at(file.size(), content[:40])
    assert backed_up(veteran)[1] == content


def test_a_log_that_has_lost_what_was_flushed_is_refused(veteran: Replica) -> None:
    veteran.flip(f"{LOG_DIR}/{veteran.logs()[1]}", 100)
    with pytest.raises(StorageError, match=r"/data is damaged: the log ends at .* was flushed"):
        open_source(veteran.disk, DIRECTORY)


def test_a_damaged_snapshot_is_passed_over_where_the_log_reaches_below_it(veteran: Replica) -> None:
    veteran.snapshot(at(15, 4), b"state")
    veteran.flip(veteran.store.snapshots.path(at(15, 4)), 100)
    source = open_source(veteran.disk, DIRECTORY)
    assert (source.end, source.snapshot) == (END, None)


def test_a_gap_behind_the_snapshot_is_refused(veteran: Replica) -> None:
    veteran.snapshot(at(11, 1), b"state")
    for name in veteran.logs()[:-1]:
        veteran.disk.remove(f"{LOG_DIR}/{name}")
    with pytest.raises(StorageError, match="the log begins at 12, behind the snapshot's end 11"):
        open_source(veteran.disk, DIRECTORY)


def test_a_directory_that_is_cleaned_between_two_looks_is_looked_at_again(veteran: Replica) -> None:
    """A newer snapshot comes, and the segments below it go, just when they are to be opened."""
    is_first = True

    def clean(operation: str, path: str) -> None:
        nonlocal is_first
        if is_first and operation == "open" and path.endswith(veteran.logs()[0]):
            is_first = False
            info = veteran.snapshot(at(15, 4), b"state")
            veteran.store.log.advance_start(Offset(15), [info])

    content = veteran.content(15)
    veteran.disk.hook = clean
    names, log = backed_up(veteran)
    assert not is_first
    assert names[1:] == [
        "__cluster_metadata-0/00000000000000000015-0000000004.checkpoint",
        "__cluster_metadata-0/00000000000000000015.log",
    ]
    assert log == content


def test_what_cannot_be_backed_up_is_refused(replica: Replica) -> None:
    with pytest.raises(StorageError, match="the log is empty"):
        open_source(replica.disk, DIRECTORY)
    replica.disk.wipe()
    replica.disk.make_dirs(DIRECTORY)
    with pytest.raises(StorageError, match=r"meta\.properties is missing"):
        open_source(replica.disk, DIRECTORY)


def test_the_flushed_end_tells_how_far_a_directory_is(veteran: Replica) -> None:
    assert local_end(veteran.disk, DIRECTORY) == END
    veteran.disk.remove(f"{DIRECTORY}/flushed-end")
    assert local_end(veteran.disk, DIRECTORY) is None
