"""Bodies go as far as there is room, in turns, and trailers stay behind them."""

from __future__ import annotations

from quorate.h2.protocol import frames
from quorate.h2.protocol.connection import Connection
from quorate.h2.protocol.events import StreamWritable
from quorate.h2.protocol.header_codec import block_of
from quorate.h2.protocol.limits import Limits
from tests.unit.h2 import peers
from tests.unit.h2.peers import headers, settings, window


def answering(*stream_ids: int, initial_window: int = 65_535) -> Connection:
    connection = peers.server()
    connection.receive(settings(INITIAL_WINDOW_SIZE=initial_window), 0.0)
    for stream_id in stream_ids:
        connection.receive(headers(stream_id), 0.0)
        connection.send_headers(stream_id, peers.RESPONSE_BLOCK)
    connection.take()
    return connection


def bodies(connection: Connection) -> list[tuple[int, int]]:
    return [(one.stream_id, len(one.payload)) for one in peers.sent(connection) if not one.kind]


def test_the_first_frames_tell_the_bounds() -> None:
    connection = Connection(Limits(streams_max=7, window_bytes=100_000), is_client=False)
    connection.start()
    greeting, wider = peers.sent(connection)
    told = dict(frames.SETTING.iter_unpack(greeting.payload))
    assert told[frames.MAX_CONCURRENT_STREAMS] == 7
    assert (wider.kind, wider.payload) == (frames.WINDOW_UPDATE, peers.word(100_000 - 65_535))


def test_a_client_greets_with_the_preface_and_wants_no_pushes() -> None:
    connection = Connection(Limits(), is_client=True)
    connection.start()
    out = connection.take()
    assert out.startswith(frames.PREFACE)
    assert frames.SETTING.pack(frames.ENABLE_PUSH, 0) in out


def test_a_body_waits_for_the_window_and_the_trailers_for_the_body() -> None:
    connection = answering(1, initial_window=10)
    assert not connection.send_data(1, bytes(25))
    connection.send_headers(1, peers.TRAILERS_BLOCK, is_last=True)
    assert bodies(connection) == [(1, 10)]
    assert connection.receive(window(10, 1), 0.0) == []
    assert connection.receive(window(10, 1), 0.0) == [StreamWritable(1)]
    last = peers.sent(connection)[-1]
    assert (last.kind, last.flags & frames.END_STREAM) == (frames.HEADERS, frames.END_STREAM)


def test_wider_initial_windows_let_bodies_go() -> None:
    connection = answering(1, 3, initial_window=0)
    connection.send_data(1, bytes(5))
    connection.send_data(3, bytes(5))
    assert bodies(connection) == []
    connection.receive(settings(INITIAL_WINDOW_SIZE=5), 0.0)
    assert bodies(connection) == [(1, 5), (3, 5)]


def test_streams_take_turns() -> None:
    connection = answering(1, 3)
    connection.pause()
    connection.send_data(1, bytes(30_000))
    connection.send_data(3, bytes(30_000))
    assert bodies(connection) == []
    connection.resume()
    assert bodies(connection) == [(1, 16384), (3, 16384), (1, 13616), (3, 13616)]


def test_not_everything_becomes_frames_at_once() -> None:
    connection = answering(1, initial_window=1 << 30)
    connection.receive(window(1 << 30), 0.0)
    connection.send_data(1, bytes(1 << 20))
    assert len(connection.take()) < 300_000
    assert connection.has_more
    while connection.has_more:
        connection.resume()
        connection.take()
    assert connection.queued(1) == 0


def test_a_stream_without_a_window_holds_up_no_other() -> None:
    connection = answering(1, 3, initial_window=8)
    connection.send_data(1, bytes(9))
    connection.send_data(3, bytes(8))
    assert bodies(connection) == [(1, 8), (3, 8)]


def test_large_headers_are_continued() -> None:
    connection = answering(1)
    connection.send_headers(1, block_of([(b"x", bytes(20_000))]), is_last=True)
    kinds = [(one.kind, one.flags & frames.END_HEADERS) for one in peers.sent(connection)]
    assert kinds == [(frames.HEADERS, 0), (frames.CONTINUATION, frames.END_HEADERS)]


def test_a_body_may_end_its_stream() -> None:
    connection = peers.client()
    stream_id = connection.open_stream(peers.BLOCK)
    connection.send_data(stream_id, b"", is_last=True)
    assert peers.sent(connection)[-1] == (frames.DATA, frames.END_STREAM, stream_id, b"")
    connection.ping()
    assert peers.kinds(connection) == [frames.PING]


def test_what_ended_takes_nothing_more() -> None:
    connection = answering(1)
    connection.send_headers(1, peers.TRAILERS_BLOCK, is_last=True)
    connection.take()
    assert connection.send_data(1, b"late")
    connection.send_headers(1, peers.TRAILERS_BLOCK, is_last=True)
    assert connection.take() == b""
