"""Columns are written as the encoder of single records writes them, for every type and version."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.codec.schema import TAGGED, SchemaError, schema_of, shapes_of
from quorate.records.columnar.reader import (
    Constant,
    Lists,
    Numbers,
    Octets,
    Structs,
    decode_columns,
)
from quorate.records.columnar.writer import encode_columns, values_of
from quorate.records.ids import TopicId
from quorate.records.metadata import PartitionChangeRecord, encode_record
from tests.unit.records.columnar.test_reader import FRAME_BYTES, matrix
from tests.unit.records.test_metadata import VERSIONS, instances_of

if TYPE_CHECKING:
    from quorate.records.columnar.reader import Column

TOPIC_ID = TopicId(bytes(16))


def without_unknown_tags(value: Any) -> Any:  # noqa: ANN401 - any structure or field of one
    """The same value, as columns keep it."""
    if isinstance(value, tuple):
        return tuple(without_unknown_tags(each) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    kept = {each.name: without_unknown_tags(getattr(value, each.name)) for each in fields(value)}
    return replace(value, **kept | {TAGGED: ()})


@given(st.data())
def test_what_columns_were_read_from_is_what_they_are_written_as(data: st.DataObject) -> None:
    cls, version = data.draw(st.sampled_from(VERSIONS))
    instances = instances_of(cls, schema_of(cls).body.fields, version, shapes_of(cls))
    by_size = defaultdict(list)
    for record in data.draw(st.lists(instances, min_size=1, max_size=6)):
        value = encode_record(without_unknown_tags(record), version)
        by_size[len(value)].append(value)
    for values in by_size.values():
        for rows, columns in decode_columns(cls, version, matrix(values)):
            head = values[0][:FRAME_BYTES]
            written = encode_columns(cls, version, columns, len(rows), head=head)
            assert values_of(written) == [values[row] for row in rows.tolist()]


def change(**columns: Column) -> Structs:
    """Columns of changes of two partitions."""
    topic = Octets(np.zeros((2, 16), np.uint8))
    return Structs({"partition_id": Numbers(np.array([3, 4])), "topic_id": topic, **columns})


def test_fields_that_are_not_among_the_columns_have_their_defaults() -> None:
    isr = Lists(2, Numbers(np.array([1, 2, 5, 6], np.int32)))
    written = encode_columns(PartitionChangeRecord, 0, change(isr=isr), 2)
    expected = [
        PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, isr=(1, 2)),
        PartitionChangeRecord(partition_id=4, topic_id=TOPIC_ID, isr=(5, 6)),
    ]
    assert values_of(written) == [encode_record(each, 0)[FRAME_BYTES:] for each in expected]


def test_a_constant_stands_in_every_row() -> None:
    columns = change(isr=Constant((7,)), leader=Constant(5))
    written = encode_columns(PartitionChangeRecord, 0, columns, 2)
    expected = [
        PartitionChangeRecord(partition_id=number, topic_id=TOPIC_ID, isr=(7,), leader=5)
        for number in (3, 4)
    ]
    assert values_of(written) == [encode_record(each, 0)[FRAME_BYTES:] for each in expected]


def test_rows_of_two_shapes_are_refused() -> None:
    with pytest.raises(SchemaError, match="leader is set in some rows and not in others"):
        encode_columns(PartitionChangeRecord, 0, change(leader=Numbers(np.array([-2, 1]))), 2)


def test_what_a_version_cannot_hold_is_refused() -> None:
    directories = Lists(1, Octets(np.ones((2, 16), np.uint8)))
    with pytest.raises(SchemaError, match="version 0 has no such field"):
        encode_columns(PartitionChangeRecord, 0, change(directories=directories), 2)
    with pytest.raises(SchemaError, match="version 9 has no columns"):
        encode_columns(PartitionChangeRecord, 9, change(), 2)
    numbers, octets = Numbers(np.array([3, 1 << 32])), Octets(np.zeros((2, 15), np.uint8))
    with pytest.raises(SchemaError, match="partition_id: 3 to 4294967296"):
        encode_columns(PartitionChangeRecord, 0, change(partition_id=numbers), 2)
    with pytest.raises(SchemaError, match="topic_id: a uuid has 16 bytes"):
        encode_columns(PartitionChangeRecord, 0, change(topic_id=octets), 2)
    with pytest.raises(SchemaError, match="topic_id: may not be null"):
        encode_columns(PartitionChangeRecord, 0, change(topic_id=Constant(None)), 2)
