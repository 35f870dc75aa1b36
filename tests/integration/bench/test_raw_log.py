"""Opaque records over a real socket, in a controller that hosts them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest

from quorate.rpc.channels import open_channel
from quorate.rpc.health import HealthServer
from quorate.server.config import read_config
from quorate.server.node import Node
from tests.bench.gen.raw.v1 import raw_pb2 as pb
from tests.bench.gen.raw.v1 import raw_pb2_grpc
from tests.bench.raw_controller import host_records
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WAIT_S = 60


@asynccontextmanager
async def serving(properties: dict[str, str]) -> AsyncIterator[raw_pb2_grpc.RawLogAsyncStub]:
    """A node that leads and takes records."""
    config = read_config(properties, {})
    node = Node(config, HealthServer(chosen()), state_machine_factory=host_records)
    await node.start()
    try:
        async with (
            asyncio.timeout(WAIT_S),
            open_channel("127.0.0.1", config.peers.bound.port, transport=chosen()) as one,
        ):
            while not node.metrics()["active_controller"]:  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0.01)
            yield raw_pb2_grpc.RawLogStub(one)
    finally:
        await node.stop()


async def test_a_stream_acknowledges_what_is_committed(properties: dict[str, str]) -> None:
    async with serving(properties) as raw:
        call = raw.Append()
        for sequence in (1, 2, 3):
            await call.write(pb.AppendRequest(sequence=sequence, records=[b"x" * sequence] * 2))
        await call.done_writing()
        answers = [answer async for answer in call]
        assert answers[-1].last_sequence == 3
        first = (await raw.AppendOnce(pb.AppendRequest(sequence=9, records=[b"y"]))).high_watermark
        assert first == answers[-1].high_watermark + 1


async def test_a_load_inside_the_leader_tells_its_latencies(properties: dict[str, str]) -> None:
    async with serving(properties) as raw:
        request = pb.RunLoadRequest(in_flight=8, record_bytes=10, duration_ms=50)
        answer = await raw.RunLoad(request)
        assert answer.appends >= 8
        assert list(answer.latencies_us) == sorted(answer.latencies_us)
        after = await raw.AppendOnce(pb.AppendRequest(records=[b"y"]))
        assert after.high_watermark > answer.appends


async def test_no_records_are_an_error_that_names_the_field(properties: dict[str, str]) -> None:
    async with serving(properties) as raw:
        with pytest.raises(grpc.aio.AioRpcError) as once:
            await raw.AppendOnce(pb.AppendRequest())
        call = raw.Append()
        await call.write(pb.AppendRequest(sequence=1))
        with pytest.raises(grpc.aio.AioRpcError) as stream:
            await call.read()
        for refused in (once.value, stream.value):
            assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "records: send 1 or more" in (refused.details() or "")
