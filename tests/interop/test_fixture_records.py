"""Every batch, control record and metadata record that stock Kafka wrote comes back byte for byte.

`kio` is the independent second opinion on batches and control records.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import pytest
from kio.records.readers import read_batch
from kio.schema.leader_change_message.v0.data import LeaderChangeMessage
from kio.schema.snapshot_header_record.v0.data import SnapshotHeaderRecord
from kio.schema.voters_record.v0.data import Voter, VotersRecord
from kio.serial import entity_reader

from quorate.records.batch import BatchHeader, Record, encode_batch, iter_batches, read_records
from quorate.records.control import (
    KRaftVoters,
    LeaderChange,
    SnapshotHeader,
    decode_control,
    encode_control,
)
from quorate.records.metadata import RECORD_TYPES, UnknownRecord, decode_record, encode_record

if TYPE_CHECKING:
    from pathlib import Path

Found: TypeAlias = list[tuple[bytes, int, BatchHeader, list[Record]]]


@pytest.fixture(scope="module")
def found(kafka_fixtures: Path) -> Found:
    """All batches of the fixtures except those in folders named `damaged`.

    Each is (bytes of its file, position in them, header, records).
    """
    files = [
        path
        for pattern in ("**/*.log", "**/*.checkpoint")
        for path in sorted(kafka_fixtures.glob(pattern))
        if "damaged" not in path.relative_to(kafka_fixtures).parts
    ]
    contents = [path.read_bytes() for path in files]
    batches = [
        (data, position, header, read_records(data, position, header))
        for data in contents
        for position, header in iter_batches(data)
    ]
    assert len(files) > 30
    assert sum(header.size_bytes for _, _, header, _ in batches) == sum(map(len, contents))
    return batches


def test_every_batch_is_built_again_from_its_records(found: Found) -> None:
    for data, position, header, records in found:
        rebuilt = encode_batch(
            [record.value or b"" for record in records],
            keys=[record.key or b"" for record in records] if header.is_control else None,
            timestamp_ms=header.base_timestamp_ms,
            base_offset=header.base_offset,
            epoch=header.epoch,
            is_control=header.is_control,
        )
        assert rebuilt == data[position : position + header.size_bytes]


def test_every_metadata_record_is_understood_and_written_back(found: Found) -> None:
    kinds: Counter[str] = Counter()
    for _, _, header, records in found:
        for record in () if header.is_control else records:
            assert record.key is None
            assert record.value is not None
            decoded, version = decode_record(record.value)
            assert not isinstance(decoded, UnknownRecord)
            assert encode_record(decoded, version) == record.value
            kinds[type(decoded).__name__] += 1
    assert kinds.total() > 4000
    # Kafka 4.3.1 fences brokers by BrokerRegistrationChangeRecord and has no ZooKeeper migration;
    # none of the fixtures has an aborted transaction.
    assert sorted({kind.__name__ for kind in RECORD_TYPES.values()} - set(kinds)) == [
        "AbortTransactionRecord",
        "FenceBrokerRecord",
        "UnfenceBrokerRecord",
        "ZkMigrationStateRecord",
    ]


def test_every_control_record_is_understood_and_written_back(found: Found) -> None:
    kinds: Counter[str] = Counter()
    for _, _, header, records in found:
        for record in records if header.is_control else ():
            decoded = decode_control(record.key, record.value)
            assert encode_control(decoded) == (record.key, record.value)
            kinds[type(decoded).__name__] += 1
    assert len(kinds) == 5


def test_kio_reads_the_same_from_every_batch(found: Found) -> None:
    for data, position, header, records in found:
        theirs, size = read_batch(data, position)
        assert size == header.size_bytes
        assert theirs.crc == header.crc
        assert theirs.partition_leader_epoch == header.epoch
        assert [(r.offset, r.key, r.value) for r in theirs.records] == [
            (r.offset, r.key, r.value) for r in records
        ]


def test_kio_reads_the_same_from_every_control_record(found: Found) -> None:
    seen: Counter[str] = Counter()
    for _, _, header, records in found:
        for record in records if header.is_control else ():
            assert record.value is not None
            match decode_control(record.key, record.value):
                case LeaderChange(leader_id, voters, granting):
                    change, _ = entity_reader(LeaderChangeMessage)(record.value, 0)
                    assert int(change.leader_id) == leader_id
                    assert [int(v.voter_id) for v in change.voters] == list(voters)
                    assert [int(v.voter_id) for v in change.granting_voters] == list(granting)
                    seen["change"] += 1
                case SnapshotHeader(timestamp_ms):
                    start, _ = entity_reader(SnapshotHeaderRecord)(record.value, 0)
                    assert start.last_contained_log_timestamp == timestamp_ms
                    seen["header"] += 1
                case KRaftVoters(voter_set):
                    theirs, _ = entity_reader(VotersRecord)(record.value, 0)
                    assert sorted(as_tuple(row) for row in theirs.voters) == [
                        (
                            voter.key.node_id,
                            voter.key.directory_id,
                            [(e.name, e.host, e.port) for e in voter.endpoints],
                            voter.kraft_version_min,
                            voter.kraft_version_max,
                        )
                        for voter in voter_set
                    ]
                    seen["voters"] += 1
    assert len(seen) == 3


def as_tuple(row: Voter) -> tuple[int, bytes | None, list[tuple[str, str, int]], int, int]:
    return (
        row.voter_id,
        row.voter_directory_id.bytes if row.voter_directory_id else None,
        [(endpoint.name, endpoint.host, endpoint.port) for endpoint in row.endpoints],
        row.k_raft_version_feature.min_supported_version,
        row.k_raft_version_feature.max_supported_version,
    )
