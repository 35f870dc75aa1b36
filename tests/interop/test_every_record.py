"""Stock Kafka reads every type of record in every version as it was meant, to the last byte.

Each record is encoded here from values; kafka-dump-log has to show these values again. That no byte
may differ is shown too: one of them changed, with a checksum that fits, and the record is refused.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, TypeAlias

import pytest

from quorate.records.batch import encode_batch
from quorate.records.codec.compiler import codec_of, compile_codec
from quorate.records.codec.schema import SchemaError, schema_of, shapes_of
from quorate.records.json_format import record_to_json
from quorate.records.metadata import (
    RECORD_TYPES,
    KnownRecord,
    PartitionRecord,
    decode_record,
    encode_record,
)
from tests.interop.random_messages import message_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.interop.stock_kafka import StockKafka

Meant: TypeAlias = list[tuple[KnownRecord, int]]


@pytest.fixture(scope="module")
def meant() -> Meant:
    """A record of each type and version, with its version."""
    found: Meant = []
    for record_type in RECORD_TYPES.values():
        schema, shapes = schema_of(record_type), shapes_of(record_type)
        for version in range(schema.versions.first, schema.versions.last + 1):
            codec = codec_of(record_type, version)
            record = message_for(schema, shapes, codec, is_tame=True)
            assert isinstance(record, record_type)
            found.append((record, version))
    return found


def write_log(folder: Path, values: Iterable[bytes]) -> Path:
    """A log of one batch for each value."""
    path = folder / f"{0:020d}.log"
    batches = (
        encode_batch([value], timestamp_ms=1, base_offset=offset, epoch=1)
        for offset, value in enumerate(values)
    )
    path.write_bytes(b"".join(batches))
    return path


def stock_shows(stock: StockKafka, path: Path) -> dict[int, str]:
    """The payload that kafka-dump-log shows at each offset."""
    said = stock.dump_log(path)
    assert (said.status, said.stderr) == (0, "")
    lines = (re.match(r"\| offset: (\d+) .*? payload: (.*)", x) for x in said.stdout.splitlines())
    return {int(line[1]): line[2] for line in lines if line}


def is_shown(payload: str, record: KnownRecord, version: int) -> bool:
    try:
        return bool(json.loads(payload) == record_to_json(record, version))
    except ValueError:
        return False


def is_accepted(value: bytes) -> bool:
    """True if we can read it at all."""
    try:
        decode_record(value)
    except SchemaError:
        return False
    return True


def test_every_type_in_every_version_is_shown_as_it_was_meant(
    stock: StockKafka, meant: Meant, tmp_path: Path
) -> None:
    assert len(meant) == 37
    path = write_log(tmp_path, [encode_record(record, version) for record, version in meant])
    shown = stock_shows(stock, path)
    assert [
        (payload, record)
        for payload, (record, version) in zip(shown.values(), meant, strict=True)
        if not is_shown(payload, record, version)
    ] == []


def test_no_byte_of_any_record_can_be_another_one(
    stock: StockKafka, meant: Meant, tmp_path: Path
) -> None:
    """Stock skips the sizes of tagged fields that it knows; there it is we who refuse."""
    changed: list[tuple[KnownRecord, int, bytes]] = []
    for record, version in meant:
        value = encode_record(record, version)
        for at in range(len(value)):
            flipped = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
            changed.append((record, version, flipped))
    shown = stock_shows(stock, write_log(tmp_path, [value for _, _, value in changed]))
    assert len(shown) == len(changed) > 5_000
    unnoticed = [
        (record, value)
        for payload, (record, version, value) in zip(shown.values(), changed, strict=True)
        if is_shown(payload, record, version) and is_accepted(value)
    ]
    assert unnoticed == []


def test_another_order_of_two_fields_is_noticed(
    stock: StockKafka, meant: Meant, tmp_path: Path
) -> None:
    """A mistake in a declaration, which our own reader would share with our writer."""
    schema = schema_of(PartitionRecord)
    fields = list(schema.body.fields)
    places = [i for i, f in enumerate(fields) if f.name in ("leader_epoch", "partition_epoch")]
    fields[places[0]], fields[places[1]] = fields[places[1]], fields[places[0]]
    wrong = dataclasses.replace(schema, body=dataclasses.replace(schema.body, fields=tuple(fields)))
    record, version = next(
        (record, version)
        for record, version in meant
        if isinstance(record, PartitionRecord) and record.leader_epoch != record.partition_epoch
    )
    planted = compile_codec(wrong, version, shapes_of(PartitionRecord))
    body = planted.encode(record)
    assert planted.decode(body) == (record, len(body))
    frame = encode_record(record, version)[:3]
    shown = stock_shows(stock, write_log(tmp_path, [frame + body, encode_record(record, version)]))
    assert [is_shown(payload, record, version) for payload in shown.values()] == [False, True]
