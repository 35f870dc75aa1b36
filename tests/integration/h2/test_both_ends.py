"""Both transports on both ends: calls are the same in every combination."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
import pytest

from quorate.rpc.channels import bind, make_server, open_channel
from quorate.rpc.security.tls_files import TlsFiles
from quorate.settings.tls import ClientAuth, TlsSettings
from quorate.settings.transport import Transport
from tests.certificates import Authority
from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SERVICE: Final = "test.Service"
WAIT_S: Final = 60.0
# Who serves, and who calls.
Pair: TypeAlias = tuple[Transport, Transport]
PAIRS: Final[list[Pair]] = [(one, other) for one in Transport for other in Transport]
Code = grpc.StatusCode


class Handlers:
    """One of each kind."""

    def __init__(self) -> None:
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()

    async def echo(self, request: bytes, context: Any) -> bytes:  # noqa: ANN401
        await context.send_initial_metadata((("first", "1"),))
        context.set_trailing_metadata((("last-bin", b"\0\xff"),))
        more: str = dict(context.invocation_metadata()).get("more", "")
        return request + more.encode()

    async def count(self, request: bytes, _: Any) -> AsyncIterator[bytes]:  # noqa: ANN401
        for number in range(int(request)):
            yield b"%d" % number

    async def join(self, requests: AsyncIterator[bytes], _: Any) -> bytes:  # noqa: ANN401
        return b"".join([request async for request in requests])

    async def double(self, requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:  # noqa: ANN401
        async for request in requests:
            yield request * 2

    async def refuse(self, _: bytes, context: Any) -> bytes:  # noqa: ANN401
        await context.abort(Code.FAILED_PRECONDITION, "not\nso: ü", (("why", "because"),))
        return b""

    async def wait(self, _: bytes, context: Any) -> bytes:  # noqa: ANN401
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return b""

    async def who(self, _: bytes, context: Any) -> bytes:  # noqa: ANN401
        (pem,) = context.auth_context()["x509_pem_cert"]
        return bytes(pem)

    def generic(self) -> grpc.GenericRpcHandler:
        unary = grpc.unary_unary_rpc_method_handler
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Echo": unary(self.echo),
                "Count": grpc.unary_stream_rpc_method_handler(self.count),
                "Join": grpc.stream_unary_rpc_method_handler(self.join),
                "Double": grpc.stream_stream_rpc_method_handler(self.double),
                "Refuse": unary(self.refuse),
                "Wait": unary(self.wait),
                "Who": unary(self.who),
            },
        )


@asynccontextmanager
async def ends(
    pair: Pair,
    server: TlsFiles | None = None,
    client: TlsFiles | None = None,
) -> AsyncIterator[tuple[grpc.aio.Channel, Handlers, grpc.aio.Server]]:
    """A channel to a server that has one method of each kind."""
    handlers = Handlers()
    serving = make_server((), received_bytes_max=4 << 20, transport=pair[0])
    serving.add_generic_rpc_handlers((handlers.generic(),))
    port = bind(serving, HOST, 0, tls=server)
    await serving.start()
    try:
        async with open_channel(HOST, port, tls=client, transport=pair[1]) as channel:
            yield channel, handlers, serving
    finally:
        await serving.stop(None)


def unary(channel: grpc.aio.Channel, method: str) -> Any:  # noqa: ANN401
    return channel.unary_unary(f"/{SERVICE}/{method}")


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}-serves-{pair[1]}")
def pair(request: pytest.FixtureRequest) -> Pair:
    chosen: Pair = request.param
    return chosen


async def test_each_kind_of_call_is_answered(pair: Pair) -> None:
    async with ends(pair) as (channel, _, _), asyncio.timeout(WAIT_S):
        call = unary(channel, "Echo")(b"a", metadata=(("more", "b"),), timeout=WAIT_S)
        assert await call == b"ab"
        assert dict(await call.initial_metadata())["first"] == "1"
        assert dict(await call.trailing_metadata())["last-bin"] == b"\0\xff"
        count: Any = channel.unary_stream(f"/{SERVICE}/Count")
        counted = count(b"3")
        assert [number async for number in counted] == [b"0", b"1", b"2"]
        parts = iter([b"a", b"b", b"c"])
        join: Any = channel.stream_unary(f"/{SERVICE}/Join")
        assert await join(parts) == b"abc"
        stream: Any = channel.stream_stream(f"/{SERVICE}/Double")
        double = stream()
        for letter in (b"x", b"y"):
            await double.write(letter)
            assert await double.read() == letter * 2
        await double.done_writing()
        assert await double.read() is grpc.aio.EOF
        assert await double.code() is Code.OK


async def test_large_messages_go_through_windows(pair: Pair) -> None:
    async with ends(pair) as (channel, _, _), asyncio.timeout(WAIT_S):
        large = bytes(range(256)) * (12 * 1024)
        assert await unary(channel, "Echo")(large) == large
        answers = await asyncio.gather(*(unary(channel, "Echo")(large) for _ in range(4)))
        assert set(answers) == {large}


async def test_a_message_over_the_bound_is_refused(pair: Pair) -> None:
    async with ends(pair) as (channel, _, _), asyncio.timeout(WAIT_S):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await unary(channel, "Echo")(bytes(5 << 20))
        assert raised.value.code() is Code.RESOURCE_EXHAUSTED
        assert await unary(channel, "Echo")(b"a") == b"a"


async def test_a_refusal_arrives_as_it_was_said(pair: Pair) -> None:
    async with ends(pair) as (channel, _, _), asyncio.timeout(WAIT_S):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await unary(channel, "Refuse")(b"")
    assert (raised.value.code(), raised.value.details()) == (Code.FAILED_PRECONDITION, "not\nso: ü")
    assert dict(raised.value.trailing_metadata())["why"] == "because"


async def test_a_deadline_ends_the_call_on_both_ends(pair: Pair) -> None:
    async with ends(pair) as (channel, handlers, _), asyncio.timeout(WAIT_S):
        # One whose time is up before it has arrived has an end on its caller's side alone.
        while not handlers.begun.is_set():
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await unary(channel, "Wait")(b"", timeout=0.1)
            assert raised.value.code() is Code.DEADLINE_EXCEEDED
        await handlers.cancelled.wait()


async def test_who_cancels_cancels_on_both_ends(pair: Pair) -> None:
    async with ends(pair) as (channel, handlers, _), asyncio.timeout(WAIT_S):
        call = unary(channel, "Wait")(b"")
        await handlers.begun.wait()
        assert call.cancel()
        await handlers.cancelled.wait()


async def test_a_server_that_stops_ends_its_calls(pair: Pair) -> None:
    async with ends(pair) as (channel, handlers, server), asyncio.timeout(WAIT_S):
        call = asyncio.ensure_future(unary(channel, "Wait")(b""))
        await handlers.begun.wait()
        await server.stop(None)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call
        assert raised.value.code() is Code.UNAVAILABLE
        await handlers.cancelled.wait()


async def test_nobody_is_there(pair: Pair) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
    async with open_channel(HOST, port, transport=pair[1]) as channel, asyncio.timeout(WAIT_S):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await unary(channel, "Echo")(b"", timeout=WAIT_S)
    assert raised.value.code() is Code.UNAVAILABLE
    assert "failed to connect" in (raised.value.details() or "").lower()
    assert "connection refused" in (raised.value.details() or "").lower()


async def test_a_channel_connects_again(pair: Pair) -> None:
    async with ends(pair) as (channel, _, server), asyncio.timeout(WAIT_S):
        await channel.channel_ready()
        assert channel.get_state() is grpc.ChannelConnectivity.READY
        await server.stop(None)
        await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)


async def test_a_channel_that_is_closed_with_grace_waits_for_its_calls(pair: Pair) -> None:
    async with ends(pair) as (channel, _, _), asyncio.timeout(WAIT_S):
        assert await unary(channel, "Echo")(b"a") == b"a"
        call = unary(channel, "Echo")(b"b")
        await channel.close(WAIT_S)
        assert await call == b"b"


@pytest.fixture
def parties(tmp_path: Path) -> tuple[TlsFiles, TlsFiles]:
    """A server that asks for certificates, and a client that has one."""
    authority = Authority()
    authorities = tmp_path / "ca.pem"
    authorities.write_bytes(authority.pem)
    files = []
    for name in ("server", "client"):
        pem = str(authority.leaf(name).write(tmp_path / f"{name}.pem"))
        settings = TlsSettings(
            certificate_chain_file=pem,
            key_file=pem,
            ca_file=str(authorities),
            client_auth=ClientAuth.REQUIRED,
        )
        files.append(TlsFiles(settings))
    return files[0], files[1]


async def test_both_ends_know_each_other_by_tls(
    pair: Pair, parties: tuple[TlsFiles, TlsFiles]
) -> None:
    async with ends(pair, *parties) as (channel, _, _), asyncio.timeout(WAIT_S):
        pem = await unary(channel, "Who")(b"")
        assert pem.startswith(b"-----BEGIN CERTIFICATE-----")
        large = bytes(3 << 20)
        assert await unary(channel, "Echo")(large) == large
