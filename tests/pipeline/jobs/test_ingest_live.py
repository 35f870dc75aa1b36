"""`ingest` of three real controllers: every committed record exactly once, whatever happens."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from quorate.controller.topics.messages import NewTopic
from quorate.pipeline.jobs.ingest import start_ingest
from quorate.records.ids import NodeId
from tests.integration.quorum import STEADY, Quorum
from tests.pipeline.source.logs import rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pyspark.sql import SparkSession

# Three JVMs start, one after the other, on whatever machine this is.
DEADLINE_S = 600.0


class Ingest:
    """`quorate pipeline ingest` below one folder, started as often as the test likes."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder = folder
        self.output, self.checkpoint = folder / "output", folder / "checkpoint"
        self._log = folder / "ingest.log"
        self._process: asyncio.subprocess.Process | None = None
        self._words = [
            *("--bootstrap-controller", servers, "--master", "local[1]"),
            *("--output", str(self.output), "--checkpoint", str(self.checkpoint)),
            *("--max-offsets-per-batch", "50"),
        ]

    @asynccontextmanager
    async def running(self, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """A process in a session of its own, killed with all that it started."""
        command = ["-m", "quorate.cli.main", "pipeline", "ingest", *self._words, *words]
        with self._log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *command,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=os.environ | {"TMPDIR": str(self.folder)},
            )
        self._process = process
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def count(self, notes: str) -> int:
        """The number of batches noted in the checkpoint: as begun in `offsets`, as done in
        `commits`."""
        return len(list((self.checkpoint / notes).glob("[0-9]*")))

    def said(self) -> str:
        """Its last lines."""
        return self._log.read_text(errors="replace")[-4000:]

    async def batches(self, notes: str, count: int) -> None:
        """Wait until so many batches are noted. AssertionError as soon as the job has ended."""
        assert self._process is not None
        try:
            async with asyncio.timeout(DEADLINE_S):
                while self.count(notes) < count:
                    assert self._process.returncode is None, self.said()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            told = f"{self.count(notes)} of {count} batches in {notes}: {self.said()}"
            raise AssertionError(told) from None


async def test_each_committed_record_comes_exactly_once(
    tmp_path: Path, spark: SparkSession
) -> None:
    # Spark keeps the machine busy, and a leader that is new does not know yet whom it may add.
    async with Quorum(tmp_path / "quorum", STEADY) as quorum:
        ingest = Ingest(tmp_path, quorum.bootstrap_servers)
        await quorum.register_brokers()
        await quorum.create(NewTopic("before", 3, 3))
        async with ingest.running("--every-s", "1"):
            await ingest.batches("commits", 1)
            leader = await quorum.leader_id()
            await quorum.kill(leader)
            await quorum.create(NewTopic("without-its-leader", 5, 3))
            await quorum.start(leader)
            await ingest.batches("commits", ingest.count("commits") + 1)
            # Longer than a batch: the kill comes when one has begun and is not done.
            done = ingest.count("commits")
            await quorum.create(NewTopic("in-the-middle", 50, 3))
            await ingest.batches("offsets", done + 2)
        await quorum.create(NewTopic("while-nobody-reads", 5, 3))
        # One that was killed counts as a voter that would be left once it is back.
        await quorum.everybody_fetches()
        identity = await identity_of_a_follower(quorum)
        async with ingest.running("--every-s", "1"):
            done = ingest.count("commits")
            await quorum.cli("metadata-quorum", "remove-controller", *identity)
            await quorum.create(NewTopic("of-two", 2, 3))
            await quorum.everybody_fetches()
            await quorum.cli("metadata-quorum", "add-controller", *identity)
            await quorum.create(NewTopic("of-three", 2, 3))
            await ingest.batches("commits", done + 1)
        high_watermark = await quorum.assert_logs_agree()
        async with ingest.running() as process, asyncio.timeout(DEADLINE_S):
            assert await process.wait() == 0, ingest.said()
        directory = next(iter(quorum.nodes.values())).metadata_dir
        on_disk = rows(directory, startingOffsets="0", endingOffsets=str(high_watermark))
    stored = spark.read.parquet(str(ingest.output))
    found = {row.offset: (row.day, row.record_type, row.value) for row in stored.collect()}
    counts = Counter(row.offset for row in stored.select("offset").collect())
    assert set(counts.values()) == {1}
    assert sorted(counts) == list(range(max(counts) + 1))
    assert max(counts) >= high_watermark - 1
    expected = {
        row["offset"]: (row["timestamp"].date(), row["record_type"], row["value"])
        for row in on_disk
    }
    assert {offset: found[offset] for offset in expected} == expected
    kinds = {kind for _, kind, _ in expected.values()}
    assert {"LeaderChangeMessage", "VotersRecord", "TopicRecord"} <= kinds
    for day, kind, _ in expected.values():
        assert (ingest.output / f"day={day}" / f"record_type={kind}").is_dir()


async def test_the_log_of_another_quorum_does_not_follow(
    tmp_path: Path, spark: SparkSession
) -> None:
    """As after the first one was installed again, with the same addresses."""
    output = tmp_path / "output"

    def ingest(servers: str) -> int:
        log = spark.readStream.format("kraft").option("bootstrap.servers", servers).load()
        start_ingest(log, str(output), None, every_s=None).awaitTermination()
        return int(spark.read.parquet(str(output)).count())

    async with Quorum(tmp_path / "first", STEADY, controllers=1) as first:
        count = await asyncio.to_thread(ingest, first.bootstrap_servers)
        assert await asyncio.to_thread(ingest, first.bootstrap_servers) >= count > 0
        count = await asyncio.to_thread(ingest, first.bootstrap_servers)
    async with Quorum(tmp_path / "second", STEADY, controllers=1) as second:
        await second.register_brokers()
        await second.create(NewTopic("another", 50, 3))
        words = f"of cluster {first.plan.cluster_id}, and this is that of {second.plan.cluster_id}"
        with pytest.raises(StreamingQueryException, match=words):
            await asyncio.to_thread(ingest, second.bootstrap_servers)
    assert spark.read.parquet(str(output)).count() == count


async def identity_of_a_follower(quorum: Quorum) -> tuple[str, ...]:
    """The flags that name a voter that does not lead."""
    description = await quorum.leader()
    voters = {voter.key.node_id: voter.key for voter in description.voters}
    gone = next(node_id for node_id in quorum.nodes if node_id != description.leader.leader_id)
    node_id, directory_id = str(voters[NodeId(gone)]).split(":")
    return "--controller-id", node_id, "--controller-directory-id", directory_id
