"""Appends over a real socket, to a log that the test moves: what is acknowledged, and when."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest

from quorate.rpc.channels import MESSAGE_BYTES_MAX, make_server, open_channel
from quorate.rpc.service import add_service
from tests.bench.gen.raw.v1 import raw_pb2 as pb
from tests.bench.gen.raw.v1 import raw_pb2_grpc
from tests.bench.raw_servicer import RawLogError, RawService, Waiter
from tests.integration.rpc.conftest import HOST, WAIT_S
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class LogByHand:
    """Counts what it is given; the test commits."""

    end: int = 0
    leads: bool = True
    waiters: list[Waiter] = field(default_factory=list)
    appended: asyncio.Queue[int] = field(default_factory=asyncio.Queue)

    def append(self, values: tuple[bytes, ...]) -> int:
        if not self.leads:
            raise RawLogError("ask another", is_here=False)
        self.end += len(values)
        self.appended.put_nowait(self.end)
        return self.end

    def watch(self, waiter: Waiter) -> None:
        self.waiters.append(waiter)

    def unwatch(self, waiter: Waiter) -> None:
        self.waiters.remove(waiter)

    async def until(self, end: int) -> None:
        """Return when so many records were appended."""
        while await asyncio.wait_for(self.appended.get(), WAIT_S) < end:
            pass

    def commit(self, high_watermark: int) -> None:
        for waiter in tuple(self.waiters):
            waiter.committed(high_watermark)


@pytest.fixture
async def log() -> LogByHand:
    return LogByHand()


@pytest.fixture
async def raw(log: LogByHand) -> AsyncIterator[raw_pb2_grpc.RawLogAsyncStub]:
    server = make_server((), received_bytes_max=MESSAGE_BYTES_MAX, transport=chosen())
    add_service(RawService(log), server)
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    async with open_channel(HOST, port, transport=chosen()) as channel:
        yield raw_pb2_grpc.RawLogStub(channel)
    await server.stop(None)


async def test_one_answer_acknowledges_all_that_a_commit_covers(
    log: LogByHand, raw: raw_pb2_grpc.RawLogAsyncStub
) -> None:
    call = raw.Append()
    for sequence in range(1, 5):
        await call.write(pb.AppendRequest(sequence=sequence, records=[b"x", b"y"]))
    await log.until(8)
    log.commit(5)
    assert await call.read() == pb.AppendResponse(last_sequence=2, high_watermark=5)
    log.commit(8)
    assert await call.read() == pb.AppendResponse(last_sequence=4, high_watermark=8)
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert log.waiters == []


async def test_a_lost_leadership_ends_what_waits_as_unavailable(
    log: LogByHand, raw: raw_pb2_grpc.RawLogAsyncStub
) -> None:
    stream = raw.Append()
    await stream.write(pb.AppendRequest(sequence=1, records=[b"x"]))
    once = raw.AppendOnce(pb.AppendRequest(records=[b"y"]))
    load = raw.RunLoad(pb.RunLoadRequest(in_flight=1, record_bytes=1, duration_ms=1))
    once_result, load_result = asyncio.ensure_future(once), asyncio.ensure_future(load)
    await log.until(3)
    for waiter in tuple(log.waiters):
        waiter.lost()
    for waiting in (stream.read(), once_result, load_result):
        with pytest.raises(grpc.aio.AioRpcError, match="lost its leadership") as refused:
            await waiting
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_who_does_not_lead_takes_nothing(
    log: LogByHand, raw: raw_pb2_grpc.RawLogAsyncStub
) -> None:
    log.leads = False
    with pytest.raises(grpc.aio.AioRpcError, match="ask another"):
        await raw.AppendOnce(pb.AppendRequest(records=[b"y"]))


async def test_a_stream_is_read_no_further_than_there_is_room(
    log: LogByHand, raw: raw_pb2_grpc.RawLogAsyncStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.bench.raw_servicer.BYTES_IN_FLIGHT_MAX", 3000)
    call = raw.Append()
    for sequence in range(1, 11):
        await call.write(pb.AppendRequest(sequence=sequence, records=[bytes(1000)]))
    for committed in range(1, 8):
        await log.until(committed + 2)
        # A server that answers has had a turn for what lies in the socket, too.
        log.commit(committed)
        answer = await call.read()
        assert isinstance(answer, pb.AppendResponse)
        assert answer.last_sequence == committed
        assert log.end <= committed + 3
    call.cancel()
