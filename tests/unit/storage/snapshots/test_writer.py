"""Snapshots as we write them."""

from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.records.batch import HEADER_BYTES, iter_batches
from quorate.records.control import (
    KRaftVersion,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    control_records,
)
from quorate.storage.file_system import OsFileSystem
from quorate.storage.layout import checkpoint_name
from quorate.storage.snapshots import writer as snapshot_writer
from quorate.storage.snapshots.snapshot_store import SnapshotStore
from quorate.storage.snapshots.writer import SnapshotWriter
from tests.unit.storage.conftest import LOG_DIR, THREE, Crashed, Replica, at

if TYPE_CHECKING:
    from pathlib import Path

ID = at(9, 3)


def writer(replica: Replica, kraft_version: int = 1) -> SnapshotWriter:
    return SnapshotWriter(
        replica.disk,
        SnapshotStore(replica.disk, LOG_DIR).path(ID),
        ID,
        timestamp_ms=70,
        last_contained_log_timestamp_ms=50,
        kraft_version=kraft_version,
        voters=THREE,
    )


def test_header_version_and_voters_come_first_and_the_footer_last() -> None:
    replica = Replica()
    snapshot = writer(replica)
    snapshot.append([b"a", b"b"])
    info = snapshot.freeze()
    data = replica.disk.read(SnapshotStore(replica.disk, LOG_DIR).path(ID))
    assert (info.snapshot_id, info.size_bytes) == (ID, len(data))
    batches = [(h, control_records(data, p, h)) for p, h in iter_batches(data)]
    assert [records for _, records in batches] == [
        (SnapshotHeader(50), KRaftVersion(1), KRaftVoters(THREE)),
        (),
        (SnapshotFooter(),),
    ]
    assert [(h.base_offset, h.epoch, h.max_timestamp_ms) for h, _ in batches] == [
        (0, 3, 70),
        (3, 3, 70),
        (5, 3, 70),
    ]


def test_at_kraft_version_0_there_are_no_voters_in_it() -> None:
    replica = Replica()
    writer(replica, kraft_version=0).freeze()
    summary = SnapshotStore(replica.disk, LOG_DIR).check(ID)
    assert (summary.voters, summary.kraft_version) == (None, 0)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=60), st.integers(200, 2000))
def test_what_is_written_is_read_again_in_batches_of_bounded_size(
    values: list[bytes], batch_bytes: int
) -> None:
    replica = Replica()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot_writer, "BATCH_BYTES", batch_bytes)
        snapshot = writer(replica)
        for value in values:
            snapshot.append([value])
        snapshot.freeze()
    store = SnapshotStore(replica.disk, LOG_DIR)
    assert store.content(ID).records == values
    largest = max(batch_bytes, *(len(value) + 24 for value in [*values, b""])) + HEADER_BYTES
    assert all(b.header.size_bytes <= largest for b in store.data_batches(ID))


def test_a_snapshot_exists_whole_or_not_at_all() -> None:
    for calls in range(100):
        replica = Replica()
        store = SnapshotStore(replica.disk, LOG_DIR)
        replica.crash_after(calls)
        try:
            snapshot = writer(replica)
            snapshot.append([b"a"])
            snapshot.freeze()
        except Crashed:
            replica.revive()
            for info in store.stored():
                store.check(info.snapshot_id)
        else:
            break
    assert calls > 5


def test_an_abandoned_snapshot_leaves_nothing() -> None:
    replica = Replica()
    before = replica.files()
    snapshot = writer(replica)
    snapshot.append([b"a"])
    snapshot.abandon()
    assert replica.files() == before


def test_a_snapshot_that_has_its_name_may_be_given_up() -> None:
    """Else the reason for the failed flush of the directory would look like another failure."""
    replica = Replica()
    snapshot = writer(replica)

    def refuse(operation: str, path: str) -> None:
        if operation == "sync_dir":
            raise OSError(errno.EMFILE, "too many open files", path)

    replica.disk.hook = refuse
    with pytest.raises(OSError, match="too many"):
        snapshot.freeze()
    snapshot.abandon()


def test_one_whose_directory_was_removed_says_so_and_is_given_up(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    lost = SnapshotWriter(
        OsFileSystem(),
        f"{folder}/{checkpoint_name(ID)}",
        ID,
        timestamp_ms=70,
        last_contained_log_timestamp_ms=50,
    )
    shutil.rmtree(folder)
    with pytest.raises(FileNotFoundError):
        lost.freeze()
    lost.abandon()


def test_a_snapshot_that_is_frozen_takes_no_more_records() -> None:
    snapshot = writer(Replica())
    snapshot.append([b"a"])
    snapshot.freeze()
    with pytest.raises(AssertionError, match="frozen"):
        snapshot.append([b"b"])
