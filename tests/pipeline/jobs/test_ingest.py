from __future__ import annotations

import os
import signal
from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from quorate.pipeline.command import main
from quorate.pipeline.jobs import job_runner, progress
from quorate.pipeline.jobs.ingest import DAMAGED, SCHEMA, follow, ingested, start_ingest
from quorate.pipeline.jobs.registry import PipelineError
from quorate.storage.directory_lock import DirectoryLock
from tests.pipeline.log_frames import START_MS, Log, frame, has_schema
from tests.pipeline.source.logs import small_log, topic

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

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
    """The batches that it has read already would never arrive there."""
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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--ending-offsets", "2026-01-05T00:00:25Z"], "--ending-offsets: a stream has no end; "),
        (["--starting-offsets", "snapshot@3"], "--starting-offsets: a stream goes on to the log's"),
    ],
)
def test_what_a_stream_cannot_take_is_told_before_spark_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], told: str
) -> None:
    path, output = str(small_log(tmp_path / "log").root), tmp_path / "new"
    assert main(["ingest", "--path", path, "--output", str(output), *words]) == 1
    assert capsys.readouterr().err.startswith(f"quorate pipeline ingest: {told}")
    assert not output.exists()


@pytest.mark.parametrize("flag", ["--output", "--checkpoint"])
def test_a_file_in_the_place_of_a_directory_is_refused_before_spark_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flag: str
) -> None:
    path = str(small_log(tmp_path / "log").root)
    (tmp_path / "file").touch()
    flags = {"--output": str(tmp_path / "new")} | {flag: str(tmp_path / "file")}
    words = [word for pair in flags.items() for word in pair]
    assert main(["ingest", "--path", path, *words]) == 1
    said = capsys.readouterr().err
    assert said == (
        f"quorate pipeline ingest: {flag}: {tmp_path / 'file'} is no directory; name a new one\n"
    )


def test_a_batch_writes_one_file_for_each_day_and_type(spark: SparkSession, tmp_path: Path) -> None:
    log, source, output = Log(), tmp_path / "source", tmp_path / "out"
    for _ in range(4):
        log.at_ms = START_MS
        days_of(log, 12)
        stream = streamed(spark, source, log)
    start_ingest(stream, str(output), None, every_s=None).awaitTermination()
    parts = [part.name for part in output.glob("day=*/record_type=*")]
    files = list(output.glob("day=*/record_type=*/*.parquet"))
    assert len(files) == len(parts) > 6
    assert spark.read.parquet(str(output)).count() == 48


def test_other_readers_find_times_in_utc_and_what_a_file_spans(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's own default has neither a zone nor statistics, and wraps in the year 2262."""
    log, output = Log(), tmp_path / "out"
    days_of(log, 12)
    stream = streamed(spark, tmp_path / "source", log)
    start_ingest(stream, str(output), None, every_s=None).awaitTermination()
    file = pq.ParquetFile(next(output.glob("day=*/record_type=*/*.parquet")))
    assert file.schema_arrow.field("timestamp").type == pa.timestamp("us", "UTC")
    row_group = file.metadata.row_group(0)
    times = row_group.column(file.schema.names.index("timestamp"))
    assert times.statistics.has_min_max


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_second_ingest_into_an_output_is_refused_before_it_does_anything(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, slash: str
) -> None:
    path, output = str(small_log(tmp_path / "log").root), tmp_path / "out"
    output.mkdir()
    with DirectoryLock(str(output)):
        # No session is there, and none is made.
        words = ["--output", f"{output}{slash}", "--master", "none"]
        assert main(["ingest", "--path", path, *words]) == 1
    assert capsys.readouterr().err == (
        f"quorate pipeline ingest: --output: {output}/.lock is held by process {os.getpid()}: a"
        " directory belongs to one process. Stop that one, or use another --output\n"
    )
    assert [path.name for path in output.iterdir()] == [".lock"]


def test_places_that_do_not_belong_together_are_refused_before_anything_is_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, output = str(small_log(tmp_path / "log").root), tmp_path / "out"
    commits = tmp_path / "checkpoint/commits"
    commits.mkdir(parents=True)
    (commits / "0").touch()
    words = ["--output", str(output), "--checkpoint", str(commits.parent), "--master", "none"]
    assert main(["ingest", "--path", path, *words]) == 1
    assert "ingest: --output: " in capsys.readouterr().err
    assert not output.exists()


class Batches:
    """A query of batches: each wait is a step, which may end a batch or send a signal."""

    def __init__(self, *steps: str) -> None:
        self._steps = list(steps)
        self._batch = 0
        self.is_stopped = False
        self.status = {"isTriggerActive": True}
        self.recentProgress: list[object] = []

    @property
    def lastProgress(self) -> dict[str, int]:
        """The last batch that has ended."""
        return {"batchId": self._batch, "numInputRows": 9}

    def awaitTermination(self, timeout: int) -> bool:
        """The next step; True where the query ends with it."""
        assert timeout
        match self._steps.pop(0):
            case "batch ends":
                self._batch += 1
            case "pause":
                self.status["isTriggerActive"] = False
            case "end":
                return True
            case "Ctrl-C":
                signal.raise_signal(signal.SIGINT)
            case "SIGTERM":
                signal.raise_signal(signal.SIGTERM)
        return False

    def stop(self) -> None:
        """End it."""
        self.is_stopped = True


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        (["batch ends", "end"], 0),
        (["Ctrl-C", "wait", "batch ends"], 130),
        (["pause", "Ctrl-C"], 130),
        (["SIGTERM", "wait", "pause"], 143),
        (["Ctrl-C", "wait", "end"], 0),
    ],
)
def test_a_signal_ends_it_between_batches(
    capsys: pytest.CaptureFixture[str], steps: list[str], status: int
) -> None:
    before = signal.getsignal(signal.SIGINT)
    query = Batches(*steps)
    assert follow(cast("StreamingQuery", query)) == status
    assert query.is_stopped == bool(status)
    said = capsys.readouterr().err
    has_signal = {"Ctrl-C", "SIGTERM"} & set(steps)
    assert said.count("\n") == bool(has_signal)
    assert ("ingest: ends after the batch that is under way" in said) == bool(has_signal)
    assert signal.getsignal(signal.SIGINT) is before


def test_without_a_terminal_a_batch_is_told_once_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = ["batch ends", "wait", "wait", "batch ends", "end"]
    assert follow(cast("StreamingQuery", Batches(*steps))) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "_KEPT_EVERY_S", 0)
    assert follow(cast("StreamingQuery", Batches(*steps))) == 0
    assert capsys.readouterr().err == (
        "quorate pipeline ingest: batch 1: 9 rows\nquorate pipeline ingest: batch 2: 9 rows\n"
    )


def test_a_second_ctrl_c_ends_it_in_the_middle_of_a_batch() -> None:
    query = Batches("Ctrl-C", "wait", "Ctrl-C")
    with pytest.raises(KeyboardInterrupt):
        follow(cast("StreamingQuery", query))


def test_a_loss_is_told_with_the_options_of_the_command(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    log, output = small_log(tmp_path / "log"), tmp_path / "out"
    words = ["ingest", "--path", str(log.root), "--output", str(output)]
    assert main(words) == 0
    log.file.write_bytes(log.file.read_bytes()[:200])
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "--go-on-after-loss yes" in said
    assert "failOnDataLoss" not in said
    assert said.count("\n") == 1
