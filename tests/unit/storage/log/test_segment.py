"""One file of the log and its sparse index."""

from __future__ import annotations

from quorate.records.ids import Offset
from quorate.storage.log.segment import INDEX_INTERVAL_BYTES, Segment, remove_indexes
from tests.unit.storage.conftest import LOG_DIR, Replica


def make() -> tuple[Replica, Segment]:
    replica = Replica()
    return replica, Segment.create(replica.disk, LOG_DIR, Offset(7))


def test_a_segment_is_named_by_its_first_offset_and_grows() -> None:
    replica, segment = make()
    segment.append(b"abc")
    segment.append(b"de")
    assert replica.disk.read(f"{LOG_DIR}/00000000000000000007.log") == b"abcde"
    segment.truncate(4)
    assert (segment.size_bytes, segment.file.size()) == (4, 4)


def test_the_index_is_sparse_and_leads_to_a_batch_before_the_wanted_one() -> None:
    _, segment = make()
    for number in range(100):
        segment.index(7 + number, number * 1000)
    step = -(-INDEX_INTERVAL_BYTES // 1000)
    places = [segment.lookup(7 + n) for n in (0, 4, 5, 99)]
    assert places == [(7, 0), (7, 0), (12, 5000), (102, 95_000)]
    assert step == 5
    segment.truncate(50_000)
    assert segment.lookup(200) == (52, 45_000)
    assert Segment("x", segment.file, Offset(3)).lookup(9) == (3, 0)


def test_a_deleted_segment_is_gone_with_what_kafka_keeps_beside_it() -> None:
    replica, segment = make()
    for suffix in (".index", ".timeindex", ".snapshot"):
        replica.disk.open(f"{LOG_DIR}/{7:020d}{suffix}", create=True)
    before = {"00000000000000000000-0000000000.checkpoint", "partition.metadata"}
    segment.delete(replica.disk)
    remove_indexes(replica.disk, segment.path)
    assert set(replica.files()) == before
