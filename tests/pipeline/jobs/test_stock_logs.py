"""Every table of every job over logs that stock Kafka wrote equals what a walk finds in them.

Each job runs over one of the logs, dealt with the seed that pytest prints (`Using
--randomly-seed`), and over all of them with --every-job.

The walks begin at the bytes of the files: neither the product's decoder nor its source nor its jobs
have a part in them. How they understand the records is proved by Kafka's own snapshots.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.kafka_bytes import Definitions, read_log, records_of
from tests.pipeline.log_frames import Row, to_ms
from tests.pipeline.walks import tables
from tests.pipeline.walks.image import image_at
from tests.pipeline.walks.past import FOUNDING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.pipeline.walks.past import Cells

LOGS = (
    "damaged/good",
    "dynamic/node-1",
    "dynamic/node-3",
    "dynamic/node-4",
    "segments/node-1",
    "upgraded/after/node-1",
    "upgraded/after/node-3",
)
# Replicas whose log is that of another one, record for record.
TWINS = {
    "dynamic/node-2": "dynamic/node-3",
    "dynamic/node-101": "dynamic/node-1",
    "upgraded/after/node-2": "upgraded/after/node-3",
}
QUORUMS = (
    ("dynamic/node-1", "dynamic/node-2", "dynamic/node-3", "dynamic/node-4"),
    ("upgraded/after/node-1", "upgraded/after/node-2", "upgraded/after/node-3"),
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The jobs that run over each log; the same in all processes of a run."""
    if "jobs" in metafunc.fixturenames:
        # Without pytest-randomly the seed is None, and nothing is drawn.
        seed: int | None = getattr(metafunc.config.option, "randomly_seed", None)
        drawn = None if metafunc.config.getoption("--every-job") else seed
        cases = jobs_by_log(drawn)
        metafunc.parametrize(("name", "jobs"), list(cases.items()), ids=list(cases))


def jobs_by_log(seed: int | None) -> dict[str, tuple[str, ...]]:
    """The jobs that run over each log, as the seed deals them; with None all jobs over all logs.

    All jobs over all logs are two fifths of what the tests of the pipeline take.
    """
    jobs = [*tables.OF_ONE, *tables.OF_SEVERAL]
    if seed is None:
        return dict.fromkeys(LOGS, tuple(jobs))
    random.Random(seed).shuffle(jobs)
    return {name: tuple(jobs[at :: len(LOGS)]) for at, name in enumerate(LOGS)}


@pytest.fixture(scope="module")
def definitions(kafka_fixtures: Path) -> Definitions:
    return Definitions(kafka_fixtures / "schemas.json")


def opened(
    spark: SparkSession,
    *directories: Path,
    isolation: str = "committed",
    is_merged: str = "false",
) -> DataFrame:
    """The frame of a log, with the typed columns that any of the jobs asks for."""
    reader = spark.read.format("kraft").option("path", ",".join(map(str, directories)))
    reader = reader.option("isolation", isolation).option("mergeDirectories", is_merged)
    return reader.option("recordTypes", tables.RECORD_TYPES).load()


def frame_rows(log: DataFrame) -> list[Cells]:
    """The plain columns of a frame, in an order that follows from what is in them."""
    return sorted((comparable(Row(*row)) for row in log.select(*Row._fields).collect()), key=repr)


def comparable(row: Row) -> Cells:
    """A row with JSON that compares; the content of an unknown type is left out."""
    data = {} if (row.record_type or "").startswith("Unknown") else row.data
    payload = json.dumps(data, sort_keys=True)
    key, value = (None if cell is None else bytes(cell) for cell in (row.key, row.value))
    return (*row[:2], to_ms(row.timestamp.astimezone()), *row[3:6], key, value, payload, *row[9:])


