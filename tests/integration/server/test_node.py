"""One node with its sockets: served, measured, drained, closed."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import socket
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import ListTopics
from quorate.raft.messages import ElectionState
from quorate.records.ids import UUID_BYTES, ClusterId, DirectoryId, Epoch, NodeId, ReplicaKey
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.rpc.channels import open_channel
from quorate.rpc.health import LIVENESS, READINESS, STARTUP, HealthServer
from quorate.server import no_leader_warning
from quorate.server.config import read_config
from quorate.server.driver.raft_driver import ExitReason
from quorate.server.node import Node
from quorate.settings.properties import ConfigError
from quorate.storage import layout
from quorate.storage.file_system import OsFileSystem
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.quorum_state import write_quorum_state
from tests.integration.transports import EACH, chosen
from tests.ports import HOST, free_ports
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from quorate.server.config import ControllerConfig

pytestmark = EACH

WAIT_S = 60


async def test_a_node_serves_until_it_is_asked_to_stop(properties: dict[str, str]) -> None:
    config = read_config(properties, {})
    health = HealthServer(chosen())
    await health.start(HOST, config.health_port)
    node = Node(config, health)
    await node.start()
    try:
        server = (config.peers.bound.host, config.peers.bound.port)
        async with ControllerClient(
            [server], timeout_ms=WAIT_S * 1000, transport=chosen()
        ) as client:
            described = await client.describe_quorum()
            assert described.leader.leader_id == 1
            await client.read(ListTopics())
        values = node.metrics()
        states, epoch = values["current_state"], values["current_epoch"]
        assert isinstance(states, dict)
        assert (states["leader"], epoch, values["global_topics"]) == (1.0, 1, 0)
        node.request_shutdown()
        await asyncio.wait_for(node.ended.wait(), WAIT_S)
        assert node.exit_reason is ExitReason.STOPPED
    finally:
        await node.stop()
        await health.stop()


async def test_a_node_that_found_damage_is_followed_by_another(
    properties: dict[str, str],
) -> None:
    config = read_config(properties, {})
    health = HealthServer(chosen())
    await health.start(HOST, config.health_port)
    first, second = Node(config, health), Node(config, health)
    await first.start()
    first.driver.on_damage("a batch does not check")
    await asyncio.wait_for(first.ended.wait(), WAIT_S)
    assert first.exit_reason is ExitReason.DAMAGED
    await first.stop()
    await second.start()
    try:
        server = (config.peers.bound.host, config.peers.bound.port)
        async with ControllerClient(
            [server], timeout_ms=WAIT_S * 1000, transport=chosen()
        ) as client:
            assert (await client.describe_quorum()).leader.leader_id == 1
    finally:
        await second.stop()
        await health.stop()


async def test_a_taken_port_is_known_before_the_core_starts(properties: dict[str, str]) -> None:
    config = read_config(properties, {})
    node = Node(config, HealthServer(chosen()))
    with (
        socket.create_server(("127.0.0.1", config.peers.bound.port)),
        pytest.raises(ConfigError, match=f"listeners: .*{config.peers.bound.port}"),
    ):
        await node.start()


@asynccontextmanager
async def running(config: ControllerConfig) -> AsyncIterator[Node]:
    """A node whose health can be asked."""
    health = HealthServer(chosen())
    await health.start(HOST, config.health_port)
    node = Node(config, health)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()
        await health.stop()


async def until(config: ControllerConfig, service: str) -> None:
    """Return when the service is reported to be serving."""
    async with open_channel(HOST, config.health_port, transport=chosen()) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        async for answer in stub.Watch(health_pb2.HealthCheckRequest(service=service)):
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                return


async def is_serving(config: ControllerConfig, service: str) -> bool:
    async with open_channel(HOST, config.health_port, transport=chosen()) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


@pytest.mark.parametrize("epoch", [0, 5])
async def test_a_voter_without_a_leader_has_started_and_is_not_ready(
    properties: dict[str, str], tmp_path: Path, epoch: int
) -> None:
    ports = [int(properties["listeners"].rpartition(":")[2]), *free_ports(2)]
    quorum = VoterSet(
        tuple(
            Voter(
                ReplicaKey(NodeId(node), DirectoryId(bytes([node]) * UUID_BYTES)),
                (Endpoint("GRPC", HOST, port),),
            )
            for node, port in enumerate(ports, start=1)
        )
    )
    meta = MetaProperties(NodeId(1), ClusterId("cluster"), DirectoryId(bytes([1]) * UUID_BYTES))
    directory = str(tmp_path / "one of three")
    formatting = Formatting(meta=meta, records=(), voters=quorum)
    format_directory(OsFileSystem(), directory, formatting, timestamp_ms=0)
    if epoch:
        path = f"{directory}/{layout.LOG_DIR}/{layout.QUORUM_STATE}"
        state = ElectionState(Epoch(epoch))
        write_quorum_state(OsFileSystem(), path, state, kraft_version=1, voters=quorum)
    config = read_config(properties | {"metadata.log.dir": directory}, {})
    async with running(config):
        await asyncio.wait_for(until(config, STARTUP), WAIT_S)
        assert await is_serving(config, LIVENESS)
        assert not await is_serving(config, READINESS)


async def test_a_node_without_a_leader_says_why(
    properties: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its servers are a port where no process listens, and a name that does not resolve."""
    monkeypatch.setattr(no_leader_warning, "FIRST_AFTER_S", 0.0)
    monkeypatch.setattr(no_leader_warning, "EVERY_S", 0.0)
    (closed,) = free_ports(1)
    servers = f"{HOST}:{closed},nowhere.invalid:9094"
    directory = str(tmp_path / "observer")
    meta = MetaProperties(NodeId(2), ClusterId("cluster"), DirectoryId(b"e" * UUID_BYTES))
    format_directory(OsFileSystem(), directory, Formatting(meta=meta, records=()), timestamp_ms=0)
    own = {
        "node.id": "2",
        "metadata.log.dir": directory,
        "controller.quorum.bootstrap.servers": servers,
    }
    async with running(read_config(properties | own, {})):
        refused = f"{HOST}:{closed} (bootstrap server): connection refused"
        unresolved = "nowhere.invalid cannot be resolved"
        await eventually(lambda: refused in caplog.text and unresolved in caplog.text)
    assert "no leader is known in epoch 0" in caplog.text
    # asyncio reports futures whose failure was not taken, once they are collected.
    gc.collect()
    assert "never retrieved" not in caplog.text


