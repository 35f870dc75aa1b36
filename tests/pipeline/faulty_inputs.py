"""Logs with faults, asked in every way: a program for spark-submit, and what a test does itself.

    faulty_inputs.py INPUTS OUTPUT

INPUTS is what `write_inputs` left: small logs, each with one fault. OUTPUT gets the answers as
JSON: of each input as a batch, as a stream, and as what the commands write.
"""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions as F

from quorate.pipeline.command import main
from quorate.pipeline.jobs import job_runner
from quorate.pipeline.jobs.ingest import SCHEMA, start_ingest
from quorate.pipeline.jobs.spark_errors import spark_error_message
from quorate.pipeline.session import session
from tests.pipeline.source.logs import LogWriter, flip, partition, topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    Fault = Callable[[list[LogWriter]], None]
    # The source's options of each input by its name.
    Inputs = dict[str, dict[str, str]]

INPUTS: Final = "inputs.json"
ANSWERS: Final = "answers.json"
_EPOCHS: Final = "leader-epoch-checkpoint"


def write_log(path: Path, node_id: int, *, last_epoch: int = 3) -> LogWriter:
    """Offsets 0 to 40 in three segments and three epochs, from midnight on."""
    log = LogWriter(path, node_id=node_id)
    starts = []
    for epoch in (1, 2, last_epoch):
        log.roll()
        starts.append(f"{epoch} {log.offset}")
        log.lead(epoch)
        for number in range(4):
            log.write([topic(10 * epoch + number), *(partition(part) for part in range(2))])
    log.write([partition(9)] * 2)
    text = "\n".join(["0", str(len(starts)), *starts, ""])
    (log.directory / _EPOCHS).write_text(text)
    return log


def _change_magic(logs: list[LogWriter]) -> None:
    """The batch of offset 30 in the last segment has another magic."""
    file, position, _ = next(each for each in logs[0].positions if each[2] == 30)
    flip(file, position + 16, 2)


def _change_record(logs: list[LogWriter]) -> None:
    """A bit of the batch of offset 17 has flipped, behind its CRC."""
    file, position, _ = next(each for each in logs[0].positions if each[2] == 17)
    flip(file, position + 70)


def _lose_segment(logs: list[LogWriter]) -> None:
    """The segment of the second epoch is not there."""
    (logs[0].directory / f"{13:020d}.log").unlink()


def _lose_history(logs: list[LogWriter]) -> None:
    """The first segment was deleted, and a snapshot stands for it."""
    (logs[0].directory / f"{0:020d}.log").unlink()
    logs[0].snapshot(13, [topic(10), topic(11)])


def _change_epoch(logs: list[LogWriter]) -> None:
    """A bit of the epoch of the batch of offset 17 has flipped, which no CRC guards."""
    file, position, _ = next(each for each in logs[0].positions if each[2] == 17)
    flip(file, position + 15, 3)


def _close_segment(logs: list[LogWriter]) -> None:
    """A directory in the place of the second epoch's segment, which root cannot read, either."""
    file = logs[0].directory / f"{13:020d}.log"
    file.unlink()
    file.mkdir()


def _fetch_snapshot(logs: list[LogWriter]) -> None:
    """A snapshot was fetched of all there is, and the log is still that of the first epochs."""
    (logs[0].directory / f"{26:020d}.log").unlink()
    logs[0].snapshot(logs[0].offset, [topic(10)], epoch=3)
    (logs[0].directory / _EPOCHS).write_text("0\n2\n1 0\n2 13\n")


def _tear_tail(logs: list[LogWriter]) -> None:
    """The last batch is half written."""
    file, position, _ = logs[0].positions[-1]
    file.write_bytes(file.read_bytes()[: position + 40])


