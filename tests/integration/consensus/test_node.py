"""One node with its sockets: served, measured, handed over, closed."""

from __future__ import annotations

import asyncio
import socket

import pytest

from quorate.consensus.config import read_config
from quorate.consensus.driver import Ending
from quorate.consensus.node import Node, read_bootstrap
from quorate.controller.requests import ListTopics
from quorate.rpc.controller_client import ControllerClient
from quorate.rpc.health import HealthServer

WAIT_S = 20


async def test_a_node_serves_until_it_is_asked_to_stop(properties: dict[str, str]) -> None:
    config = read_config(properties, {})
    health = HealthServer()
    await health.start("127.0.0.1", config.health_port)
    node = Node(config, health)
    await node.start()
    try:
        server = (config.listener.host, config.listener.port)
        async with ControllerClient([server], timeout_ms=WAIT_S * 1000) as client:
            described = await client.describe_quorum()
            assert described.leader.leader_id == 1
            await client.read(ListTopics())
        values = node.metrics()
        assert (values["is_leader"], values["epoch"], values["topics"]) == (1.0, 1, 0)
        node.request_shutdown()
        await asyncio.wait_for(node.ended.wait(), WAIT_S)
        assert node.ending is Ending.STOPPED
    finally:
        await node.stop()
        await health.stop()


async def test_a_node_that_found_damage_is_followed_by_another(
    properties: dict[str, str],
) -> None:
    config = read_config(properties, {})
    health = HealthServer()
    await health.start("127.0.0.1", config.health_port)
    first, second = Node(config, health), Node(config, health)
    await first.start()
    first.driver.damaged("a batch does not check")
    await asyncio.wait_for(first.ended.wait(), WAIT_S)
    assert first.ending is Ending.DAMAGED
    await first.stop()
    await second.start()
    try:
        server = (config.listener.host, config.listener.port)
        async with ControllerClient([server], timeout_ms=WAIT_S * 1000) as client:
            assert (await client.describe_quorum()).leader.leader_id == 1
    finally:
        await second.stop()
        await health.stop()


async def test_a_taken_port_is_known_before_the_core_starts(properties: dict[str, str]) -> None:
    config = read_config(properties, {})
    node = Node(config, HealthServer())
    with (
        socket.create_server(("127.0.0.1", config.listener.port)),
        pytest.raises(RuntimeError, match=str(config.listener.port)),
    ):
        await node.start()


def test_a_directory_without_bootstrap_records_has_none(properties: dict[str, str]) -> None:
    assert read_bootstrap(properties["metadata.log.dir"]) == ()
    assert read_bootstrap("/nowhere") == ()
