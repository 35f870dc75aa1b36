"""The listener of a controller."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from quorate.client.controller_client import ControllerClient
from quorate.raft.messages import ApiVersionsResponse
from quorate.records.errors import ErrorCode
from quorate.records.ids import UUID_BYTES, ClusterId, DirectoryId, NodeId, ReplicaKey
from quorate.rpc.channels import MESSAGE_BYTES_MAX
from quorate.rpc.controller.servicer import ControllerServicer
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from quorate.rpc.listener import GrpcListener
from quorate.rpc.raft.servicer import RaftServicer
from quorate.settings.transport import Transport
from quorate.telemetry.logs import RepeatFilter
from tests.integration.raw_http2 import (
    MAX_CONCURRENT_STREAMS,
    NO_ERROR,
    REFUSED_STREAM,
    RawConnection,
)
from tests.integration.transports import EACH, chosen
from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Callable


def make() -> GrpcListener:
    key = ReplicaKey(NodeId(4), DirectoryId(bytes(UUID_BYTES)))
    who = ApiVersionsResponse(
        error=ErrorCode.NONE,
        cluster_id=ClusterId("c"),
        key=key,
        kraft_version_min=0,
        kraft_version_max=1,
    )
    raft = RaftServicer(None, who, software_version="9")  # type: ignore[arg-type]
    controller = ControllerServicer(None)  # type: ignore[arg-type]
    return GrpcListener.serving((raft, controller), has_reflection=True, transport=chosen())


@EACH
async def test_a_port_is_taken_on_each_address() -> None:
    server = make()
    port = server.bind((HOST, "::1"), 0)
    await server.start()
    try:
        for host in (HOST, "::1"):
            async with ControllerClient(
                [(host, port)], timeout_ms=60_000, transport=chosen()
            ) as client:
                assert (await client.api_versions()).node_id == 4
    finally:
        await server.stop()


async def test_both_services_share_a_port() -> None:
    server = make()
    port = server.bind("127.0.0.1", 0)
    await server.start()
    try:
        async with ControllerClient(
            [("127.0.0.1", port)], timeout_ms=60_000, transport=chosen()
        ) as client:
            versions = await client.api_versions()
    finally:
        await server.stop()
    assert (versions.cluster_id, versions.node_id, versions.software_version) == ("c", 4, "9")


async def test_a_taken_port_is_an_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match=str(port)):
            make().bind("127.0.0.1", port)


async def test_a_message_above_the_limit_is_refused() -> None:
    server = make()
    port = server.bind("127.0.0.1", 0)
    await server.start()
    request = raft_pb2.VoteRequest(cluster_id="c" * (MESSAGE_BYTES_MAX + 1))
    try:
        # The limit of our own channels would already stop it on this side.
        unlimited = (("grpc.max_send_message_length", -1),)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=unlimited) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await raft_pb2_grpc.RaftStub(channel).Vote(request, timeout=60)
    finally:
        await server.stop()
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_calls_that_came_before_the_stop_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A busy loop takes one after another; gRPC would end those that wait without a word."""
    # Under whatever load the calls arrive within this time of each other.
    monkeypatch.setattr("quorate.rpc.listener._QUIET_S", 1.0)
    server = make()
    port = server.bind("127.0.0.1", 0)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask = raft_pb2_grpc.RaftStub(channel).ApiVersions
        await ask(raft_pb2.ApiVersionsRequest(), timeout=60)
        calls = [ask(raft_pb2.ApiVersionsRequest(), timeout=60) for _ in range(100)]
        await asyncio.sleep(0)
        # They arrive while this loop, which is the server's too, is blocked.
        time.sleep(0.2)  # noqa: ASYNC251
        await server.stop(60)
        answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [answer for answer in answers if isinstance(answer, BaseException)] == []


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not happened():  # noqa: ASYNC110 - it happens on the wire
            await asyncio.sleep(0.01)


async def test_one_connection_holds_a_thousand_calls_at_most() -> None:
    server = make()
    port = server.bind("127.0.0.1", 0)
    await server.start()
    async with RawConnection(("127.0.0.1", port), source="127.0.0.1") as client:
        await until(lambda: MAX_CONCURRENT_STREAMS in client.settings)
        assert client.settings[MAX_CONCURRENT_STREAMS] == 1024
        for _ in range(3000):
            client.begin("/quorate.controller.v1.Controller/WriteStream")
        # Ours answers the excess calls before so many are open.
        wanted = {REFUSED_STREAM} if chosen() is Transport.GRPCIO else {NO_ERROR}
        await until(lambda: client.is_closed or not wanted.isdisjoint(client.resets))
    await server.stop()


async def send_noise(channel: grpc.aio.Channel, method: str) -> None:
    if method.endswith(("Fetch", "Stream", "Info")):
        stream: Any = channel.stream_stream(method)(timeout=60)
        await stream.write(b"\xff\xff")
        await stream.read()
    else:
        unary: Any = channel.unary_unary(method)
        await unary(b"\xff\xff", timeout=60)


@pytest.mark.parametrize(
    "method",
    [
        "/quorate.raft.v1.Raft/Vote",
        "/quorate.raft.v1.Raft/Fetch",
        "/quorate.controller.v1.Controller/Write",
        "/quorate.controller.v1.Controller/WriteStream",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ],
)
async def test_what_cannot_be_decoded_is_refused_in_one_line(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = make()
    port = server.bind("127.0.0.1", 0)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            for _ in range(2):
                with pytest.raises(grpc.aio.AioRpcError) as raised:
                    await send_noise(channel, method)
                assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
                assert raised.value.details() == f"these 2 bytes are not a request of {method[1:]}"
    finally:
        await server.stop()
    is_new = RepeatFilter().filter
    written = [record for record in caplog.records if is_new(record)]
    assert len(written) <= 1
    assert not any(record.exc_info for record in caplog.records)