FAULTS: Final[dict[str, Fault | None]] = {
    "whole": None,
    "magic": _change_magic,
    "record": _change_record,
    "epoch": _change_epoch,
    "missing segment": _lose_segment,
    "closed segment": _close_segment,
    "snapshot ahead": _fetch_snapshot,
    "deleted history": _lose_history,
    "torn tail": _tear_tail,
}


def write_inputs(root: Path) -> Inputs:
    """The inputs below a folder: the source's options of each by its name.

    Each fault is in the log of one voter alone, and in the first one of three.
    """
    inputs: Inputs = {}
    for name, harm in FAULTS.items():
        for count in (1, 3):
            folder = root / f"{name} {count}".replace(" ", "-")
            logs = [write_log(folder / str(node), node) for node in range(1, count + 1)]
            if harm is not None:
                harm(logs)
            inputs[f"{name} {count}"] = {"path": ",".join(str(log.root) for log in logs)}
    (root / INPUTS).write_text(json.dumps(inputs))
    return inputs


def answers(spark: SparkSession, inputs: Inputs, folder: Path) -> dict[str, Any]:
    """The answers about each input: of a batch, of a stream, and of the commands."""
    found: dict[str, Any] = {}
    for name, options in inputs.items():
        place = folder / name.replace(" ", "-")
        found[f"{name}: batch"] = batch_rows(spark, options)
        found[f"{name}: stream"] = _streamed(spark, options, place)
        found[f"{name}: elections"] = _elections(spark, options, place)
    return found


_COLUMNS: Final = ("offset", "leader_epoch", "at_ms", "record_type", "crc_valid")


def batch_rows(spark: SparkSession, options: dict[str, str]) -> list[list[Any]] | str:
    """Every row of a batch, or the error that ended it."""
    try:
        log = spark.read.format("kraft").options(**options).load()
        timed = log.withColumn("at_ms", F.unix_millis("timestamp"))
        rows = timed.select(*_COLUMNS, "source_node").collect()
    except PySparkException as error:
        return spark_error_message(error, sys.executable)
    return sorted((list(row) for row in rows), key=repr)


def _streamed(spark: SparkSession, options: dict[str, str], place: Path) -> dict[str, Any]:
    """The rows of a lake, each record by its day, and the error that ended the query."""
    shutil.rmtree(place, ignore_errors=True)
    said = ""
    stream = spark.readStream.format("kraft").options(**options)
    query = start_ingest(
        stream.option("maxOffsetsPerTrigger", 15).load(), str(place), None, every_s=None
    )
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        said = spark_error_message(error, sys.executable)
    if not (place / "_spark_metadata").exists():
        return {"rows": [], "error": said}
    stored = (
        spark.read.schema(SCHEMA)
        .parquet(str(place))
        .withColumn("at_ms", F.unix_millis("timestamp"))
    )
    rows = stored.select(*_COLUMNS, F.col("day").cast("string")).collect()
    return {"rows": sorted((list(row) for row in rows), key=repr), "error": said}


def _elections(spark: SparkSession, options: dict[str, str], place: Path) -> list[str] | int:
    """The epochs as the command writes them, or its exit status."""
    output = place.with_name(place.name + "-elections")
    shutil.rmtree(output, ignore_errors=True)
    if "path" in options:
        words = [word for each in options["path"].split(",") for word in ("--path", each)]
    else:
        words = ["--bootstrap-controller", options["bootstrap.servers"]]
    words += ["--format", "json", "--table", "elections", "--output", str(output)]
    with mock.patch.object(job_runner, "session", return_value=nullcontext(spark)):
        status = main(["elections", *words])
    if status != 0:
        return status
    parts = (output / "elections").glob("part-*.json")
    return sorted(line for part in parts for line in part.read_text().splitlines())


if __name__ == "__main__":
    where, told = map(Path, sys.argv[1:])
    given: Inputs = json.loads((where / INPUTS).read_text())
    with session() as opened:
        told.mkdir()
        (told / ANSWERS).write_text(json.dumps(answers(opened, given, told)))
