"""The listener of a controller."""

from __future__ import annotations

import socket

import pytest

from quorate.raft.messages import ApiVersionsResponse
from quorate.records.errors import ErrorCode
from quorate.records.ids import UUID_BYTES, ClusterId, DirectoryId, NodeId, ReplicaKey
from quorate.rpc.controller_client import ControllerClient
from quorate.rpc.controller_server import ControllerService
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
