"""Snapshot files: checked to the last byte, served in chunks, installed durably."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.raft.messages import SnapshotInfo
from quorate.records.batch import encode_batch
from quorate.records.control import (
    KRaftVersion,
    SnapshotFooter,
    SnapshotHeader,
    encode_control_batch,
)
from quorate.storage.errors import DamagedSnapshotError
from quorate.storage.layout import BOOTSTRAP_ID, checkpoint_name
from quorate.storage.snapshots.snapshot_store import SnapshotStore, SnapshotSummary, read_content
from tests.unit.storage.conftest import LOG_DIR, THREE, Replica, at

DATA = Path(__file__).parents[1] / "data"
STOCK_ID = at(79, 1)
STOCK = (DATA / checkpoint_name(STOCK_ID)).read_bytes()
ID = at(9, 1)


def control(*records: object, base: int = 0, epoch: int = 1) -> bytes:
    return encode_control_batch(records, timestamp_ms=7, base_offset=base, epoch=epoch)  # type: ignore[arg-type]


HEADER = control(SnapshotHeader(5))
DATA_BATCH = encode_batch([b"a", b"b"], timestamp_ms=7, base_offset=1, epoch=1)
FOOTER = control(SnapshotFooter(), base=3)


def store_of(data: bytes, name: str = checkpoint_name(ID)) -> tuple[Replica, SnapshotStore]:
    replica = Replica()
    replica.disk.open(f"{LOG_DIR}/{name}", create=True).write_at(0, data)
    return replica, SnapshotStore(replica.disk, LOG_DIR)


def test_a_stock_snapshot_is_read() -> None:
    _, store = store_of(STOCK, checkpoint_name(STOCK_ID))
    content = store.content(STOCK_ID)
    assert content.summary == store.check(STOCK_ID)
    assert content.summary.last_contained_log_timestamp_ms == 1795215691691
    assert content.summary.kraft_version == 1
    assert content.voters is not None
    assert [voter.key.node_id for voter in content.voters] == [1]
    assert len(content.records) == 14
    assert store.last_contained_log_timestamp_ms(STOCK_ID) == 1795215691691
    assert [b.header.record_count for b in store.data_batches(STOCK_ID)] == [14]


def test_the_first_voters_are_read_from_the_checkpoint_of_the_format_tool() -> None:
    replica = Replica()
    replica.disk.open("/data/x", create=True).write_at(
        0, (DATA / checkpoint_name(BOOTSTRAP_ID)).read_bytes()
    )
    content = read_content(replica.disk, "/data/x", BOOTSTRAP_ID.epoch)
    assert (content.summary.kraft_version, content.records) == (1, [])


def test_any_flipped_byte_of_a_snapshot_is_noticed() -> None:
    name = checkpoint_name(STOCK_ID)
    replica, store = store_of(STOCK, name)
    for position in range(len(STOCK)):
        replica.flip(f"{LOG_DIR}/{name}", position)
        with pytest.raises(DamagedSnapshotError, match=name):
            store.check(STOCK_ID)
        replica.flip(f"{LOG_DIR}/{name}", position)
    store.check(STOCK_ID)


def test_any_cut_of_a_snapshot_is_noticed() -> None:
    for size in range(len(STOCK)):
        _, store = store_of(STOCK[:size], checkpoint_name(STOCK_ID))
        with pytest.raises(DamagedSnapshotError):
            store.content(STOCK_ID)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (HEADER + DATA_BATCH, "no footer"),
        (b"", "no footer"),
        (DATA_BATCH + FOOTER, "offset 1, not 0"),
        (control(KRaftVersion(1)) + DATA_BATCH + FOOTER, "no header"),
        (HEADER + FOOTER, "offset 3, not 1"),
        (HEADER + DATA_BATCH + FOOTER + control(SnapshotFooter(), base=4), "behind the footer"),
        (HEADER + control(SnapshotHeader(5), base=1), "a SnapshotHeader that does not belong here"),
        (control(SnapshotHeader(5), epoch=2) + DATA_BATCH + FOOTER, "epoch 2, not 1"),
        (
            HEADER
            + encode_batch(
                [b"x"],
                keys=[b"\0\0\0\x63"],
                timestamp_ms=1,
                base_offset=1,
                epoch=1,
                is_control=True,
            ),
            "control record",
        ),
    ],
)
def test_a_snapshot_out_of_order_is_refused(data: bytes, reason: str) -> None:
    _, store = store_of(data)
    with pytest.raises(DamagedSnapshotError, match=reason):
        store.check(ID)


def test_a_header_that_is_missing_is_noticed_when_its_time_is_asked_for() -> None:
    _, store = store_of(b"")
    with pytest.raises(DamagedSnapshotError, match="no header"):
        store.last_contained_log_timestamp_ms(ID)


def test_without_voters_it_is_of_kraft_version_0() -> None:
    _, store = store_of(HEADER + DATA_BATCH + FOOTER)
    assert store.check(ID) == SnapshotSummary(5, None, 0)


def test_snapshots_are_listed_oldest_first_without_the_bootstrap_checkpoint() -> None:
    replica, store = store_of(b"four", checkpoint_name(at(20, 1)))
    for name in (checkpoint_name(at(7, 1)), checkpoint_name(at(7, 1)) + ".part", "quorum-state"):
        replica.disk.open(f"{LOG_DIR}/{name}", create=True)
    assert store.stored() == [SnapshotInfo(at(7, 1), 0), SnapshotInfo(at(20, 1), 4)]
    store.delete(at(7, 1))
    assert store.stored() == [SnapshotInfo(at(20, 1), 4)]


def test_chunks_are_served_from_any_position() -> None:
    _, store = store_of(STOCK, checkpoint_name(STOCK_ID))
    chunks = [store.read(STOCK_ID, position=p, size_bytes=100) for p in range(0, 1000, 100)]
    assert b"".join(chunks) == STOCK
    assert store.size(STOCK_ID) == len(STOCK)


def test_a_fetched_snapshot_is_installed_durably() -> None:
    replica = Replica()
    store = SnapshotStore(replica.disk, LOG_DIR)
    store.write_chunk(STOCK_ID, position=0, data=b"of an earlier attempt" * 100)
    store.write_chunk(STOCK_ID, position=0, data=STOCK[:100])
    store.write_chunk(STOCK_ID, position=100, data=STOCK[100:])
    assert store.stored() == []
    store.install(STOCK_ID)
    assert replica.disk.first_unsafe(LOG_DIR, ".checkpoint") is None
    assert replica.disk.read(store.path(STOCK_ID)) == STOCK
    assert checkpoint_name(STOCK_ID) + ".part" not in replica.files()


def test_a_chunk_that_does_not_continue_the_file_is_refused() -> None:
    store = SnapshotStore(Replica().disk, LOG_DIR)
    store.write_chunk(STOCK_ID, position=0, data=STOCK[:100])
    with pytest.raises(ValueError, match="a chunk at 150 of a file of 100 bytes"):
        store.write_chunk(STOCK_ID, position=150, data=b"x")


def test_a_fetched_snapshot_that_does_not_check_is_removed() -> None:
    replica = Replica()
    store = SnapshotStore(replica.disk, LOG_DIR)
    store.write_chunk(STOCK_ID, position=0, data=STOCK[:-1])
    with pytest.raises(DamagedSnapshotError):
        store.install(STOCK_ID)
    assert [name for name in replica.files() if "79" in name] == []


def test_voters_travel_with_a_snapshot() -> None:
    replica = Replica()
    replica.write_history()
    replica.snapshot(at(12, 2), b"s")
    assert replica.store.read_snapshot(at(12, 2)).voters == THREE
