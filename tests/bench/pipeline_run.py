"""One measurement of the pipeline in a Spark session of its own.

It prints `started` before the measurement, and the seconds that it took at the end, as JSON.

    python -m tests.bench.pipeline_run MEASURE MASTER LOG OUTPUT

It is a process of its own so that no measurement finds what another one left: compiled code,
memory, workers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Final

from quorate.pipeline.command import add_jobs
from quorate.pipeline.jobs import image_tables, partitions
from quorate.pipeline.jobs.ingest import start_ingest
from quorate.pipeline.jobs.job_runner import FORMAT, read_log, source_options
from quorate.pipeline.jobs.registry import JOBS
from quorate.pipeline.session import session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

_TYPED: Final = {
    "columns": "offset",
    "payload": "false",
    "recordTypes": "PartitionRecord,PartitionChangeRecord",
    "recordTypesOnly": "true",
}


def _read(spark: SparkSession, path: str, options: Mapping[str, str]) -> DataFrame:
    return read_log(spark, {"path": path, **options})


def _drain(frame: DataFrame) -> None:
    """Compute every row and discard it."""
    frame.write.format("noop").mode("overwrite").save()


def count(spark: SparkSession, path: str, output: str) -> int:
    """All records, one column."""
    del output
    rows: int = _read(spark, path, {"columns": "offset", "payload": "false"}).count()
    return rows


def typed(spark: SparkSession, path: str, output: str) -> None:
    """Records about partitions as structs, every row to the JVM."""
    del output
    _drain(_read(spark, path, _TYPED))


def typed_count(spark: SparkSession, path: str, output: str) -> int:
    """Count the records that `typed` reads."""
    del output
    rows: int = _read(spark, path, _TYPED).count()
    return rows


def ingest(spark: SparkSession, path: str, output: str) -> None:
    """Write all records to Parquet, with their JSON column."""
    log = spark.readStream.format(FORMAT).option("path", path).load()
    query = start_ingest(log, output, None, every_s=None)
    query.awaitTermination()
    assert query.exception() is None, query.exception()


def partitions_job(spark: SparkSession, path: str, output: str) -> None:
    """All tables of the job."""
    del output
    log = read_log(spark, _options("partitions", path))
    for table in partitions.tables(log, {}).values():
        _drain(table)


def image(spark: SparkSession, path: str, output: str) -> None:
    """All tables, from the newest snapshot on."""
    del output
    _image(spark, _options("image", path, "--starting-offsets", "snapshot"))


def image_of_all(spark: SparkSession, path: str, output: str) -> None:
    """All tables, from every record of the log: the default of the command."""
    del output
    _image(spark, _options("image", path))


def _image(spark: SparkSession, options: Mapping[str, str]) -> None:
    for table in image_tables.tables(read_log(spark, options), {"at": None}).values():
        _drain(table)


def _options(job: str, path: str, *words: str) -> dict[str, str]:
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    return source_options(JOBS[job], parser.parse_args([job, "--path", path, *words]))


MEASURES: Final[Mapping[str, Callable[[SparkSession, str, str], int | None]]] = {
    "count": count,
    "typed": typed,
    "typed-count": typed_count,
    "ingest": ingest,
    "partitions": partitions_job,
    "image": image,
    "image-of-all": image_of_all,
}


def main(words: list[str]) -> int:
    """Measure one thing."""
    measure, master, path, output = words
    begun_s = time.monotonic()
    with session(master) as spark:
        # The first query of a session loads and compiles code that every query needs.
        spark.range(1).write.format("noop").mode("overwrite").save()
        ready_s = time.monotonic()
        print("started", flush=True)
        rows = MEASURES[measure](spark, path, output)
        done_s = time.monotonic()
    told = {"start_s": ready_s - begun_s, "run_s": done_s - ready_s, "rows": rows}
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
