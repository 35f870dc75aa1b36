"""JSON out of columns; that it is the same as one by one is in `test_vectors`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from quorate.pipeline.source.json_columns import json_strings
from quorate.pipeline.source.row_reader import payload_of
from quorate.records.codec.schema import schema_of
from quorate.records.columnar.reader import decode_columns
from quorate.records.ids import TopicId
from quorate.records.metadata import (
    ClientQuotaRecord,
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    encode_record,
)
from tests.pipeline.source.logs import partition

if TYPE_CHECKING:
    from collections.abc import Sequence

FRAME_BYTES = 3


def texts(shape: type, version: int, values: Sequence[bytes]) -> list[str | None]:
    """The texts that columns make of records of one size."""
    rows = np.frombuffer(b"".join(values), np.uint8).reshape(len(values), -1)[:, FRAME_BYTES:]
    found: list[str | None] = [None] * len(values)
    for within, columns in decode_columns(shape, version, rows):
        made = json_strings(columns, schema_of(shape).body, version, len(within))
        for at, text in zip(within, made.to_pylist(), strict=True):
            found[at] = text
    return found


def config(value: str) -> Any:  # noqa: ANN401
    return ConfigRecord(resource_type=2, resource_name="t", name="n", value=value)


def quota(value: float) -> Any:  # noqa: ANN401
    return ClientQuotaRecord(entity=(), key="k", value=value, remove=False)


@pytest.mark.parametrize(
    "records",
    [
        [config('"a\\b"'), config("\n\tab\x1f "), config("ü€")],
        [quota(0.1), quota(1e300), quota(float("nan")), quota(float("-inf"))],
        [NoOpRecord(), NoOpRecord()],
        [RemoveTopicRecord(topic_id=TopicId(bytes([number] * 16))) for number in range(3)],
    ],
    ids=["strings", "numbers", "no fields", "uuids"],
)
def test_values_are_spelt_as_json_spells_them(records: Sequence[Any]) -> None:
    shape = type(records[0])
    version = 0
    by_size: dict[int, list[bytes]] = {}
    for record in records:
        value = encode_record(record, version)
        by_size.setdefault(len(value), []).append(value)
    for values in by_size.values():
        assert texts(shape, version, values) == [payload_of(value) for value in values]


def test_lists_are_of_their_own_rows() -> None:
    values = [partition(number, (number, number + 1)) for number in range(5)]
    assert texts(PartitionRecord, 1, values) == [payload_of(value) for value in values]


def test_a_default_that_is_spelt_out_is_looked_at_alone() -> None:
    """A tagged field at its default is not in JSON, and another record may say it nevertheless."""
    said = encode_record(
        PartitionChangeRecord(partition_id=1, topic_id=TopicId(bytes(16)), leader=3), 0
    )
    spelt = said[:-4] + (-2).to_bytes(4, "big", signed=True)
    assert texts(PartitionChangeRecord, 0, [said, spelt]) == [payload_of(said), None]
    assert "leader" not in payload_of(spelt)
