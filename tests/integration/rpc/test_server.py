"""The listener of a controller."""

from __future__ import annotations

import socket

import grpc
import grpc.aio
import pytest

from quorate.raft.messages import ApiVersionsResponse
from quorate.records.errors import ErrorCode
from quorate.records.ids import UUID_BYTES, ClusterId, DirectoryId, NodeId, ReplicaKey
from quorate.rpc.channels import MESSAGE_BYTES_MAX
from quorate.rpc.controller_client import ControllerClient
from quorate.rpc.controller_server import ControllerService
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from quorate.rpc.raft_server import RaftService
from quorate.rpc.server import ControllerServer


def make() -> ControllerServer:
    key = ReplicaKey(NodeId(4), DirectoryId(bytes(UUID_BYTES)))
    who = ApiVersionsResponse(ErrorCode.NONE, ClusterId("c"), key, 0, 1)
    raft = RaftService(None, who, software_version="9")  # type: ignore[arg-type]
    return ControllerServer(raft, ControllerService(None), has_reflection=True)  # type: ignore[arg-type]


async def test_both_services_share_a_port() -> None:
    server = make()
    port = server.bind("127.0.0.1", 0)
    await server.start()
    try:
        async with ControllerClient([("127.0.0.1", port)], timeout_ms=20_000) as client:
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
                await raft_pb2_grpc.RaftStub(channel).Vote(request, timeout=20)
    finally:
        await server.stop()
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
