"""Metadata records as one type: frames, versions, unknown ones."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.batch import iter_batches, read_records
from quorate.records.codec.schema import Field, SchemaError, schema_of, shapes_of
from quorate.records.ids import TopicId
from quorate.records.metadata import (
    METADATA_VERSION_LATEST,
    METADATA_VERSION_MIN,
    RECORD_TYPES,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    DelegationTokenRecord,
    KnownRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    UnknownRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
    decode_record,
    encode_record,
    record_frame,
    record_version,
)

DATA = Path(__file__).parent / "data"

SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": st.text(max_size=20),
    "bytes": st.binary(max_size=20),
}
TAGGED = st.dictionaries(st.integers(100, 2**31), st.binary(max_size=9), max_size=2).map(
    lambda tags: tuple(sorted(tags.items()))
)


def values_of(field: Field, version: int, shapes: dict[str, type]) -> st.SearchStrategy[Any]:
    if version not in field.versions:
        return st.just(field.default)
    if field.struct is None:
        values = SIMPLE[field.element]
    else:
        values = instances_of(shapes[field.element], field.struct.fields, version, shapes)
    if field.is_array:
        values = st.lists(values, max_size=3).map(tuple)
    return st.none() | values if version in field.nullable else values


def instances_of(
    cls: type, wired: tuple[Field, ...], version: int, shapes: dict[str, type]
) -> st.SearchStrategy[Any]:
    values = {field.name: values_of(field, version, shapes) for field in wired}
    return st.builds(cls, tagged=TAGGED, **values)


VERSIONS = [
    (cls, version)
    for cls in RECORD_TYPES.values()
    for version in range(schema_of(cls).versions.last + 1)
]


@given(st.data())
def test_every_record_comes_back_in_every_version(data: st.DataObject) -> None:
    cls, version = data.draw(st.sampled_from(VERSIONS))
    instances = instances_of(cls, schema_of(cls).body.fields, version, shapes_of(cls))
    record = data.draw(instances)
    assert decode_record(encode_record(record, version)) == (record, version)


@pytest.mark.parametrize("name", ["kafka.log", "kafka.checkpoint"])
def test_kafkas_own_records_are_written_back_byte_for_byte(name: str) -> None:
    data = (DATA / name).read_bytes()
    for position, header in iter_batches(data):
        for record in () if header.is_control else read_records(data, position, header):
            assert record.value is not None
            assert encode_record(*decode_record(record.value)) == record.value


def test_a_record_travels_in_a_frame() -> None:
    assert encode_record(NoOpRecord(), 0).hex() == "01" + "14" + "00" + "00"
    assert decode_record(memoryview(bytes.fromhex("01140000"))) == (NoOpRecord(), 0)


def test_there_are_the_26_types_of_kafka_and_each_has_its_own_key() -> None:
    assert len(RECORD_TYPES) == 26
    assert all(schema_of(cls).api_key == api_key for api_key, cls in RECORD_TYPES.items())
    assert all(fields(cls)[-1].name == "tagged" for cls in RECORD_TYPES.values())


@pytest.mark.parametrize(
    ("value", "record"),
    [
        ("011d000000000500", UnknownRecord(29, 0, bytes.fromhex("0000000500"))),
        ("010207ff", UnknownRecord(2, 7, b"\xff")),
        ("01c82c01", UnknownRecord(5704, 1, b"")),
    ],
)
def test_unknown_types_and_versions_stay_opaque(value: str, record: UnknownRecord) -> None:
    assert decode_record(bytes.fromhex(value)) == (record, record.version)
    assert encode_record(record, record.version).hex() == value


def test_an_unknown_record_keeps_its_version() -> None:
    with pytest.raises(SchemaError, match="version 3 cannot become version 1"):
        encode_record(UnknownRecord(99, 3, b""), 1)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "frame of a metadata record: varint at 0 is cut off"),
        ("01", "frame of a metadata record: varint at 1 is cut off"),
        ("0181", "frame of a metadata record: varint at 1 is cut off"),
        ("00140000", "frame version 0 instead of 1"),
        ("0114000000", "NoOpRecord: 1 bytes are left behind its end"),
        ("0102000361", "TopicRecord version 0: name: 2 bytes at 4 of 5"),
    ],
)
def test_malformed_values_are_refused(value: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        decode_record(bytes.fromhex(value))


def test_a_version_that_a_type_does_not_have_is_refused() -> None:
    with pytest.raises(SchemaError, match="TopicRecord has no version 1"):
        encode_record(TopicRecord(name="t", topic_id=TopicId(bytes(16))), 1)


@pytest.mark.parametrize(
    ("record_type", "level", "version"),
    [
        (RegisterBrokerRecord, 7, 1),
        (RegisterBrokerRecord, 8, 2),
        (RegisterBrokerRecord, 16, 2),
        (RegisterBrokerRecord, 17, 3),
        (RegisterBrokerRecord, 29, 3),
        (RegisterBrokerRecord, 30, 4),
        (BrokerRegistrationChangeRecord, 16, 1),
        (BrokerRegistrationChangeRecord, 17, 2),
        (BrokerRegistrationChangeRecord, 30, 3),
        (PartitionRecord, 7, 0),
        (PartitionRecord, 17, 1),
        (PartitionRecord, 22, 1),
        (PartitionRecord, 23, 2),
        (PartitionChangeRecord, 23, 2),
        (RegisterControllerRecord, 15, 0),
        (TopicRecord, 7, 0),
        (TopicRecord, 33, 0),
    ],
)
def test_versions_follow_the_metadata_version(
    record_type: type[KnownRecord], level: int, version: int
) -> None:
    assert record_version(record_type, level) == version


@pytest.mark.parametrize(
    ("record_type", "level"),
    [
        (TopicRecord, 6),
        (ZkMigrationStateRecord, 7),
        (UserScramCredentialRecord, 10),
        (BeginTransactionRecord, 12),
        (DelegationTokenRecord, 13),
        (RegisterControllerRecord, 14),
        (ClearElrRecord, 22),
    ],
)
def test_a_type_does_not_exist_below_the_level_that_brought_it(
    record_type: type[KnownRecord], level: int
) -> None:
    with pytest.raises(ValueError, match=f"does not exist at metadata.version level {level}"):
        record_version(record_type, level)


def test_every_record_exists_at_the_newest_level_in_its_newest_version() -> None:
    assert METADATA_VERSION_MIN < METADATA_VERSION_LATEST
    for cls in RECORD_TYPES.values():
        assert record_version(cls, METADATA_VERSION_LATEST) == schema_of(cls).versions.last


def test_a_frame_that_takes_more_bytes_than_it_needs_is_read() -> None:
    record = NoOpRecord()
    value = encode_record(record, 0)
    for longer in (b"\x81\x00" + value[1:], value[:1] + b"\x94\x00" + value[2:], value):
        assert decode_record(longer) == decode_record(memoryview(longer)) == (record, 0)


def test_a_frame_tells_type_and_version_without_the_rest() -> None:
    assert record_frame(b"\x01\x03\x02cut off") == (3, 2)
    with pytest.raises(SchemaError, match="frame version 2"):
        record_frame(b"\x02\x03\x02")
    with pytest.raises(SchemaError, match="cut off"):
        record_frame(b"\x01\x03")