def same_tables(jobs: tuple[str, ...], log: DataFrame, rows: list[Row]) -> None:
    """Each table of each job, cell for cell; a diff goes from the middle of the log to its end."""
    middle = rows[len(rows) // 2].offset
    expected = {job: tables.walked(job, rows, middle) for job in jobs}
    assert {job: tables.found(job, log, middle) for job in jobs} == expected


def test_every_log_of_stock_kafka_is_read_here(
    kafka_fixtures: Path, definitions: Definitions
) -> None:
    found = {path.parent for path in kafka_fixtures.glob("**/__cluster_metadata-0")}
    assert {str(path.relative_to(kafka_fixtures)) for path in found} == {*LOGS, *TWINS}
    for twin, other in TWINS.items():
        one, two = (
            [
                row._replace(source_node=None)
                for row in read_log(kafka_fixtures / name, definitions)
                if row.offset != FOUNDING
            ]
            for name in (twin, other)
        )
        assert one == two


@pytest.mark.parametrize("name", LOGS)
def test_what_kafka_keeps_in_a_snapshot_is_what_a_walk_up_to_it_finds(
    kafka_fixtures: Path, definitions: Definitions, name: str
) -> None:
    rows = read_log(kafka_fixtures / name, definitions)
    for path in sorted((kafka_fixtures / name).glob("__cluster_metadata-0/*.checkpoint")):
        kept = list(records_of(path, definitions))
        if kept[0].offset > rows[0].offset:
            told, expected = (
                image_at(of, kept[0].offset).tables(has_secrets=True) for of in (kept, rows)
            )
            assert told == expected, path.name


@pytest.mark.parametrize("name", TWINS)
def test_the_source_gives_what_lies_in_the_files(
    spark: SparkSession, kafka_fixtures: Path, definitions: Definitions, name: str
) -> None:
    rows = read_log(kafka_fixtures / name, definitions)
    expected = sorted(map(comparable, rows), key=repr)
    assert frame_rows(opened(spark, kafka_fixtures / name)) == expected


def test_each_job_is_dealt_one_log_and_each_log_a_job() -> None:
    dealt = jobs_by_log(1)
    assert jobs_by_log(1) == dealt
    assert all(dealt.values())
    every = [*tables.OF_ONE, *tables.OF_SEVERAL]
    assert sorted(job for jobs in dealt.values() for job in jobs) == sorted(every)


def test_all_numbers_of_jobs(
    spark: SparkSession,
    kafka_fixtures: Path,
    definitions: Definitions,
    name: str,
    jobs: tuple[str, ...],
) -> None:
    rows = read_log(kafka_fixtures / name, definitions)
    log = opened(spark, kafka_fixtures / name).persist()
    assert frame_rows(log) == sorted(map(comparable, rows), key=repr)
    same_tables(jobs, log, rows)
    log.unpersist()


@pytest.mark.parametrize("names", QUORUMS)
def test_all_numbers_about_several_logs(
    spark: SparkSession, kafka_fixtures: Path, definitions: Definitions, names: tuple[str, ...]
) -> None:
    directories = [kafka_fixtures / name for name in names]
    rows = [row for path in directories for row in read_log(path, definitions)]
    log = opened(spark, *directories, isolation="read_uncommitted").persist()
    same_tables(tables.OF_SEVERAL, log, rows)
    log.unpersist()


def test_what_one_voter_alone_has_never_happened(
    spark: SparkSession, kafka_fixtures: Path, definitions: Definitions
) -> None:
    """Node 4 led an epoch without followers; the others' log is what counts."""
    directories = [kafka_fixtures / name for name in QUORUMS[0]]
    rows = read_log(kafka_fixtures / "dynamic/node-3", definitions)
    log = opened(spark, *directories, is_merged="true").persist()
    same_tables(("elections", "sizes"), log, rows)
    log.unpersist()


DAMAGED = (
    "cut-20-bytes",
    "cut-to-half-header",
    "flip-before-snapshot-end",
    "flip-in-first-batch",
    "flip-in-last-batch",
    "flip-in-middle",
    "garbage-appended",
    "zeros-appended",
)


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_costs_what_lies_in_its_batch_and_nothing_else(
    spark: SparkSession,
    kafka_fixtures: Path,
    definitions: Definitions,
    tmp_path: Path,
    case: str,
) -> None:
    good = kafka_fixtures / "damaged/good"
    name = "__cluster_metadata-0/00000000000000000000.log"
    whole, broken = (good / name).read_bytes(), (good.parent / case / name[21:]).read_bytes()
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "meta.properties").write_bytes((good / "meta.properties").read_bytes())
    (tmp_path / name).write_bytes(broken)
    rows: list[Row] = []
    at = 0
    batches: dict[int, list[Row]] = {}
    for row in read_log(good, definitions):
        if row.offset != FOUNDING:
            batches.setdefault(row.batch_base_offset, []).append(row)
    for of_batch in batches.values():
        size = 12 + int.from_bytes(whole[at + 8 : at + 12], "big")
        if broken[at : at + size] == whole[at : at + size]:
            rows += of_batch
        at += size
    log = opened(spark, tmp_path).persist()
    assert log.where("not crc_valid").count() >= 1
    assert frame_rows(log.where("crc_valid")) == sorted(map(comparable, rows), key=repr)
    same_tables(("elections",), log, rows)
    log.unpersist()
