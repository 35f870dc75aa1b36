"""Columns and single rows say the same of every record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.pipeline.source import frame_builder
from quorate.pipeline.source.frame_schema import TYPED
from quorate.pipeline.source.row_reader import RowReader
from quorate.records.batch import CorruptBatchError
from quorate.records.codec.schema import schema_of, shapes_of
from quorate.records.metadata import encode_record
from tests.pipeline.source.logs import LogWriter, rows
from tests.unit.records.test_metadata import VERSIONS, instances_of

if TYPE_CHECKING:
    from pathlib import Path


def one_by_one(*_: object) -> None:
    raise CorruptBatchError(0, "columns are switched off")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_columns_and_single_rows_are_equal(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = LogWriter(tmp_path_factory.mktemp("log") / "c")
    names = set()
    for _ in range(data.draw(st.integers(1, 3))):
        values = []
        for cls, version in data.draw(st.lists(st.sampled_from(VERSIONS), min_size=1, max_size=4)):
            names.add(cls.__name__)
            instances = instances_of(cls, schema_of(cls).body.fields, version, shapes_of(cls))
            records = data.draw(st.lists(instances, min_size=1, max_size=3))
            values += [encode_record(record, version) for record in records]
        log.write(values * data.draw(st.integers(1, 9)))
    known = sorted(names & set(TYPED))
    payload = data.draw(st.sampled_from(["true", "control", *map(",".join, (known, known[1:]))]))
    options = {"recordTypes": ",".join(known[:-1]), "payload": payload or "false"}
    fast = rows(log.root, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_builder, "buffer_of", one_by_one)
        slow = rows(log.root, **options)
    assert len(fast) == log.offset
    assert repr(fast) == repr(slow)


def test_columns_are_used_where_they_can_be(tmp_path: Path) -> None:
    """The comparison above would hold, too, if they never were."""
    log = LogWriter(tmp_path / "c")
    log.write([encode_record(TYPED["NoOpRecord"](), 0)] * 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowReader, "rows", one_by_one)
        assert len(rows(log.root)) == 3


def test_one_bad_record_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    good = encode_record(TYPED["NoOpRecord"](), 0)
    log.write([good, good])
    log.write([good, b"\x01\x02\x00\x05cut", good])
    log.write([good, b"", good])
    found = rows(log.root, recordTypes="TopicRecord")
    assert [row["record_type"] for row in found] == [
        *["NoOpRecord"] * 3,
        None,
        *["NoOpRecord"] * 2,
        None,
        "NoOpRecord",
    ]
    assert '"error"' in found[3]["payload"]
    assert (found[3]["offset"], found[6]["offset"]) == (3, 6)
