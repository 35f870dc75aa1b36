"""Columns say the same as the decoder of single records, for every type and version."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.codec.schema import SchemaError, schema_of, shapes_of
from quorate.records.columnar.reader import (
    Constant,
    Elements,
    Lists,
    Numbers,
    Structs,
    decode_columns,
    distinct,
)
from quorate.records.ids import TopicId
from quorate.records.metadata import (
    RECORD_TYPES,
    NoOpRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from tests.unit.records.test_metadata import VERSIONS, instances_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.records.codec.schema import Field, Struct
    from quorate.records.columnar.reader import Column

FRAME_BYTES = 3


def matrix(values: Iterable[bytes]) -> np.ndarray[Any, Any]:
    """Messages of one size as rows of bytes."""
    rows = [value[FRAME_BYTES:] for value in values]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


def at(column: Column, field: Field, row: int) -> object:
    """The value of a column in one row, as the decoder gives it."""
    match column:
        case Constant(value=value):
            return value
        case Numbers(values=values):
            return values[row].item()
        case Lists(count=count, elements=Numbers(values=values)):
            return tuple(values[row * count : (row + 1) * count].tolist())
        case Lists(count=count, elements=elements):
            return tuple(
                elements.values[index].tobytes() for index in range(row * count, (row + 1) * count)
            )
        case Elements(columns=columns):
            return tuple(at(each, field, row) for each in columns)
        case Structs():
            assert field.struct is not None
            return struct_at(column, field.struct, row)
        case _:
            octets = column.values[row].tobytes()
            return octets.decode() if field.element == "string" else octets


def struct_at(column: Structs, struct: Struct, row: int) -> dict[str, object]:
    return {field.name: at(column.fields[field.name], field, row) for field in struct.fields}


def as_dict(value: object, struct: Struct) -> dict[str, object]:
    """A decoded record without the tagged fields that its schema does not know."""
    fields: dict[str, object] = {}
    for field in struct.fields:
        item = getattr(value, field.name)
        if field.struct is not None and isinstance(item, tuple):
            fields[field.name] = tuple(as_dict(part, field.struct) for part in item)
        elif field.struct is not None and item is not None:
            fields[field.name] = as_dict(item, field.struct)
        else:
            fields[field.name] = item
    return fields


@given(st.data())
def test_columns_equal_the_records_one_by_one(data: st.DataObject) -> None:
    cls, version = data.draw(st.sampled_from(VERSIONS))
    body = schema_of(cls).body
    instances = instances_of(cls, body.fields, version, shapes_of(cls))
    by_size = defaultdict(list)
    for record in data.draw(st.lists(instances, min_size=1, max_size=6)):
        value = encode_record(record, version)
        by_size[len(value)].append(value)
    for values in by_size.values():
        seen = []
        for rows, columns in decode_columns(cls, version, matrix(values)):
            for within, row in enumerate(rows.tolist()):
                seen.append(row)
                expected = as_dict(decode_record(values[row])[0], body)
                assert struct_at(columns, body, within) == expected
        assert sorted(seen) == list(range(len(values)))


def test_every_type_has_columns_in_every_version() -> None:
    assert {cls for cls, _ in VERSIONS} == set(RECORD_TYPES.values())
    assert all(version in schema_of(cls).flexible for cls, version in VERSIONS)


def partition(number: int, replicas: tuple[int, ...]) -> bytes:
    record = PartitionRecord(
        partition_id=number,
        topic_id=TopicId(bytes([number] * 16)),
        replicas=replicas,
        isr=replicas[: number % 2 + 1],
        removing_replicas=(7,) * (1 - number % 2),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )
    return encode_record(record, 0)


def test_rows_of_one_size_and_two_shapes_are_parted() -> None:
    values = [partition(number, (1, 2)) for number in range(10)]
    assert len({len(value) for value in values}) == 1
    parts = list(decode_columns(PartitionRecord, 0, matrix(values)))
    assert sorted(sorted(rows.tolist()) for rows, _ in parts) == [
        [0, 2, 4, 6, 8],
        [1, 3, 5, 7, 9],
    ]


def test_no_rows_have_no_columns() -> None:
    assert list(decode_columns(NoOpRecord, 0, np.zeros((0, 1), np.uint8))) == []


@given(st.data())
def test_what_the_decoder_refuses_has_no_columns_and_the_reverse(data: st.DataObject) -> None:
    cls, version = data.draw(st.sampled_from(VERSIONS))
    instances = instances_of(cls, schema_of(cls).body.fields, version, shapes_of(cls))
    value = bytearray(encode_record(data.draw(instances), version))
    place = data.draw(st.integers(FRAME_BYTES, len(value) - 1))
    value[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del value[data.draw(st.integers(FRAME_BYTES + 1, len(value))) :]
    try:
        decoded, _ = decode_record(bytes(value))
    except SchemaError:
        with pytest.raises(SchemaError):
            list(decode_columns(cls, version, matrix([bytes(value)])))
        return
    ((_, columns),) = decode_columns(cls, version, matrix([bytes(value)]))
    body = schema_of(cls).body
    assert repr(struct_at(columns, body, 0)) == repr(as_dict(decoded, body))


def test_a_string_that_ends_inside_a_character_is_refused() -> None:
    good = encode_record(TopicRecord(name="é", topic_id=TopicId(bytes(16))), 0)
    halves = [good.replace("é".encode(), part) for part in (b"a\xc3", b"\xa9b")]
    with pytest.raises(SchemaError):
        list(decode_columns(TopicRecord, 0, matrix(halves)))


@given(st.lists(st.integers(-3, 3)))
def test_distinct_values_ascend(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))
