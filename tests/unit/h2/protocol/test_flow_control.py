"""DATA waits for the windows of a peer, which grow as the application reads."""

from __future__ import annotations

from quorate.h2.protocol import frames
from quorate.h2.protocol.connection import Connection
from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.protocol.limits import Limits, ListenerMemory
from tests.unit.h2 import peers
from tests.unit.h2.peers import WHOLE, data, headers, settings, word


def test_the_window_grows_by_what_was_read() -> None:
    connection = peers.server()
    connection.receive(headers(flags=WHOLE) + data(bytes(16000)) * 3, 0.0)
    connection.take()
    connection.consumed(1, 48000)
    assert (frames.WINDOW_UPDATE, 0, 1, word(48000)) in peers.sent(connection)


def test_data_of_a_new_window_follows_its_acknowledgement() -> None:
    connection = peers.server()
    connection.receive(settings(INITIAL_WINDOW_SIZE=0) + headers(flags=WHOLE), 0.0)
    connection.take()
    assert not connection.send_data(1, b"ab")
    assert not peers.sent(connection)
    connection.receive(settings(INITIAL_WINDOW_SIZE=1), 0.0)
    assert peers.sent(connection) == [
        (frames.SETTINGS, frames.ACK, 0, b""),
        (frames.DATA, 0, 1, b"a"),
    ]


def test_the_bytes_of_an_ended_stream_are_no_longer_unread() -> None:
    connection = peers.server()
    connection.receive(headers(flags=WHOLE) + data(bytes(1000)), 0.0)
    assert connection.unread == 1000
    connection.reset(1, H2ErrorCode.CANCEL)
    assert connection.unread == 0


def test_connections_share_a_limit_of_unread_bytes() -> None:
    shared = ListenerMemory()
    limits = Limits(unread_in_all_bytes_max=40_000)
    first, second = (Connection(limits, is_client=False, memory=shared) for _ in range(2))
    for connection in (first, second):
        connection.receive(peers.GREETING + headers(flags=WHOLE) + headers(3, flags=WHOLE), 0.0)
        connection.take()
    chunk = data(bytes(16_384))
    first.receive(chunk * 2 + data(bytes(16_384), 3), 0.0)
    granted = {one.stream_id for one in peers.sent(first) if one.kind == frames.WINDOW_UPDATE}
    assert 0 in granted
    second.receive(chunk * 3, 0.0)
    assert peers.sent(second) == []
    # A stream that is read to its end may continue, and the room of one that has ended is free.
    second.consumed(1, 3 * 16_384)
    granted = {one.stream_id for one in peers.sent(second) if one.kind == frames.WINDOW_UPDATE}
    assert granted == {0, 1}
    assert shared.unread_bytes == 3 * 16_384
    first.close()
    assert shared.unread_bytes == 0
