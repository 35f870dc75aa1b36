"""Job `ingest`: streams the log to Parquet by day and record type, exactly once.

Spark's file sink records in the output which files belong to which batch, and in its checkpoint
which offsets a batch has. An interrupted batch is rewritten from the same offsets. Files of the
first attempt are in no batch's record, so Spark ignores them when it reads the directory.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from quorate.pipeline.jobs.damage_report import DamagedBatches, observed
from quorate.pipeline.jobs.job_runner import FORMAT, check_log, job_session, source_options
from quorate.pipeline.jobs.output import check_place
from quorate.pipeline.jobs.progress import LastLine, say
from quorate.pipeline.jobs.registry import INGEST, PipelineError
from quorate.pipeline.jobs.sink_log import NOTES, mend_notes
from quorate.pipeline.source.options import START, URL
from quorate.process.stop_signals import StopSignals, status_of
from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.errors import UNSUPPORTED, StorageError, problem_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

SCHEMA: Final = StructType(
    [
        StructField("offset", LongType()),
        StructField("leader_epoch", IntegerType()),
        StructField("timestamp", TimestampType()),
        StructField("is_control", BooleanType()),
        StructField("record_version", ShortType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("payload", StringType()),
        StructField("batch_base_offset", LongType()),
        StructField("segment", StringType()),
        StructField("crc_valid", BooleanType()),
        StructField("source_node", IntegerType()),
        StructField("day", DateType()),
        StructField("record_type", StringType()),
    ]
)
PARTITIONS: Final = ("day", "record_type")
DAMAGED: Final = "damaged"
_CHECKPOINT: Final = "_checkpoint"
# Spark merges every tenth record and those before it into one file.
_COMPACT: Final = ".compact"
_POLL_S: Final = 1
_ENDING: Final = (
    "ends after the batch that is under way, and goes on from there when it is run again; Ctrl-C"
    " once more ends it at once"
)


def ingested(log: DataFrame) -> DataFrame:
    """The log's rows as they are stored: `day` is in UTC, damage has the type `damaged`."""
    return log.select(
        "offset",
        "leader_epoch",
        "timestamp",
        "is_control",
        "record_version",
        "key",
        "value",
        "payload",
        "batch_base_offset",
        "segment",
        "crc_valid",
        "source_node",
        F.to_date("timestamp").alias("day"),
        F.coalesce("record_type", F.lit(DAMAGED)).alias("record_type"),
    )


def start_ingest(
    log: DataFrame, output: str, checkpoint: str | None, *, every_s: int | None
) -> StreamingQuery:
    """Start the stream, or resume it from the checkpoint; without `every_s` up to the current end.

    Raises PipelineError as `check_places` does.
    """
    place = checkpoint or _checkpoint_in(output)
    check_places(output, place)
    writer = (
        ingested(log)
        # Each task writes one file per day and type among its rows.
        .repartition(*PARTITIONS)
        .writeStream.format("parquet")
        .queryName("ingest")
        .partitionBy(*PARTITIONS)
        .option("checkpointLocation", place)
    )
    if every_s is None:
        return writer.trigger(availableNow=True).start(output)
    return writer.trigger(processingTime=f"{every_s} seconds").start(output)


def check_places(output: str, checkpoint: str) -> None:
    """Raise PipelineError for an output and a checkpoint that do not belong together.

    If the output has batches of another checkpoint, they count as this one's, and its records would
    be skipped. If the checkpoint has batches of another output, they would be missing in this one.
    """
    if _last_noted(f"{checkpoint}/commits") > _last_noted(f"{output}/{NOTES}"):
        raise PipelineError(
            f"--output: {output} lacks what {checkpoint} says has been written: name the output"
            " that goes with that checkpoint, or another --checkpoint"
        )
    if os.path.exists(f"{output}/{NOTES}") and not os.path.exists(f"{checkpoint}/offsets"):
        raise PipelineError(
            f"--checkpoint: {checkpoint} is not that of {output}, which has been written to before:"
            " name the checkpoint that goes with it, or another --output"
        )


