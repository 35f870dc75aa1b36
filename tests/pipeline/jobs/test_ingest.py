from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from quorate.pipeline.command import main
from quorate.pipeline.jobs.ingest import DAMAGED, SCHEMA, ingested, start_ingest
from quorate.pipeline.jobs.registry import PipelineError
from tests.pipeline.log_frames import Log, frame, has_schema
from tests.pipeline.source.logs import small_log, topic

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.pipeline.source.logs import LogWriter


def streamed(spark: SparkSession, folder: Path, log: Log) -> DataFrame:
    """The log as a stream: what each call adds is a file more."""
    frame(spark, log.rows).coalesce(1).write.mode("append").parquet(str(folder))
    log.rows.clear()
    return spark.readStream.schema(frame(spark, []).schema).parquet(str(folder))


def days_of(log: Log, count: int) -> None:
    """Records over some days."""
    for _ in range(count):
        log.at_ms += 7 * 3_600_000
        log.add("NoOpRecord" if log.offset % 2 else "TopicRecord", {"n": log.offset})


def test_each_record_is_stored_once_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    log, source, output = Log(), tmp_path / "source", tmp_path / "out"
    for _ in range(2):
        days_of(log, 6)
        stream = streamed(spark, source, log)
        start_ingest(stream, str(output), None, every_s=None).awaitTermination()
    start_ingest(stream, str(output), None, every_s=None).awaitTermination()
    stored = spark.read.parquet(str(output))
    assert sorted(row.offset for row in stored.collect()) == list(range(12))
    kinds = {path.name for path in output.glob("day=*/record_type=*")}
    assert kinds == {"record_type=NoOpRecord", "record_type=TopicRecord"}
    assert len(list(output.glob("day=*"))) > 2


def test_a_batch_that_was_cut_short_is_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    log, source, output = Log(), tmp_path / "source", tmp_path / "out"
    days_of(log, 4)
    stream = streamed(spark, source, log)
    start_ingest(stream, str(output), None, every_s=None).awaitTermination()
    # As after a kill between the files of the batch and the note of it.
    for note in [*output.glob("_spark_metadata/*0*"), *output.glob("_checkpoint/commits/*0*")]:
        note.unlink()
    start_ingest(stream, str(output), None, every_s=None).awaitTermination()
    stored = spark.read.parquet(str(output))
    assert sorted(row.offset for row in stored.collect()) == list(range(4))


def test_an_output_is_not_written_with_another_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, source, output = Log(), tmp_path / "source", tmp_path / "out"
    days_of(log, 2)
    stream = streamed(spark, source, log)
    start_ingest(stream, str(output), None, every_s=None).awaitTermination()
    with pytest.raises(PipelineError, match=r"^--checkpoint: .*other is not that of"):
        start_ingest(stream, str(output), str(tmp_path / "other"), every_s=None)


def test_a_checkpoint_is_not_taken_for_an_output_that_lacks_its_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What it has read already would never come there."""
    log, source, output = Log(), tmp_path / "source", tmp_path / "out"
    days_of(log, 2)
    stream = streamed(spark, source, log)
    checkpoint = str(tmp_path / "checkpoint")
    start_ingest(stream, str(output), checkpoint, every_s=None).awaitTermination()
    with pytest.raises(PipelineError, match=r"^--output: .*other lacks what .*checkpoint says"):
        start_ingest(stream, str(tmp_path / "other"), checkpoint, every_s=None)
    assert not (tmp_path / "other").exists()


def kraft_stream(spark: SparkSession, log: LogWriter) -> DataFrame:
    return spark.readStream.format("kraft").option("path", str(log.root)).load()


def test_an_end_that_another_leader_wrote_again_ends_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A tail that was never committed when its leader died is in the output."""
    log, output = small_log(tmp_path / "log"), tmp_path / "out"
    committed = log.file.read_bytes()
    log.write([topic(7)])
    start_ingest(kraft_stream(spark, log), str(output), None, every_s=None).awaitTermination()
    log.file.write_bytes(committed)
    log.offset -= 1
    log.lead(3)
    log.write([topic(8)])
    again = start_ingest(kraft_stream(spark, log), str(output), None, every_s=None)
    with pytest.raises(StreamingQueryException, match=r"22 was of epoch 2 .*is of epoch 3 by now"):
        again.awaitTermination()
    stored = spark.read.parquet(str(output))
    assert sorted(row.offset for row in stored.collect()) == list(range(22))


def test_damage_is_stored_too(spark: SparkSession) -> None:
    log = Log()
    row = log.add("NoOpRecord", {})._replace(crc_valid=False, record_type=None)
    table = ingested(frame(spark, [row]))
    assert [each.record_type for each in table.collect()] == [DAMAGED]
    assert has_schema(table, SCHEMA)


def test_the_flags_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ingest", "--path", "a"])
    assert "--output" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["ingest", "--path", "a", "--output", "b", "--go-on-after-loss", "maybe"])
    assert "--go-on-after-loss" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--output", "--checkpoint"])
def test_a_file_in_the_place_of_a_directory_is_refused_before_spark_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flag: str
) -> None:
    (tmp_path / "file").touch()
    flags = {"--output": str(tmp_path / "new")} | {flag: str(tmp_path / "file")}
    words = [word for pair in flags.items() for word in pair]
    assert main(["ingest", "--path", "a", *words]) == 1
    said = capsys.readouterr().err
    assert said == (
        f"quorate pipeline ingest: {flag}: {tmp_path / 'file'} is no directory; name a new one\n"
    )
