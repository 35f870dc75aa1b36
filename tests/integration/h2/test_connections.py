"""Connections that a listener has, and those that it does not take."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from quorate.h2.server import Server
from quorate.rpc.channels import open_channel
from quorate.rpc.contexts import server_context
from quorate.rpc.tls import TlsFiles
from quorate.settings.tls import TlsSettings
from tests.certificates import Authority
from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

WAIT_S = 20.0


@pytest.fixture(params=["plain", "tls"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> ssl.SSLContext | None:
    """What a listener shakes hands with, or None for plaintext."""
    if request.param == "plain":
        return None
    pem = str(Authority().leaf("server").write(tmp_path / "server.pem"))
    return server_context(TlsFiles(TlsSettings(certificate_chain_file=pem, key_file=pem)))


@asynccontextmanager
async def listening(context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """The port of a server that takes two connections."""
    server = Server((), received_bytes_max=1000, connections_max=2)
    port = server.add_port(f"{HOST}:0", context)
    await server.start()
    async with asyncio.timeout(WAIT_S):
        yield port
    await server.stop(None)


async def is_greeted(port: int, *, is_tls: bool) -> bool:
    """Whether a client that means it is taken, and told the settings."""
    trusting = None
    if is_tls:
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        trusting.set_alpn_protocols(["h2"])
    try:
        reader, writer = await asyncio.open_connection(HOST, port, ssl=trusting)
    except OSError:
        return False
    try:
        return bool(await reader.read(9))
    finally:
        writer.transport.abort()


async def test_one_connection_too_many_is_closed_at_once_and_room_is_used_again(
    context: ssl.SSLContext | None,
) -> None:
    is_tls = context is not None
    async with listening(context) as port, AsyncExitStack() as stack:
        # Of these nobody shakes hands or greets.
        silent = [await asyncio.open_connection(HOST, port) for _ in range(2)]
        for _, writer in silent:
            stack.callback(writer.close)
        assert not await is_greeted(port, is_tls=is_tls)
        silent[0][1].close()
        while not await is_greeted(port, is_tls=is_tls):
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
