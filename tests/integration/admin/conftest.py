"""A scripted quorum, and a sidecar that serves the admin API beside its node 1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc.aio
import pytest

from quorate.admin.membership import MembershipClient
from quorate.admin.service import Sidecar
from quorate.records.ids import NodeId
from quorate.rpc.admin_server import AdminServer, AdminService
from quorate.rpc.controller_client import ControllerClient
from quorate.rpc.gen.admin.v1 import admin_pb2_grpc
from tests.integration.admin.scripted import ScriptedQuorum
from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from quorate.rpc.admin_server import CallRecord

TIMEOUT_MS = 20_000


@dataclass(slots=True)
class Beside:
    """A sidecar's client, stub and records."""

    membership: MembershipClient
    stub: admin_pb2_grpc.AdminAsyncStub
    records: list[CallRecord] = field(default_factory=list)


@pytest.fixture
async def quorum() -> AsyncIterator[ScriptedQuorum]:
    """Three voters, of which node 1 leads."""
    async with ScriptedQuorum() as running:
        yield running


@pytest.fixture
async def beside(quorum: ScriptedQuorum) -> AsyncIterator[Beside]:
    """A sidecar that knows node 1 alone."""
    servers = [quorum.addresses[1]]
    async with ControllerClient(servers) as client:
        membership = MembershipClient(client, servers)
        records: list[CallRecord] = []
        sidecar = Sidecar(membership, NodeId(1), TIMEOUT_MS)
        server = AdminServer(AdminService(sidecar, records.append), has_reflection=False)
        port = server.bind(HOST, 0)
        await server.start()
        async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
            yield Beside(membership, admin_pb2_grpc.AdminStub(channel), records)
        await server.stop(0)
