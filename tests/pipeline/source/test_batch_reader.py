"""The batch reader: what its tasks are, and that they travel."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from quorate.pipeline.source.batch_reader import (
    DamagePartition,
    KraftReader,
    PushingReader,
    SplitPartition,
)
from quorate.pipeline.source.options import parse_options
from tests.pipeline.source.logs import small_log

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql.datasource import Filter


PLANNED = """
import sys
from pyspark.sql.types import StructType
from pyspark_quorate import DefaultSource
parts = DefaultSource({"path": sys.argv[1]}).reader(StructType()).partitions()
print(len(parts), {"quorate.pipeline.source.frame_builder", "pyarrow.compute"} & set(sys.modules))
"""


def test_a_process_that_only_plans_imports_no_decoder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PLANNED, str(small_log(tmp_path / "c").root)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "1 set()\n"


def test_partitions_are_pickled_and_read_in_another_process(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    (log.directory / "00000000000000000099-0000000001.checkpoint.part").write_bytes(b"x")
    reader = KraftReader(parse_options({"path": str(log.root), "splitBytes": "4096"}))
    parts = pickle.loads(pickle.dumps(reader.partitions()))  # noqa: S301 - our own bytes
    assert [type(part) for part in parts] == [SplitPartition, DamagePartition]
    reader = pickle.loads(pickle.dumps(reader))  # noqa: S301
    counts = [sum(batch.num_rows for batch in reader.read(part)) for part in parts]
    assert counts == [21, 1]


def pushed(reader: PushingReader, *filters: Filter) -> list[dict[str, Any]]:
    """Rows that are read after these filters, all of which are handed back."""
    assert list(reader.pushFilters(list(filters))) == list(filters)
    found: list[dict[str, Any]] = []
    for part in reader.partitions():
        for batch in reader.read(part):
            found += batch.to_pylist()
    return found


def test_filters_rule_out_what_need_not_be_read(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    log.snapshot(0, [], epoch=0)

    def fresh() -> PushingReader:
        return PushingReader(parse_options({"path": str(log.root)}))

    offset, kind = ("offset",), ("record_type",)
    assert len(pushed(fresh())) == 3 + 21
    found = pushed(fresh(), GreaterThanOrEqual(offset, 3), LessThan(offset, 12))
    assert sorted(row["offset"] for row in found) == list(range(3, 12))
    found = pushed(fresh(), GreaterThan(offset, 3), LessThanOrEqual(offset, 12))
    assert sorted(row["offset"] for row in found) == list(range(4, 13))
    assert [row["offset"] for row in pushed(fresh(), EqualTo(offset, 10))] == [10]
    found = pushed(fresh(), EqualTo(kind, "TopicRecord"), IsNotNull(kind))
    assert {row["record_type"] for row in found} == {"TopicRecord"}
    found = pushed(fresh(), In(kind, ("TopicRecord", "VotersRecord", "LeaderChangeMessage")))
    assert {row["record_type"] for row in found} == {"TopicRecord", "LeaderChangeMessage"}
    assert pushed(fresh(), EqualTo(kind, "TopicRecord"), EqualTo(kind, "NoOpRecord")) == []


def test_damage_comes_whatever_is_pushed_down(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    log.file.write_bytes(log.file.read_bytes()[:-1])
    reader = PushingReader(parse_options({"path": str(log.root)}))
    found = pushed(reader, EqualTo(("record_type",), "NoOpRecord"))
    assert [row["crc_valid"] for row in found] == [False]


def test_only_the_pushing_reader_has_what_spark_looks_for() -> None:
    assert KraftReader.pushFilters is DataSourceReader.pushFilters
    assert PushingReader.pushFilters is not DataSourceReader.pushFilters
