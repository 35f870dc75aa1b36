"""Arrow arrays of decoded columns."""

from __future__ import annotations

import os

import numpy as np

from quorate.pipeline.source.struct_columns import struct_array, uuid_strings
from quorate.records.codec.schema import schema_of
from quorate.records.columnar.reader import decode_columns
from quorate.records.ids import format_uuid
from quorate.records.metadata import PartitionRecord, RegisterBrokerRecord, encode_record
from tests.pipeline.source.logs import partition


def test_uuids_are_spelt_as_kafka_does() -> None:
    values = [os.urandom(16) for _ in range(100)] + [b"\xff" * 16, bytes(16)]
    rows = np.frombuffer(b"".join(values), np.uint8).reshape(-1, 16)
    assert uuid_strings(rows).to_pylist() == [format_uuid(value) for value in values]


def test_lists_keep_to_their_rows() -> None:
    values = [partition(number, (number, number + 1)) for number in range(5)]
    rows = np.frombuffer(b"".join(values), np.uint8).reshape(5, -1)[:, 3:]
    ((_, columns),) = decode_columns(PartitionRecord, 1, rows)
    array = struct_array(columns, schema_of(PartitionRecord).body, 5)
    array.validate(full=True)
    assert array.field("replicas").to_pylist() == [[n, n + 1] for n in range(5)]


def test_structures_in_lists_keep_to_their_rows() -> None:
    endpoint = schema_of(RegisterBrokerRecord).body.fields[4].struct
    assert endpoint is not None
    from quorate.records.record_types.brokers import BrokerEndpoint

    values = [
        encode_record(
            RegisterBrokerRecord(
                broker_id=number,
                incarnation_id=bytes(16),
                broker_epoch=1,
                end_points=tuple(
                    BrokerEndpoint(name=name, host=f"h{number}", port=65_535, security_protocol=0)
                    for name in ("A", "LONGER")
                ),
                features=(),
                rack=None,
            ),
            0,
        )
        for number in range(3)
    ]
    rows = np.frombuffer(b"".join(values), np.uint8).reshape(3, -1)[:, 3:]
    ((_, columns),) = decode_columns(RegisterBrokerRecord, 0, rows)
    array = struct_array(columns, schema_of(RegisterBrokerRecord).body, 3)
    array.validate(full=True)
    told = [
        [(each["name"], each["host"]) for each in row]
        for row in array.field("endPoints").to_pylist()
    ]
    assert told == [[("A", f"h{number}"), ("LONGER", f"h{number}")] for number in range(3)]
    assert array.field("rack").null_count == 3
