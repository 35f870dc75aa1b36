"""A query of its own process, to be killed: follows a source into Parquet.

Arguments: a JSON object with the source's `options`, `sink`, `checkpoint` and, to read what is
there and stop, `result`: where offsets and values of all that the sink has are written.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main(arguments: dict[str, str | dict[str, str]]) -> None:
    """Follow until killed, or up to what is there now."""
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.pyspark.python", sys.executable)
        .config("spark.driver.memory", "512m")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    options, sink, checkpoint = (arguments[name] for name in ("options", "sink", "checkpoint"))
    result = arguments.get("result")
    assert isinstance(options, dict)
    frame = spark.readStream.format("kraft").options(**options).load()
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    trigger = {"availableNow": True} if result else {"processingTime": "100 milliseconds"}
    query = writer.trigger(**trigger).start(str(sink))
    query.awaitTermination()
    if result:
        rows = spark.read.parquet(str(sink)).select("offset", "record_type", "value").collect()
        told = [
            [row.offset, row.record_type, base64.b64encode(row.value or b"").decode()]
            for row in rows
        ]
        Path(str(result)).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
