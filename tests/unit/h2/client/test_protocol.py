"""One connection of a channel: when it is ready, and when it is not any more."""

from __future__ import annotations

import asyncio
import socket

import grpc
import pytest

from quorate.h2.client.protocol import ClientProtocol
from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import frame
from tests.unit.h2 import peers
from tests.unit.h2.by_hand import TransportByHand
from tests.unit.h2.peers import word
from tests.unit.h2.servers_by_hand import Server, settle


async def test_a_connection_is_ready_when_the_server_has_greeted() -> None:
    server = Server()
    await settle()
    assert server.transport.written.startswith(frames.PREFACE)
    assert not server.link.ready.done()
    server.greet()
    await server.link.ready
    assert server.link.is_open


async def test_a_connection_that_is_closed_before_is_none() -> None:
    server = Server()
    server.link.connection_lost(None)
    with pytest.raises(ConnectionResetError, match="Socket closed"):
        await server.link.ready
    assert server.gone == [server.link]


async def test_a_server_that_breaks_http2_is_left() -> None:
    server = Server()
    server.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert server.transport.is_aborted
    server.link.connection_lost(None)
    with pytest.raises(ConnectionResetError, match="broke HTTP/2"):
        await server.link.ready


@pytest.mark.parametrize(
    "flood",
    [
        frame(frames.SETTINGS, 0, 0, b""),
        peers.settings(MAX_CONCURRENT_STREAMS=100, INITIAL_WINDOW_SIZE=1000),
        frame(frames.SETTINGS, frames.ACK, 0, b""),
        frame(frames.PING, 0, 0, bytes(8)),
        peers.window(1),
    ],
    ids=["settings", "settings that say something", "acknowledgements", "pings", "windows"],
)
async def test_a_server_that_floods_is_left(flood: bytes) -> None:
    server = Server()
    server.greet()
    call = server.call()
    for _ in range(100):
        server.send(flood * 1000)
    assert server.transport.is_aborted
    server.link.connection_lost(None)
    assert await call.code() is grpc.StatusCode.UNAVAILABLE
    assert "too many frames" in await call.details()


async def test_the_server_says_how_many_calls_it_takes() -> None:
    server = Server()
    server.send(peers.settings(MAX_CONCURRENT_STREAMS=1))
    assert server.link.has_room
    call = server.call()
    assert not server.link.has_room
    call.cancel()
    assert server.link.has_room


async def test_whoever_waits_hears_that_the_server_takes_more_calls() -> None:
    server = Server()
    server.send(peers.settings(MAX_CONCURRENT_STREAMS=0))
    assert (server.link.has_room, server.widened) == (False, 1)
    server.send(peers.settings(MAX_CONCURRENT_STREAMS=1))
    assert (server.link.has_room, server.widened) == (True, 2)


async def test_a_connection_whose_streams_are_used_up_takes_no_more_calls() -> None:
    server = Server()
    server.greet()
    server.link.connection._next_id = frames.STREAM_ID_MAX - 2
    server.call()
    assert (server.link.is_leaving, server.gone) == (False, [])
    last = server.call()
    assert last.stream_id == frames.STREAM_ID_MAX
    assert (server.link.is_leaving, server.gone) == (True, [server.link])


async def test_who_goes_away_answers_what_it_has_begun() -> None:
    server = Server()
    server.greet()
    kept, refused = server.call(), server.call()
    server.send(frame(frames.GOAWAY, 0, 0, word(kept.stream_id) + word(0) + b"bye"))
    assert (await refused.code(), server.gone) == (grpc.StatusCode.UNAVAILABLE, [server.link])
    assert "refused" in await refused.details()
    assert not server.transport.is_closed
    server.begin(kept)
    server.answer(kept, b"answer")
    server.end(kept)
    assert await kept == b"answer"
    assert server.transport.is_closed


class _Session:
    def selected_alpn_protocol(self) -> None:
        return None


async def test_tls_without_h2_is_no_connection() -> None:
    assert Server(ssl_object=_Session()).transport.is_aborted


async def test_a_silent_server_is_pinged_and_left() -> None:
    gone = asyncio.get_running_loop().create_future()
    link = ClientProtocol(
        ping_every_s=0.0, ping_patience_s=0.01, gone=lambda _: None, widened=lambda: None
    )

    class Transport(TransportByHand):
        def abort(self) -> None:
            gone.set_result(None)

    transport = Transport()
    link.connection_made(transport)
    link.data_received(frame(frames.SETTINGS, 0, 0, b""))
    await gone
    assert frame(frames.PING, 0, 0, bytes(8)) in bytes(transport.written)
    link.connection_lost(None)


async def test_what_nobody_takes_ends_the_connection_as_soon_as_a_ping_would() -> None:
    with socket.socket() as link:
        Server(socket=link)
        # The link of `Server` waits 50 s for the answer to a ping.
        assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 50_000


async def test_bodies_wait_while_the_socket_is_full() -> None:
    server = Server()
    server.greet()
    call = server.call()
    server.link.pause_writing()
    writing = asyncio.ensure_future(call.write(b"a"))
    await settle()
    assert not writing.done()
    server.link.resume_writing()
    await writing
