"""The admin sidecar behind mutual TLS calls controllers for whoever calls it."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest

from quorate.rpc.channels import open_channel
from quorate.rpc.gen.admin.v1 import admin_pb2, admin_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2
from quorate.rpc.refusals import refusal_of
from tests.integration.quorum import DEADLINE_S
from tests.integration.security.secure_quorum import SecureQuorum
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from pathlib import Path

    from tests.integration.security.stores import Stores

DESCRIBE = raft_pb2.DescribeQuorumRequest()
REMOVE = admin_pb2.RemoveRaftVoterRequest(voter_id=1)


@asynccontextmanager
async def sidecar_of(quorum: SecureQuorum, folder: Path) -> AsyncIterator[int]:
    """A running `quorate admin` with the certificate `admin`; its port."""
    (port,) = free_ports(1)
    properties = {
        "node.id": 1,
        "admin.listener": f"{HOST}:{port}",
        "admin.controller": quorum.bootstrap_servers,
        "health.port": -1,
        "metrics.port": -1,
        "security.protocol": "SSL",
        "ssl.keystore.location": quorum.stores.keystore("admin"),
        "ssl.truststore.location": quorum.stores.truststore,
        "ssl.client.auth": "required",
    }
    path = folder / "admin.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.cli.main", "admin", "--config", str(path)),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            while b"listens on port" not in (line := await process.stderr.readline()):
                assert line, "the sidecar ended"
        yield port
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE_S):
            said = (await process.communicate())[1].decode()
        assert process.returncode == 0
        assert 'principal="User:CN=root"' in said
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def refused(call: Awaitable[object]) -> str:
    """How a call was refused, on one line."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    refusal = refusal_of(raised.value)
    assert refusal is not None
    return f"{refusal.code.name} {refusal.reason}: {refusal.message}"


async def test_controllers_judge_whoever_called_the_sidecar(tmp_path: Path, stores: Stores) -> None:
    async with (
        SecureQuorum(tmp_path / "quorum", stores, controllers=1) as quorum,
        sidecar_of(quorum, tmp_path) as port,
        open_channel(HOST, port, tls=stores.files("viewer")) as viewer,
        open_channel(HOST, port, tls=stores.files("stranger")) as stranger,
        open_channel(HOST, port, tls=stores.files("root")) as root,
    ):
        stub = admin_pb2_grpc.AdminStub(viewer)
        answer = await stub.DescribeQuorum(DESCRIBE, timeout=DEADLINE_S)
        assert [voter.replica_id for voter in answer.current_voters] == [1]
        denied = "PERMISSION_DENIED CLUSTER_AUTHORIZATION_FAILED"
        said = await refused(stub.RemoveRaftVoter(REMOVE, timeout=DEADLINE_S))
        assert said.startswith(denied)
        assert "User:CN=viewer may not call quorate.raft.v1.Raft/RemoveRaftVoter" in said
        stub = admin_pb2_grpc.AdminStub(stranger)
        said = await refused(stub.DescribeQuorum(DESCRIBE, timeout=DEADLINE_S))
        assert said.startswith(denied)
        assert "User:CN=stranger may not call quorate.raft.v1.Raft/DescribeQuorum" in said
        stub = admin_pb2_grpc.AdminStub(root)
        said = await refused(stub.RemoveRaftVoter(REMOVE, timeout=DEADLINE_S))
        assert said.startswith("FAILED_PRECONDITION LAST_VOTER")
