"""A scripted quorum, a client of its membership, and a sidecar that serves the admin API."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc.aio
import pytest

from quorate.admin.service import Sidecar
from quorate.client.controller_client import ControllerClient
from quorate.client.membership_client import MembershipClient
from quorate.records.ids import NodeId
from quorate.rpc.admin.servicer import AdminServicer
from quorate.rpc.gen.admin.v1 import admin_pb2_grpc
from quorate.rpc.listener import GrpcListener
from tests.integration.client.scripted import ScriptedQuorum
from tests.integration.rpc.conftest import another, served
from tests.integration.transports import chosen
from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from quorate.admin.events import Events
    from quorate.admin.statefulset import StopIntentReader
    from quorate.rpc.admin.servicer import CallRecord

__all__ = ["another", "beside", "membership", "quorum", "served"]

TIMEOUT_MS = 60_000


@dataclass(slots=True)
class Beside:
    """A sidecar, a stub to it, and its records."""

    stub: admin_pb2_grpc.AdminAsyncStub
    server: GrpcListener
    address: tuple[str, int]
    records: list[CallRecord] = field(default_factory=list)


@pytest.fixture
async def quorum() -> AsyncIterator[ScriptedQuorum]:
    """Three voters, of which node 1 leads."""
    async with ScriptedQuorum() as running:
        yield running


@pytest.fixture
async def membership(quorum: ScriptedQuorum) -> AsyncIterator[MembershipClient]:
    """Knows node 1 alone."""
    servers = [quorum.addresses[1]]
    async with ControllerClient(servers, transport=chosen()) as client:
        yield MembershipClient(client)


@asynccontextmanager
async def sidecar(
    membership: MembershipClient,
    timeout_ms: int = TIMEOUT_MS,
    pod: StopIntentReader | None = None,
    events: Events | None = None,
) -> AsyncIterator[Beside]:
    """One that serves the admin API. A caller that names no time of its own waits so long."""
    records: list[CallRecord] = []
    handler = Sidecar(membership, NodeId(1), timeout_ms, pod, events)
    server = GrpcListener.serving(
        (AdminServicer(handler, records.append),), has_reflection=False, transport=chosen()
    )
    port = server.bind(HOST, 0)
    await server.start()
    async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
        yield Beside(admin_pb2_grpc.AdminStub(channel), server, (HOST, port), records)
    await server.stop(0)


@pytest.fixture
async def beside(membership: MembershipClient) -> AsyncIterator[Beside]:
    """A sidecar that knows node 1 alone."""
    async with sidecar(membership) as running:
        yield running
