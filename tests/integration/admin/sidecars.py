"""Sidecars as separate processes, next to controllers that are processes, too."""

from __future__ import annotations

import asyncio
import signal
import sys
import urllib.request
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from quorate.rpc.channels import open_channel
from quorate.rpc.gen.admin.v1 import admin_pb2_grpc
from tests.integration.quorum import DEADLINE_S
from tests.integration.transports import chosen
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from quorate.rpc.security.tls_files import TlsFiles
    from tests.integration.quorum import Quorum


@dataclass(slots=True)
class Sidecar:
    """A running `quorate admin`, and a stub to it."""

    process: Process
    port: int
    stub: admin_pb2_grpc.AdminAsyncStub
    health_port: int
    metrics_port: int

    async def health(self, service: str) -> int:
        async with grpc.aio.insecure_channel(f"{HOST}:{self.health_port}") as channel:
            request = health_pb2.HealthCheckRequest(service=service)
            answer = await health_pb2_grpc.HealthStub(channel).Check(request)
        status: int = answer.status
        return status

    async def metrics(self) -> str:
        url = f"http://{HOST}:{self.metrics_port}/metrics"
        return await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())

    @asynccontextmanager
    async def called_as(self, tls: TlsFiles | None) -> AsyncIterator[admin_pb2_grpc.AdminAsyncStub]:
        """A stub on a channel of its own."""
        async with open_channel(HOST, self.port, tls=tls, transport=chosen()) as channel:
            yield admin_pb2_grpc.AdminStub(channel)

    async def line(self, words: str) -> str:
        """The next line of its log that holds these words."""
        assert self.process.stderr is not None
        async with asyncio.timeout(DEADLINE_S):
            while words not in (line := (await self.process.stderr.readline()).decode()):
                assert line, f"the sidecar ended without {words!r}"
        return line


async def spawn(path: Path) -> Process:
    """Start a sidecar; its stderr is a pipe."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.cli.main", "admin", "--config", str(path)),
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def sidecar_of(
    quorum: Quorum, node_id: int, folder: Path, overrides: Mapping[str, str] | None = None
) -> AsyncIterator[Sidecar]:
    """Start one next to a controller; it has to end with status 0 on SIGTERM."""
    port, health_port, metrics_port = free_ports(3)
    host, controller = quorum.nodes[node_id].address
    properties = {
        "node.id": str(node_id),
        "admin.listener": f"{HOST}:{port}",
        "admin.controller": f"{host}:{controller}",
        "health.port": str(health_port),
        "metrics.port": str(metrics_port),
        "controller.quorum.bootstrap.servers": quorum.bootstrap_servers,
    } | dict(overrides or {})
    path = folder / f"admin-{node_id}.properties"
    lines = "".join(f"{key}={value}\n" for key, value in properties.items())
    path.write_text(lines, encoding="utf-8")
    process = await spawn(path)
    try:
        async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
            stub = admin_pb2_grpc.AdminStub(channel)
            sidecar = Sidecar(process, port, stub, health_port, metrics_port)
            await sidecar.line("listens on port")
            yield sidecar
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE_S):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
