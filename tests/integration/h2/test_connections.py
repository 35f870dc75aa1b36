"""Connections that a listener has, and those that it does not take."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from quorate.h2 import frames
from quorate.h2.server import Server
from quorate.h2.wire import frame_message
from quorate.rpc.channels import open_channel
from quorate.rpc.contexts import server_context
from quorate.rpc.tls import TlsFiles
from quorate.settings.tls import TlsSettings
from tests.certificates import Authority
from tests.ports import HOST
from tests.unit.h2 import peers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

WAIT_S = 60.0
# More than sockets take on the way.
MUCH = 64 * 1024 * 1024


@pytest.fixture(params=["plain", "tls"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> ssl.SSLContext | None:
    """What a listener shakes hands with, or None for plaintext."""
    if request.param == "plain":
        return None
    pem = str(Authority().leaf("server").write(tmp_path / "server.pem"))
    return server_context(TlsFiles(TlsSettings(certificate_chain_file=pem, key_file=pem)))


def trusting(context: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """What a client shakes hands with, who takes any certificate."""
    if context is None:
        return None
    any_of = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    any_of.check_hostname = False
    any_of.verify_mode = ssl.CERT_NONE
    any_of.set_alpn_protocols(["h2"])
    return any_of


@asynccontextmanager
async def listening(context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """The port of a server that takes two connections."""
    server = Server((), received_bytes_max=1000, connections_max=2)
    port = server.add_port(f"{HOST}:0", context)
    await server.start()
    async with asyncio.timeout(WAIT_S):
        yield port
    await server.stop(None)


async def is_greeted(port: int, context: ssl.SSLContext | None) -> bool:
    """Whether a client that means it is taken, and told the settings."""
    try:
        reader, writer = await asyncio.open_connection(HOST, port, ssl=trusting(context))
    except OSError:
        return False
    try:
        return bool(await reader.read(9))
    finally:
        writer.transport.abort()


async def test_one_connection_too_many_is_closed_at_once_and_room_is_used_again(
    context: ssl.SSLContext | None,
) -> None:
    async with listening(context) as port, AsyncExitStack() as stack:
        # Of these nobody shakes hands or greets.
        silent = [await asyncio.open_connection(HOST, port) for _ in range(2)]
        for _, writer in silent:
            stack.callback(writer.close)
        assert not await is_greeted(port, context)
        silent[0][1].close()
        while not await is_greeted(port, context):
            # The listener has not seen yet that there is room.
            continue


async def test_a_server_that_stops_leaves_nothing_open(context: ssl.SSLContext | None) -> None:
    async with AsyncExitStack() as stack:
        async with listening(context) as port:
            reader, writer = await asyncio.open_connection(HOST, port)
            stack.callback(writer.close)
        async with asyncio.timeout(WAIT_S):
            await reader.read()
        async with open_channel(HOST, port) as channel:
            ask: Any = channel.unary_unary("/some.Service/Call")
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await ask(b"", timeout=WAIT_S)
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_server_stops_whoever_reads_nothing(context: ssl.SSLContext | None) -> None:
    async def much(_: bytes, __: Any) -> bytes:  # noqa: ANN401
        return bytes(MUCH)

    server = Server((), received_bytes_max=1000, connections_max=2)
    handlers: Any = {"Call": grpc.unary_unary_rpc_method_handler(much)}
    server.add_registered_method_handlers("some.Service", handlers)
    port = server.add_port(f"{HOST}:0", context)
    await server.start()
    # What is over the limit stays in the socket.
    _, writer = await asyncio.open_connection(HOST, port, ssl=trusting(context), limit=1)
    try:
        writer.write(frames.PREFACE + peers.settings(INITIAL_WINDOW_SIZE=MUCH) + peers.window(MUCH))
        writer.write(peers.headers(flags=peers.WHOLE))
        writer.write(peers.data(frame_message(b""), flags=peers.END))
        async with asyncio.timeout(WAIT_S):
            # Neither is told to anybody.
            while not any(link._liveness.blocked_s is not None for link in server._links):  # noqa: ASYNC110
                await asyncio.sleep(0)
            await server.stop(None)
            while server._links:  # noqa: ASYNC110
                await asyncio.sleep(0)
    finally:
        writer.transport.abort()
