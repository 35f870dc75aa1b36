"""A live quorum that wants a certificate of its clients, read by Spark's own processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from tests.integration.security.secure_quorum import SecureQuorum
from tests.integration.security.stores import Stores
from tests.pipeline.source.logs import rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Told = list[tuple[int, str, bytes]]


def collect(spark: SparkSession, **options: str) -> Told:
    """The settings that Spark's processes are given."""
    frame = spark.read.format("kraft").options(**options).load()
    return sorted((row.offset, row.record_type, bytes(row.value)) for row in frame.collect())


async def test_a_log_behind_mutual_tls_is_read_with_the_files_of_command_config(
    spark: SparkSession, tmp_path: Path
) -> None:
    stores = Stores(tmp_path / "tls")
    stores.give("viewer")
    async with SecureQuorum(tmp_path / "quorum", stores, controllers=1) as quorum:
        limits = {"startingOffsets": "0", "endingOffsets": str(await quorum.assert_logs_agree())}
        options = {"bootstrap.servers": quorum.bootstrap_servers, **limits}

        async def read_as(party: str) -> Told:
            config = {"commandConfig": quorum.command_config(party)}
            return await asyncio.to_thread(collect, spark, **options, **config)

        on_disk = rows(quorum.nodes[1].metadata_dir, **limits)
        expected = [(row["offset"], row["record_type"], row["value"]) for row in on_disk]
        assert await read_as("root") == expected != []
        # Fetching is what peers do: to be known is not enough.
        with pytest.raises(PySparkException, match="User:CN=viewer"):
            await read_as("viewer")
