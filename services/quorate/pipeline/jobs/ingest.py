"""The log as Parquet, by day and record type, as a stream: each record exactly once.

Spark's file sink notes in the output which files belong to which batch, and its checkpoint which
offsets a batch has. A batch that was cut short is written anew from the same offsets, and files of
the attempt before are in no batch's note: Spark, when it reads the directory, sees none of them.
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

from quorate.pipeline.jobs.damage import DamagedBatches, observed
from quorate.pipeline.jobs.registry import INGEST, PipelineError
from quorate.pipeline.jobs.running import FORMAT, opened, source_options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pyspark.sql import DataFrame
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
_NOTES: Final = "_spark_metadata"
_CHECKPOINT: Final = "_checkpoint"
# Spark gathers every tenth note and those before it in one file.
_COMPACT: Final = ".compact"
_POLL_S: Final = 1
# What the source advises, in its own words, and the command's for the same.
_WORDS: Final = {
    "set failOnDataLoss to false": "say --go-on-after-loss yes",
    "give the query a new checkpoint and another output": "name another --checkpoint and --output",
    "give the query a new checkpoint": "name another --checkpoint and --output",
}


def ingested(log: DataFrame) -> DataFrame:
    """The log's rows as they are stored: `day` is UTC's, damage has the type `damaged`."""
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
    """Begin, or go on where the checkpoint says; without `every_s` up to what there is now.

    Raises PipelineError where the output has batches of another checkpoint: they would count as
    this one's, and what it reads would be passed over. The same where the checkpoint has batches of
    another output: what they hold would be missing here.
    """
    place = checkpoint or f"{output}/{_CHECKPOINT}"
    if _last_batch(f"{place}/commits") > _last_batch(f"{output}/{_NOTES}"):
        raise PipelineError(
            f"--output: {output} lacks what {place} says has been written: name the output that"
            " goes with that checkpoint, or another --checkpoint"
        )
    if os.path.exists(f"{output}/{_NOTES}") and not os.path.exists(f"{place}/offsets"):
        raise PipelineError(
            f"--checkpoint: {place} is not that of {output}, which has been written to before:"
            " name the checkpoint that goes with it, or another --output"
        )
    writer = (
        ingested(log)
        .writeStream.format("parquet")
        .queryName("ingest")
        .partitionBy(*PARTITIONS)
        .option("checkpointLocation", place)
    )
    if every_s is None:
        return writer.trigger(availableNow=True).start(output)
    return writer.trigger(processingTime=f"{every_s} seconds").start(output)


def _last_batch(folder: str) -> int:
    """The number of the newest batch that is noted in a folder; -1 for none."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    numbers = [name.removesuffix(_COMPACT) for name in names]
    return max((int(number) for number in numbers if number.isdecimal()), default=-1)


def run(arguments: argparse.Namespace) -> int:
    """Ingest until all that is there is written, or without end; Ctrl-C ends it between batches."""
    options = source_options(INGEST, arguments)
    if arguments.max_offsets_per_batch is not None:
        options["maxOffsetsPerTrigger"] = str(arguments.max_offsets_per_batch)
    options["failOnDataLoss"] = "false" if arguments.go_on_after_loss == "yes" else "true"
    for flag, place in (("--output", arguments.output), ("--checkpoint", arguments.checkpoint)):
        if place is not None and os.path.lexists(place) and not os.path.isdir(place):
            raise PipelineError(f"{flag}: {place} is no directory; name a new one")
    with _in_own_words(), opened(arguments.master) as spark:
        reader = spark.readStream.format(FORMAT)
        for name, value in options.items():
            reader = reader.option(name, value)
        query = start_ingest(
            observed(reader.load()),
            arguments.output,
            arguments.checkpoint,
            every_s=arguments.every_s,
        )
        damaged = DamagedBatches(INGEST.name)
        try:
            while not query.awaitTermination(_POLL_S):
                _tell(query)
                damaged.look(query)
        finally:
            query.stop()
        _tell(query)
        damaged.look(query)
    return 0


@contextmanager
def _in_own_words() -> Iterator[None]:
    """Let the source's advice name the command's options."""
    try:
        yield
    except PipelineError as error:
        said = str(error)
        for of_source, of_command in _WORDS.items():
            said = said.replace(of_source, of_command)
        raise PipelineError(said) from error


def _tell(query: StreamingQuery) -> None:
    """The last batch, on a terminal's stderr."""
    told = query.lastProgress
    if told is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[Kbatch {told['batchId']}: {told['numInputRows']} rows")
        sys.stderr.flush()
