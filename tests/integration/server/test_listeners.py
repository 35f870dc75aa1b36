"""Several listeners of one controller: opened together, closed together."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import ListTopics
from quorate.rpc.health import HealthServer
from quorate.server.config import read_config
from quorate.server.node import Node
from quorate.settings.properties import ConfigError
from tests.integration.transports import EACH, chosen
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from quorate.server.config import ControllerConfig

pytestmark = EACH

WAIT_S = 60


@pytest.fixture
def config(properties: dict[str, str]) -> ControllerConfig:
    """A controller with a listener for its peers and one for this machine."""
    (port,) = free_ports(1)
    listeners = f"{properties['listeners']},LOCAL://{HOST}:{port}"
    return read_config(
        properties
        | {
            "listeners": listeners,
            "controller.listener.names": "GRPC,LOCAL",
            "listener.security.protocol.map": "LOCAL:GRPC",
        },
        {},
    )


@asynccontextmanager
async def running(config: ControllerConfig) -> AsyncIterator[Node]:
    node = Node(config, HealthServer(chosen()))
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def test_a_listener_serves_on_all_addresses_of_its_host(config: ControllerConfig) -> None:
    hosts = (HOST, "127.77.0.2")
    config = replace(
        config, listeners=tuple(replace(each, addresses=hosts) for each in config.listeners)
    )
    async with running(config):
        for listener in config.listeners:
            for host in hosts:
                async with ControllerClient(
                    [(host, listener.bound.port)], timeout_ms=WAIT_S * 1000, transport=chosen()
                ) as client:
                    await client.read(ListTopics())


def addresses(config: ControllerConfig) -> list[tuple[str, int]]:
    return [(each.bound.host, each.bound.port) for each in config.listeners]


async def test_all_listeners_serve_the_same_and_tell_of_their_own_address_first(
    config: ControllerConfig,
) -> None:
    peers, local = config.endpoints
    async with running(config):
        for server, seen in zip(addresses(config), ((peers, local), (local, peers)), strict=True):
            async with ControllerClient(
                [server], timeout_ms=WAIT_S * 1000, transport=chosen()
            ) as client:
                await client.read(ListTopics())
                described = await client.describe_quorum()
                assert described.leader.endpoints == seen
                # An entry older than this listener is corrected by the first leader.
                assert [state.endpoints for state in described.voters] == [seen]


async def test_a_port_that_is_taken_leaves_no_other_open(config: ControllerConfig) -> None:
    (_, peers), (_, local) = addresses(config)
    node = Node(config, HealthServer(chosen()))
    with (
        socket.create_server((HOST, local)),
        pytest.raises(ConfigError, match=f"listeners: .*{local}"),
    ):
        await node.start()
    socket.create_server((HOST, peers)).close()


async def test_a_listener_that_ends_unasked_ends_this_life_of_the_controller(
    config: ControllerConfig,
) -> None:
    async with running(config) as node:
        assert node._listeners is not None
        _, (_, local) = node._listeners._open
        await local._server.stop(None)
        await asyncio.wait_for(node.ended.wait(), WAIT_S)
        assert node.exit_reason is not None
        assert node.exit_reason.name == "UNHEARD"


async def test_all_listeners_end_with_the_controller(config: ControllerConfig) -> None:
    async with running(config) as node:
        node.request_shutdown()
        await asyncio.wait_for(node.ended.wait(), WAIT_S)
    for server in addresses(config):
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(server)
