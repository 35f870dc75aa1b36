"""An output may be moved, copied and cut by whole days, and is then read as what it holds."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs.ingest import _url_of, start_ingest
from quorate.pipeline.jobs.registry import PipelineError
from quorate.pipeline.jobs.sink_log import NOTES, mend_notes
from tests.pipeline.jobs.test_ingest import days_of, streamed
from tests.pipeline.log_frames import Log

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# Spark gathers the notes of ten batches, so that there are notes of both kinds.
BATCHES = 11
# 2026-01-05, which lies behind whatever day the tests run on.
PAST_MS = 1_767_571_200_000


def past_log() -> Log:
    log = Log()
    log.at_ms = PAST_MS
    return log


@pytest.fixture(scope="module")
def original(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output of several days in as many batches."""
    folder = tmp_path_factory.mktemp("a place with 100% odd #names")
    log = past_log()
    for _ in range(BATCHES):
        days_of(log, 4)
        stream = streamed(spark, folder / "source", log)
        start_ingest(stream, str(folder / "lake"), None, every_s=None).awaitTermination()
    return folder / "lake"


def mended(spark: SparkSession, output: Path, keep_days: int | None = None) -> list[str]:
    return list(mend_notes(str(output), _url_of(spark, str(output)), keep_days))


def days(output: Path) -> list[str]:
    return sorted(place.name for place in output.glob("day=*"))


def read(spark: SparkSession, output: Path) -> list[tuple[int, str]]:
    rows = spark.read.parquet(str(output)).select("offset", "day").collect()
    return sorted((row["offset"], str(row["day"])) for row in rows)


def test_one_that_was_moved_is_read_again(spark: SparkSession, original: Path) -> None:
    before, moved = read(spark, original), original.with_name("moved")
    copy = shutil.copytree(original, original.with_name("kept"))
    original.rename(moved)
    try:
        (line,) = mended(spark, moved)
        assert line == f"{moved} was {original}: its notes name its own files now"
        assert read(spark, moved) == before
        assert mended(spark, moved) == []
    finally:
        shutil.rmtree(moved)
        copy.rename(original)


def test_a_copy_is_read_itself(spark: SparkSession, original: Path) -> None:
    before, copy = read(spark, original), original.with_name("copy")
    shutil.copytree(original, copy)
    assert len(mended(spark, copy)) == 1
    files = spark.read.parquet(str(copy)).inputFiles()
    assert all("/copy/day=" in file for file in files)
    assert read(spark, copy) == before
    assert mended(spark, original) == []


def test_another_path_to_it_is_no_move(spark: SparkSession, original: Path) -> None:
    link = original.with_name("link")
    link.symlink_to(original)
    assert mended(spark, link) == []


def test_days_that_were_removed_are_no_longer_noted(spark: SparkSession, original: Path) -> None:
    cut = shutil.copytree(original, original.with_name("cut"))
    mended(spark, cut)
    before = read(spark, cut)
    first, *others = days(cut)
    shutil.rmtree(cut / first)
    (line,) = mended(spark, cut)
    assert line == f"{first} removed from {cut}: its notes no longer name their files"
    assert read(spark, cut) == [row for row in before if f"day={row[1]}" != first]
    assert days(cut) == others


def test_days_before_those_that_are_kept_are_removed(spark: SparkSession, original: Path) -> None:
    kept = shutil.copytree(original, original.with_name("trimmed"))
    mended(spark, kept)
    before, every = read(spark, kept), days(kept)
    assert mended(spark, kept, keep_days=len(every)) == []
    (line,) = mended(spark, kept, keep_days=2)
    assert line.endswith(f"removed from {kept}, as --keep-days says")
    assert days(kept) == every[-2:]
    assert read(spark, kept) == [row for row in before if f"day={row[1]}" in every[-2:]]


def test_a_day_to_come_removes_no_other(spark: SparkSession, tmp_path: Path) -> None:
    """A leader whose clock was ahead wrote it."""
    log, lake = past_log(), tmp_path / "lake"
    days_of(log, 8)
    log.at_ms = 4_000_000_000_000
    log.add("NoOpRecord", {})
    stream = streamed(spark, tmp_path / "source", log)
    start_ingest(stream, str(lake), None, every_s=None).awaitTermination()
    every = days(lake)
    assert every[-1] == "day=2096-10-02"
    assert mended(spark, lake, keep_days=len(every) - 1) == []
    assert days(lake) == every


def test_a_file_that_is_missing_of_a_day_is_refused(spark: SparkSession, original: Path) -> None:
    """Days are removed whole, so the copy is incomplete."""
    torn = shutil.copytree(original, original.with_name("torn"))
    lost = min(torn.glob("day=*/record_type=*/*.parquet"))
    lost.unlink()
    notes = {path.name: path.read_bytes() for path in (torn / NOTES).iterdir()}
    with pytest.raises(PipelineError) as refusal:
        mended(spark, torn)
    assert str(refusal.value) == (
        f"--output: {torn} lacks 1 of the files that its {NOTES} names, such as"
        f" {lost.relative_to(torn)}: copy it whole, or remove whole days"
    )
    assert {path.name: path.read_bytes() for path in (torn / NOTES).iterdir()} == notes


def test_an_ingest_goes_on_where_it_was_moved_to(spark: SparkSession, original: Path) -> None:
    moved = shutil.copytree(original, original.with_name("went on"))
    mended(spark, moved)
    before = read(spark, moved)
    log = past_log()
    days_of(log, 4)
    stream = streamed(spark, original.with_name("source"), log)
    start_ingest(stream, str(moved), None, every_s=None).awaitTermination()
    assert len(read(spark, moved)) == len(before) + 4


def test_an_output_without_notes_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    assert mended(spark, tmp_path, keep_days=1) == []


@pytest.mark.parametrize("left", [0, 100])
def test_a_note_that_is_cut_is_refused(spark: SparkSession, original: Path, left: int) -> None:
    copy = shutil.copytree(original, original.with_name(f"cut at {left}"))
    note = copy / NOTES / "10"
    note.write_bytes(note.read_bytes()[:left])
    before = {path.name: path.read_bytes() for path in (copy / NOTES).iterdir()}
    with pytest.raises(PipelineError, match=r"^--output: .*/10 is no whole note of Spark: "):
        mended(spark, copy)
    assert {path.name: path.read_bytes() for path in (copy / NOTES).iterdir()} == before


def test_an_output_without_any_of_its_days_is_refused(spark: SparkSession, original: Path) -> None:
    copy = shutil.copytree(original, original.with_name("without days"))
    for place in copy.glob("day=*"):
        shutil.rmtree(place)
    with pytest.raises(PipelineError, match=r"has none of the \d+ days"):
        mended(spark, copy)


def test_a_link_to_a_day_is_removed_and_the_day_is_left(
    spark: SparkSession, original: Path
) -> None:
    copy = shutil.copytree(original, original.with_name("linked"))
    first = copy / days(copy)[0]
    elsewhere = first.rename(copy.with_name("elsewhere"))
    first.symlink_to(elsewhere)
    mended(spark, copy, 1)
    assert not first.is_symlink()
    assert list(elsewhere.iterdir())