def _checkpoint_in(output: str) -> str:
    return f"{output}/{_CHECKPOINT}"


def _last_noted(folder: str) -> int:
    """The number of the newest batch that is recorded in a folder; -1 for none."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    numbers = [name.removesuffix(_COMPACT) for name in names]
    return max((int(number) for number in numbers if number.isdecimal()), default=-1)


def run(arguments: argparse.Namespace) -> int:
    """Ingest all existing records, or continuously; returns the exit status.

    A stop signal ends it between batches, a second Ctrl-C immediately.
    """
    options = source_options(INGEST, arguments)
    output, checkpoint = arguments.output, arguments.checkpoint or _checkpoint_in(arguments.output)
    # The checkpoint determines the offset to resume from, and takes precedence over the flags.
    is_begun = os.path.exists(f"{checkpoint}/offsets")
    check_log(INGEST, options | {START: "earliest"} if is_begun else options, is_stream=True)
    if arguments.max_offsets_per_batch is not None:
        options["maxOffsetsPerTrigger"] = str(arguments.max_offsets_per_batch)
    options["failOnDataLoss"] = "false" if arguments.go_on_after_loss == "yes" else "true"
    for flag, place in (("--output", output), ("--checkpoint", checkpoint)):
        check_place(flag, place)
        if os.path.lexists(place) and not os.path.isdir(place):
            raise PipelineError(f"{flag}: {place} is no directory; name a new one")
    check_places(output, checkpoint)
    with _locked(output), job_session(arguments.master, output) as spark:
        if not URL.match(output):
            for line in mend_notes(output, _url_of(spark, output), arguments.keep_days):
                say(f"quorate pipeline {INGEST.name}: {line}")
        reader = spark.readStream.format(FORMAT)
        for name, value in options.items():
            reader = reader.option(name, value)
        log = observed(reader.load())
        return follow(start_ingest(log, output, checkpoint, every_s=arguments.every_s))


def _url_of(spark: SparkSession, output: str) -> str:
    """The output's URL as Spark's file sink records it."""
    jvm = spark._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(os.path.abspath(output))
    configuration = spark._jsc.hadoopConfiguration()
    return str(path.getFileSystem(configuration).makeQualified(path).toUri().toString())


@contextmanager
def _locked(output: str) -> Iterator[None]:
    """Keep other processes from writing to the output. Raises PipelineError if one does.

    On remote file systems Spark reports a second writer only when their batches conflict.
    """
    lock = DirectoryLock(output.rstrip("/") or "/", "--output")
    try:
        if not URL.match(output):
            os.makedirs(output, exist_ok=True)
            lock.acquire()
    except StorageError as error:
        raise PipelineError(f"--output: {error}") from error
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise PipelineError(f"--output: {problem_of(error, output)}") from error
    try:
        yield
    finally:
        lock.release()


def follow(query: StreamingQuery) -> int:
    """Report batches until the query ends, or a signal ends it; returns the exit status."""
    damaged = DamagedBatches(INGEST.name)
    shown = LastLine(INGEST.name)
    signals = StopSignals()
    status, last, is_told = 0, None, False
    with signals.recording():
        while not query.awaitTermination(_POLL_S):
            shown.show(_batch_line(query))
            damaged.look(query)
            if signals.received is None:
                continue
            if not is_told:
                is_told, last = True, _last_batch_of(query)
                say(f"quorate pipeline {INGEST.name}: {_ENDING}")
            if not query.status["isTriggerActive"] or _last_batch_of(query) != last:
                query.stop()
                status = status_of(signals.received)
                break
    if sys.stderr.isatty():
        say(_batch_line(query))
    damaged.look(query)
    return status


def _last_batch_of(query: StreamingQuery) -> int | None:
    """The number of the last completed batch."""
    told = query.lastProgress
    return None if told is None else int(told["batchId"])


def _batch_line(query: StreamingQuery) -> str:
    told = query.lastProgress
    return "" if told is None else f"batch {told['batchId']}: {told['numInputRows']} rows"
