"""A channel before it has a connection, and after it was closed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from quorate.h2.client.channel import Channel, ChannelTimes
from quorate.h2.protocol import frames
from tests.unit.h2 import peers
from tests.unit.h2.by_hand import TransportByHand
from tests.unit.h2.servers_by_hand import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.h2.client.protocol import ClientProtocol

State = grpc.ChannelConnectivity
TIMES = ChannelTimes(
    connect_s=5.0, backoff_s=60.0, backoff_max_s=60.0, ping_every_s=60.0, ping_patience_s=60.0
)


async def test_a_channel_that_is_closed_takes_no_call() -> None:
    channel = Channel("localhost", 1, times=TIMES, message_bytes_max=10)
    assert channel.get_state() is State.IDLE
    await channel.close()
    assert channel.get_state() is State.SHUTDOWN
    with pytest.raises(grpc.aio.UsageError):
        channel.unary_unary("/some.Service/Call")(b"")


async def test_what_is_no_name_of_a_host_is_unavailable() -> None:
    async with Channel("a" * 64, 1, times=TIMES, message_bytes_max=10) as channel:
        for _ in range(2):
            call = channel.unary_unary("/some.Service/Call")(b"")
            assert await call.code() is grpc.StatusCode.UNAVAILABLE
            assert "failed to connect to aaa" in await call.details()


def connected(server: Server) -> Channel:
    """A channel whose connection is by hand."""
    channel = Channel("localhost", 1, times=TIMES, message_bytes_max=10)
    channel._link = server.link
    server.link._gone = channel._lost
    server.link._widened = channel._begin_waiting
    return channel


def begun(server: Server) -> list[int]:
    return [one.stream_id for one in server.received() if one.kind == frames.HEADERS]


async def test_calls_begin_in_order_as_there_is_room() -> None:
    server = Server()
    channel = connected(server)
    server.send(peers.settings(MAX_CONCURRENT_STREAMS=1))
    ask = channel.unary_unary("/some.Service/Call")
    calls = [ask(bytes([number])) for number in range(3)]
    assert begun(server) == [1]
    calls[0].cancel()
    assert begun(server) == [3]
    assert [call.stream_id for call in calls] == [1, 3, 0]
    calls[1].cancel()
    calls[2].cancel()
    assert begun(server) == [5]


async def test_a_call_that_has_ended_waits_no_more() -> None:
    server = Server()
    channel = connected(server)
    server.send(peers.settings(MAX_CONCURRENT_STREAMS=0))
    call = channel.unary_unary("/some.Service/Call")(b"")
    assert list(channel._waiting) == [call]
    call.cancel()
    assert not channel._waiting


async def test_the_deadline_ends_a_call_that_waits_for_its_turn() -> None:
    server = Server()
    channel = connected(server)
    server.send(peers.settings(MAX_CONCURRENT_STREAMS=0))
    call = channel.unary_unary("/some.Service/Call")(b"", timeout=0.0)
    assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert not channel._waiting
    assert not begun(server)


async def test_metadata_that_cannot_be_sent_is_the_callers_error() -> None:
    server = Server()
    channel = connected(server)
    server.send(peers.settings(MAX_CONCURRENT_STREAMS=0))
    with pytest.raises(AttributeError):
        channel.unary_unary("/some.Service/Call")(b"", metadata=(("key", 1),))
    assert not channel._waiting


@pytest.mark.parametrize("goes", ["lost", "told"])
async def test_calls_that_wait_do_not_begin_on_a_connection_that_goes(goes: str) -> None:
    server = Server()
    channel = connected(server)
    server.send(peers.settings(MAX_CONCURRENT_STREAMS=1))
    ask = channel.unary_unary("/some.Service/Call")
    begun_there, waiting = ask(b""), ask(b"")
    if goes == "lost":
        server.link.connection_lost(None)
    else:
        server.send(frames.frame(frames.GOAWAY, 0, 0, bytes(8)))
    assert await begun_there.code() is grpc.StatusCode.UNAVAILABLE
    # There will be another connection for it.
    assert list(channel._waiting) == [waiting]
    assert channel.get_state() is State.CONNECTING
    await channel.close()
    assert await waiting.code() is grpc.StatusCode.CANCELLED


def connecting(monkeypatch: pytest.MonkeyPatch, begin: Callable[[ClientProtocol], None]) -> Channel:
    """A channel whose connections begin so."""

    async def create_connection(make: Callable[[], ClientProtocol], *_: Any, **__: Any) -> None:  # noqa: ANN401
        begin(make())

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", create_connection)
    return Channel("localhost", 1, times=TIMES, message_bytes_max=10)


async def test_a_server_that_goes_as_it_greets_has_no_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def begin(link: ClientProtocol) -> None:
        link.connection_made(TransportByHand())
        goodbye = frames.frame(frames.GOAWAY, 0, 0, peers.word(0) + peers.word(0))
        link.data_received(peers.settings() + goodbye)

    channel = connecting(monkeypatch, begin)
    with pytest.raises(grpc.aio.AioRpcError, match="failed to connect to localhost:1: Socket"):
        await channel.unary_unary("/some.Service/Call")(b"")
    assert channel.get_state() is State.TRANSIENT_FAILURE


async def test_whatever_the_loop_says_of_one_attempt_there_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """uvloop has errors of its own for a socket that is closed before its protocol knows it."""
    attempts = 0

    def begin(_: ClientProtocol) -> None:
        nonlocal attempts
        attempts += 1
        raise RuntimeError("closed Transport handle and unset waiter")

    channel = connecting(monkeypatch, begin)
    for _ in range(2):
        with pytest.raises(grpc.aio.AioRpcError, match="failed to connect to localhost:1: closed"):
            await channel.unary_unary("/some.Service/Call")(b"")
        channel._quiet_until_s = 0.0
    assert attempts == 2


async def test_a_connection_that_is_given_up_as_it_begins_is_written_to_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No callback reports its end: uvloop has closed the socket without telling its protocol."""
    links: list[ClientProtocol] = []
    transport = TransportByHand()

    def begin(link: ClientProtocol) -> None:
        links.append(link)
        link.connection_made(transport)
        raise TimeoutError

    channel = connecting(monkeypatch, begin)
    with pytest.raises(grpc.aio.AioRpcError, match="failed to connect to localhost:1: timed out"):
        await channel.unary_unary("/some.Service/Call")(b"")
    assert transport.is_aborted
    assert not links[0].is_open
    transport.written.clear()
    links[0].connection.ping()
    links[0]._flush()
    assert not transport.written
