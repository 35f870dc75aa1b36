"""A host that goes without a word: calls to it end long before a ping would be due."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import pytest

from quorate.h2.client.channel import Channel, ChannelTimes
from quorate.h2.protocol import frames
from tests.chaos.network import Network

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PORT = 9000
WAIT_S = 60.0
NEVER_S = 3600.0
TIMES = ChannelTimes(
    connect_s=WAIT_S, backoff_s=0.1, backoff_max_s=0.2, ping_every_s=NEVER_S, ping_patience_s=1.0
)
# Greets, and answers nothing, but its kernel takes whatever comes.
GREET = """
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
print("ready", flush=True)
while True:
    link = listener.accept()[0]
    link.sendall(bytes.fromhex(sys.argv[2]))
    while link.recv(65536):
        pass
"""

pytestmark = pytest.mark.usefixtures("machine")


@asynccontextmanager
async def greeting(network: Network, node: int) -> AsyncIterator[None]:
    """A process at this node that greets."""
    settings = frames.frame(frames.SETTINGS, 0, 0, b"").hex()
    command = (*network.enter(node), sys.executable, "-c", GREET, str(PORT), settings)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.kill()
        await process.wait()


async def test_a_call_to_a_host_that_has_gone_ends_without_a_ping() -> None:
    network = Network([1])
    try:
        async with (
            asyncio.timeout(WAIT_S),
            greeting(network, 1),
            Channel(network.address(1), PORT, times=TIMES, message_bytes_max=10) as channel,
        ):
            await channel.channel_ready()
            network.silence(1)
            # It has no deadline, and nothing says that it will have no answer but the kernel.
            call = channel.unary_unary("/some.Service/Call")(b"")
            assert await call.code() is grpc.StatusCode.UNAVAILABLE
    finally:
        network.close()