FOREIGN = "of cluster cluster, not another controller of cluster other"


async def test_one_that_hears_of_another_cluster_alone_warns_and_is_not_ready(
    properties: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = read_config(properties, {})
    directory = str(tmp_path / "observer")
    meta = MetaProperties(NodeId(2), ClusterId("other"), DirectoryId(b"e" * UUID_BYTES))
    format_directory(OsFileSystem(), directory, Formatting(meta=meta, records=()), timestamp_ms=0)
    port, health_port = free_ports(2)
    own = {
        "node.id": "2",
        "metadata.log.dir": directory,
        "listeners": f"GRPC://{HOST}:{port}",
        "health.port": str(health_port),
        "controller.quorum.bootstrap.servers": f"{HOST}:{config.peers.bound.port}",
    }
    other = read_config(properties | own, {})
    async with running(config), running(other):
        await asyncio.wait_for(until(config, READINESS), WAIT_S)
        await eventually(lambda: any(FOREIGN in warning for warning in warnings(caplog)))
        assert not await is_serving(other, READINESS)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.getMessage() for line in caplog.records if line.levelno == logging.WARNING]


async def test_a_single_voter_without_space_goes_on_leading(properties: dict[str, str]) -> None:
    no_disk_has = str(1 << 60)
    config = read_config(properties | {"metadata.log.free.bytes.min": no_disk_has}, {})
    async with running(config) as node:
        await asyncio.wait_for(until(config, READINESS), WAIT_S)
        node._looks.free_space_monitor.check()
        node._looks.free_space_monitor.check()
        server = (config.peers.bound.host, config.peers.bound.port)
        async with ControllerClient(
            [server], timeout_ms=WAIT_S * 1000, transport=chosen()
        ) as client:
            described = await client.describe_quorum()
        assert (described.leader.leader_id, described.leader.epoch) == (1, 1)


async def test_who_does_not_believe_its_leader_is_not_ready(
    properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule `leader_contradiction`; what the core does not believe is tested with it."""
    hears = [True]
    monkeypatch.setattr("quorate.raft.core.RaftCore.has_live_leader", property(lambda _: hears[0]))
    config = read_config(properties, {})
    async with running(config) as node:
        await asyncio.wait_for(until(config, READINESS), WAIT_S)
        hears[0] = False
        await eventually(lambda: node.metrics()["is_ready"] == 0.0)
        assert not await is_serving(config, READINESS)
        assert await is_serving(config, LIVENESS)
        hears[0] = True
        await asyncio.wait_for(until(config, READINESS), WAIT_S)


async def test_room_on_a_full_disk_is_measured_on(
    properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator who makes room can read the free space."""
    monkeypatch.setattr("quorate.server.node._TICK_S", 0.01)
    config = read_config(properties, {})
    async with running(config) as node:
        await asyncio.wait_for(until(config, READINESS), WAIT_S)
        node.driver.fail(OSError(errno.ENOSPC, "no space"))
        await asyncio.wait_for(node.ended.wait(), WAIT_S)
        assert node.exit_reason is ExitReason.DISK_FAILED
        for free_bytes in (0, 1 << 40):
            seen = SimpleNamespace(free=free_bytes)
            monkeypatch.setattr("shutil.disk_usage", Mock(return_value=seen))
            await eventually(partial(measures, node, free_bytes))


def measures(node: Node, free_bytes: int) -> bool:
    return node.metrics()["disk_free_bytes"] == free_bytes


async def test_a_member_of_long_standing_starts_without_its_bootstrap_records(
    properties: dict[str, str],
) -> None:
    config = read_config(properties, {})
    async with running(config) as node:
        # It is ready before the bootstrap records are in its log.
        await eventually(lambda: node.driver.store.log.has_data)
    (Path(properties["metadata.log.dir"]) / "bootstrap.checkpoint").write_bytes(b"\0" * 100)
    async with running(config):
        await asyncio.wait_for(until(config, READINESS), WAIT_S)
