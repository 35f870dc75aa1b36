"""A stream from three real controllers: every committed record exactly once, whatever happens."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from collections import Counter
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.controller.requests import NewTopic
from quorate.records.ids import NodeId
from tests.integration.quorum import Quorum
from tests.pipeline.source.logs import rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SCRIPT = Path(__file__).with_name("stream_to_parquet.py")
# Three JVMs start, one after the other, on whatever machine this is.
DEADLINE_S = 600.0


@asynccontextmanager
async def query(arguments: dict[str, Any], log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A query in a session of its own, killed with all that it started."""
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(SCRIPT),
            json.dumps(arguments),
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def said(log: Path) -> str:
    """The last lines of the query."""
    return log.read_text(errors="replace")[-4000:]


def batch_count(checkpoint: Path) -> int:
    """How many batches the query has committed."""
    return len(list((checkpoint / "commits").glob("[0-9]*")))


async def batches_in(checkpoint: Path, count: int, log: Path) -> None:
    """Wait until the query has committed that many batches."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while batch_count(checkpoint) < count:  # noqa: ASYNC110 - another process writes them
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"{batch_count(checkpoint)} of {count} batches: {said(log)}") from None


async def test_each_committed_record_comes_exactly_once(tmp_path: Path) -> None:
    sink, checkpoint, log = tmp_path / "sink", tmp_path / "checkpoint", tmp_path / "query.log"
    async with Quorum(tmp_path / "quorum") as quorum:
        await quorum.register_brokers()
        options = {"bootstrap.servers": quorum.bootstrap_servers, "maxOffsetsPerTrigger": "20"}
        arguments = {"options": options, "sink": str(sink), "checkpoint": str(checkpoint)}
        await quorum.create(NewTopic("before", 3, 3))
        async with query(arguments, log):
            await batches_in(checkpoint, 1, log)
            leader = await quorum.leader()
            assert leader.leader.leader_id is not None
            await quorum.kill(leader.leader.leader_id)
            await quorum.create(NewTopic("without-its-leader", 5, 3))
            await quorum.start(leader.leader.leader_id)
            done = batch_count(checkpoint)
            await batches_in(checkpoint, done + 1, log)
        await quorum.create(NewTopic("while-nobody-reads", 5, 3))
        current = await quorum.leader_id()
        gone = next(node_id for node_id in quorum.nodes if node_id != current)
        voters = {voter.key.node_id: voter.key for voter in (await quorum.leader()).voters}
        key = str(voters[NodeId(gone)]).split(":")
        identity = ("--controller-id", key[0], "--controller-directory-id", key[1])
        async with query(arguments, log):
            done = batch_count(checkpoint)
            await quorum.cli("metadata-quorum", "remove-controller", *identity)
            await quorum.create(NewTopic("of-two", 2, 3))
            await quorum.cli("metadata-quorum", "add-controller", *identity)
            await quorum.create(NewTopic("of-three", 2, 3))
            await batches_in(checkpoint, done + 1, log)
        high_watermark = await quorum.assert_logs_agree()
        result = tmp_path / "result.json"
        async with query(arguments | {"result": str(result)}, log) as process:
            async with asyncio.timeout(DEADLINE_S):
                status = await process.wait()
            assert status == 0, said(log)
        directory = next(iter(quorum.nodes.values())).metadata_dir
        on_disk = rows(directory, startingOffsets="0", endingOffsets=str(high_watermark))
    found = json.loads(await asyncio.to_thread(result.read_text))
    counts = Counter(offset for offset, _, _ in found)
    assert set(counts.values()) == {1}
    assert sorted(counts) == list(range(max(counts) + 1))
    assert max(counts) >= high_watermark - 1
    expected = [
        [row["offset"], row["record_type"], base64.b64encode(row["value"]).decode()]
        for row in on_disk
    ]
    assert sorted(found)[: len(expected)] == expected
    assert {"LeaderChangeMessage", "VotersRecord", "TopicRecord"} <= {name for _, name, _ in found}
