"""The operator's process: its ports."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.autojoin import service
from quorate.autojoin.config import read_config
from quorate.autojoin.reconciler import ClusterError
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    import pytest


class Cluster:
    """An API server that reports to the operator, once it has begun, that it is of no use."""

    def __init__(self, *ports: int) -> None:
        self.ports = ports
        self.reached: list[str] = []

    async def __aenter__(self) -> None:
        for host in (HOST, "::1"):
            for port in self.ports:
                _, writer = await asyncio.open_connection(host, port)
                writer.close()
                self.reached.append(host)
        raise ClusterError("no use")

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""


async def test_health_and_metrics_are_on_both_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet asks the first address of a pod, which may be one of IPv6."""
    health_port, metrics_port = free_ports(2)
    properties = {
        "autojoin.statefulset": "q",
        "health.port": str(health_port),
        "metrics.port": str(metrics_port),
    }
    cluster = Cluster(health_port, metrics_port)

    async def connect() -> Cluster:
        return cluster

    monkeypatch.setattr(service, "connect", connect)
    assert await service._serve(read_config(properties, {}, namespace="ns"), None) == 1
    assert cluster.reached == [HOST, HOST, "::1", "::1"]
