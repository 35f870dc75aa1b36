"""Connections that a listener has, and those that it does not take."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from quorate.h2.grpc_framing import frame_message
from quorate.h2.protocol import frames
from quorate.h2.server.connection_limiter import ConnectionStats
from quorate.h2.server.server import Server
from quorate.rpc.channels import open_channel
from quorate.rpc.security.ssl_contexts import server_context
from quorate.rpc.security.tls_files import TlsFiles
from quorate.settings.tls import ClientAuth, TlsSettings
from tests.certificates import Authority
from tests.ports import HOST
from tests.unit.h2 import peers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Container
    from pathlib import Path

WAIT_S = 60.0
# More than sockets take on the way.
MUCH = 64 * 1024 * 1024


@pytest.fixture(params=["plain", "tls"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> ssl.SSLContext | None:
    """The TLS context of a listener, or None for plaintext."""
    return None if request.param == "plain" else tls_context(tmp_path)


def tls_context(folder: Path) -> ssl.SSLContext:
    """The context of a listener that asks for no certificate."""
    pem = str(Authority().leaf("server").write(folder / "server.pem"))
    return server_context(TlsFiles(TlsSettings(certificate_chain_file=pem, key_file=pem)))


def trusting(context: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """The TLS context of a client that accepts any certificate."""
    if context is None:
        return None
    any_of = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    any_of.check_hostname = False
    any_of.verify_mode = ssl.CERT_NONE
    any_of.set_alpn_protocols(["h2"])
    return any_of


@asynccontextmanager
async def listening(
    context: ssl.SSLContext | None,
    *,
    preferred: Container[str] = (),
    connections_max: int = 4,
    stats: ConnectionStats | None = None,
) -> AsyncIterator[int]:
    """The port of a server that takes four connections, two of one address."""
    server = Server(
        (),
        received_bytes_max=1000,
        connections_max=connections_max,
        preferred=preferred,
        stats=stats,
    )
    port = server.add_port(f"{HOST}:0", context)
    await server.start()
    async with asyncio.timeout(WAIT_S):
        yield port
    await server.stop(None)


async def is_greeted(port: int, context: ssl.SSLContext | None, source: str = HOST) -> bool:
    """True if a client that means it is taken, and told the settings."""
    try:
        reader, writer = await asyncio.open_connection(
            HOST, port, ssl=trusting(context), local_addr=(source, 0)
        )
    except OSError:
        return False
    try:
        # A refused connection gets an empty SETTINGS, and a GOAWAY.
        return (await reader.readexactly(9))[2] > 0
    except (asyncio.IncompleteReadError, OSError):
        return False
    finally:
        writer.transport.abort()


@asynccontextmanager
async def greeted(
    port: int, context: ssl.SSLContext | None, source: str = HOST
) -> AsyncIterator[asyncio.StreamReader]:
    """A connection that is established."""
    reader, writer = await asyncio.open_connection(
        HOST, port, ssl=trusting(context), local_addr=(source, 0)
    )
    try:
        assert (await reader.readexactly(9))[2] > 0
        yield reader
    finally:
        writer.transport.abort()


async def test_one_address_has_half_of_the_connections_and_room_is_used_again(
    context: ssl.SSLContext | None,
) -> None:
    async with listening(context) as port, AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        await first.enter_async_context(greeted(port, context))
        await stack.enter_async_context(greeted(port, context))
        assert not await is_greeted(port, context)
        # Others are served, up to the bound of all.
        await stack.enter_async_context(greeted(port, context, "127.0.0.2"))
        await stack.enter_async_context(greeted(port, context, "127.0.0.3"))
        assert not await is_greeted(port, context, "127.0.0.4")
        await first.aclose()
        while not await is_greeted(port, context):
            # The listener has not seen yet that there is room.
            continue


async def test_connections_without_a_handshake_keep_none_out(tmp_path: Path) -> None:
    context = tls_context(tmp_path)
    async with listening(context) as port, AsyncExitStack() as stack:
        for number in range(20):
            source = ("127.0.0.2", 0) if number % 2 else ("127.0.0.3", 0)
            _, writer = await asyncio.open_connection(HOST, port, local_addr=source)
            stack.callback(writer.close)
        assert await is_greeted(port, context)


async def test_a_client_that_is_refused_in_plaintext_is_told_why() -> None:
    async with listening(None) as port, AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(greeted(port, None))
        reader, writer = await asyncio.open_connection(HOST, port)
        stack.callback(writer.close)
        assert b"too many connections" in await reader.read()


async def test_a_preferred_address_has_connections_that_others_cannot_take() -> None:
    preferred = {"ipv4:127.0.0.9"}
    async with (
        listening(None, preferred=preferred, connections_max=256) as port,
        AsyncExitStack() as stack,
    ):
        for number in range(254):
            source = f"127.0.0.{1 + number % 4}"
            await stack.enter_async_context(greeted(port, None, source))
        assert not await is_greeted(port, None, "127.0.0.5")
        assert await is_greeted(port, None, "127.0.0.9")


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

    server = Server((), received_bytes_max=1000, connections_max=4)
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
            # Neither causes an event.
            while not any(link._liveness.blocked_s is not None for link in server._links):  # noqa: ASYNC110
                await asyncio.sleep(0)
            await server.stop(None)
            while server._links:  # noqa: ASYNC110
                await asyncio.sleep(0)
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_without_a_certificate_hears_by_an_alert_that_one_is_wanted(
    version: ssl.TLSVersion, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    authority, trusted = Authority(), tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem)
    pem = str(authority.leaf("server").write(tmp_path / "server.pem"))
    settings = TlsSettings(
        certificate_chain_file=pem,
        key_file=pem,
        ca_file=str(trusted),
        client_auth=ClientAuth.REQUIRED,
    )
    context = server_context(TlsFiles(settings))
    nobody = trusting(context)
    assert nobody is not None
    nobody.maximum_version = version
    stats = ConnectionStats()
    async with listening(context, stats=stats) as port:
        with pytest.raises(ssl.SSLError, match=r"ALERT_(CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE)"):
            await is_ended(port, nobody)
        assert stats.failed_handshakes == 1
    assert "has failed: peer did not return a certificate" in caplog.text


async def is_ended(port: int, context: ssl.SSLContext | None) -> None:
    """Connect, and wait until the listener ends the connection. Raises OSError."""
    reader, _ = await asyncio.open_connection(HOST, port, ssl=context)
    await reader.read()
