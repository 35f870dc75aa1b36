"""A sidecar that serves the admin API beside node 1 of a scripted quorum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc.aio
import pytest

from quorate.admin.service import Sidecar
from quorate.records.ids import NodeId
from quorate.rpc.admin_server import AdminServer, AdminService
from quorate.rpc.gen.admin.v1 import admin_pb2_grpc
from tests.integration.client.conftest import membership, quorum
from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from quorate.client.membership import MembershipClient
    from quorate.rpc.admin_server import CallRecord

__all__ = ["beside", "membership", "quorum"]

TIMEOUT_MS = 20_000


@dataclass(slots=True)
class Beside:
    """A sidecar's stub and records."""

    stub: admin_pb2_grpc.AdminAsyncStub
    records: list[CallRecord] = field(default_factory=list)


@pytest.fixture
async def beside(membership: MembershipClient) -> AsyncIterator[Beside]:
    """A sidecar that knows node 1 alone."""
    records: list[CallRecord] = []
    sidecar = Sidecar(membership, NodeId(1), TIMEOUT_MS)
    server = AdminServer(AdminService(sidecar, records.append), has_reflection=False)
    port = server.bind(HOST, 0)
    await server.start()
    async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
        yield Beside(admin_pb2_grpc.AdminStub(channel), records)
    await server.stop(0)
