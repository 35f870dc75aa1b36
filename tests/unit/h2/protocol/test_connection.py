"""The rules of RFC 9113 that a peer may break, and what becomes of it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.h2.protocol import frames
from quorate.h2.protocol.connection import Connection
from quorate.h2.protocol.events import DataReceived, HeadersReceived
from quorate.h2.protocol.frames import H2ErrorCode, frame
from quorate.h2.protocol.header_codec import block_of
from quorate.h2.protocol.limits import Limits
from tests.unit.h2 import peers
from tests.unit.h2.peers import BLOCK, END, REQUEST, WHOLE, data, headers, settings, window, word

PADDED, WITH_PRIORITY = frames.PADDED, frames.WITH_PRIORITY


def test_a_call_is_its_headers_its_data_and_its_end() -> None:
    connection = peers.server()
    events = connection.receive(headers(flags=WHOLE) + data(b"abc", flags=END), 0.0)
    begun, body = events
    assert isinstance(begun, HeadersReceived)
    assert begun.fields.pseudo[b":path"] == b"/some.Service/Call"
    assert body == DataReceived(1, b"abc", is_last=True)


def test_an_answer_ends_the_stream_on_both_sides() -> None:
    connection = peers.server()
    connection.receive(headers(), 0.0)
    connection.send_headers(1, peers.RESPONSE_BLOCK)
    assert connection.send_data(1, b"abc")
    connection.send_headers(1, peers.TRAILERS_BLOCK, is_last=True)
    assert peers.kinds(connection) == [frames.HEADERS, frames.DATA, frames.HEADERS]
    assert connection.stream_count == 0


def test_who_is_answered_before_the_end_of_the_request_is_told_to_stop() -> None:
    connection = peers.server()
    connection.receive(headers(flags=WHOLE), 0.0)
    connection.send_headers(1, peers.TRAILERS_BLOCK, is_last=True)
    reset = peers.sent(connection)[-1]
    assert (reset.kind, reset.payload) == (frames.RST_STREAM, word(H2ErrorCode.NO_ERROR))
    # Frames that were in flight by then do no harm.
    assert connection.receive(data(b"late"), 0.0) == []
    assert not connection.is_over


WRONG_CONNECTIONS: list[tuple[str, bytes, H2ErrorCode]] = [
    ("DATA on stream 0", data(b"a", 0), H2ErrorCode.PROTOCOL_ERROR),
    ("DATA on an idle stream", data(b"a", 5), H2ErrorCode.PROTOCOL_ERROR),
    ("HEADERS on stream 0", headers(0), H2ErrorCode.PROTOCOL_ERROR),
    ("HEADERS on an even stream", headers(2), H2ErrorCode.PROTOCOL_ERROR),
    ("HEADERS on a lower stream", headers(5) + headers(3), H2ErrorCode.PROTOCOL_ERROR),
    ("CONTINUATION of nothing", frame(frames.CONTINUATION, 4, 1, b""), H2ErrorCode.PROTOCOL_ERROR),
    (
        "a frame within a block",
        headers(flags=0) + frame(frames.PING, 0, 0, bytes(8)),
        H2ErrorCode.PROTOCOL_ERROR,
    ),
    (
        "CONTINUATION of another stream",
        headers(flags=0) + frame(frames.CONTINUATION, 4, 3, b""),
        H2ErrorCode.PROTOCOL_ERROR,
    ),
    ("a block that is none", headers(block=b"\xff\xff\xff"), H2ErrorCode.COMPRESSION_ERROR),
    ("too much padding", data(b"\x05abc", flags=PADDED), H2ErrorCode.PROTOCOL_ERROR),
    ("no padding", data(b"", flags=PADDED), H2ErrorCode.PROTOCOL_ERROR),
    (
        "HEADERS without a priority",
        headers(flags=END | WHOLE | WITH_PRIORITY, block=b"\0"),
        H2ErrorCode.FRAME_SIZE_ERROR,
    ),
    ("a large frame", headers(flags=WHOLE) + data(bytes(16385)), H2ErrorCode.FRAME_SIZE_ERROR),
    ("PING on a stream", frame(frames.PING, 0, 1, bytes(8)), H2ErrorCode.PROTOCOL_ERROR),
    ("a short PING", frame(frames.PING, 0, 0, bytes(7)), H2ErrorCode.FRAME_SIZE_ERROR),
    ("SETTINGS on a stream", frame(frames.SETTINGS, 0, 1, b""), H2ErrorCode.PROTOCOL_ERROR),
    ("broken SETTINGS", frame(frames.SETTINGS, 0, 0, bytes(5)), H2ErrorCode.FRAME_SIZE_ERROR),
    (
        "an answer with SETTINGS",
        frame(frames.SETTINGS, 1, 0, bytes(6)),
        H2ErrorCode.FRAME_SIZE_ERROR,
    ),
    ("ENABLE_PUSH of 2", settings(ENABLE_PUSH=2), H2ErrorCode.PROTOCOL_ERROR),
    ("a small MAX_FRAME_SIZE", settings(MAX_FRAME_SIZE=16383), H2ErrorCode.PROTOCOL_ERROR),
    ("a large MAX_FRAME_SIZE", settings(MAX_FRAME_SIZE=1 << 24), H2ErrorCode.PROTOCOL_ERROR),
    (
        "a large INITIAL_WINDOW_SIZE",
        settings(INITIAL_WINDOW_SIZE=1 << 31),
        H2ErrorCode.FLOW_CONTROL_ERROR,
    ),
    ("a window that is too wide", window((1 << 31) - 1), H2ErrorCode.FLOW_CONTROL_ERROR),
    ("WINDOW_UPDATE by 0", window(0), H2ErrorCode.PROTOCOL_ERROR),
    ("WINDOW_UPDATE on an idle stream", window(1, 7), H2ErrorCode.PROTOCOL_ERROR),
    (
        "a short WINDOW_UPDATE",
        frame(frames.WINDOW_UPDATE, 0, 0, bytes(3)),
        H2ErrorCode.FRAME_SIZE_ERROR,
    ),
    (
        "RST_STREAM on an idle stream",
        frame(frames.RST_STREAM, 0, 9, word(8)),
        H2ErrorCode.PROTOCOL_ERROR,
    ),
    ("RST_STREAM on stream 0", frame(frames.RST_STREAM, 0, 0, word(8)), H2ErrorCode.PROTOCOL_ERROR),
    (
        "a short RST_STREAM",
        headers() + frame(frames.RST_STREAM, 0, 1, b""),
        H2ErrorCode.FRAME_SIZE_ERROR,
    ),
    ("PRIORITY on stream 0", frame(frames.PRIORITY, 0, 0, bytes(5)), H2ErrorCode.PROTOCOL_ERROR),
    ("PUSH_PROMISE", frame(frames.PUSH_PROMISE, 4, 1, word(2)), H2ErrorCode.PROTOCOL_ERROR),
    ("GOAWAY on a stream", frame(frames.GOAWAY, 0, 1, bytes(8)), H2ErrorCode.PROTOCOL_ERROR),
    ("a short GOAWAY", frame(frames.GOAWAY, 0, 0, bytes(7)), H2ErrorCode.FRAME_SIZE_ERROR),
]


@pytest.mark.parametrize(
    ("frames_of_peer", "code"), [row[1:] for row in WRONG_CONNECTIONS], ids=lambda value: None
)
def test_what_breaks_the_connection_ends_it(frames_of_peer: bytes, code: H2ErrorCode) -> None:
    connection = peers.server()
    assert peers.failed_with(connection, connection.receive(frames_of_peer, 0.0)) is code
    assert connection.receive(headers(11), 0.0) == []


def request_with(*pairs: tuple[bytes, bytes], without: bytes = b"") -> bytes:
    kept = [pair for pair in REQUEST if pair[0] != without]
    return headers(block=block_of([*kept, *pairs]))


WRONG_STREAMS: list[tuple[bytes, H2ErrorCode]] = [
    (request_with(without=b":method"), H2ErrorCode.PROTOCOL_ERROR),
    (request_with(without=b":scheme"), H2ErrorCode.PROTOCOL_ERROR),
    (request_with(without=b":path"), H2ErrorCode.PROTOCOL_ERROR),
    (request_with((b":path", b""), without=b":path"), H2ErrorCode.PROTOCOL_ERROR),
    (request_with((b":status", b"200")), H2ErrorCode.PROTOCOL_ERROR),
    (request_with((b"Upper", b"case")), H2ErrorCode.PROTOCOL_ERROR),
    (request_with((b"connection", b"close")), H2ErrorCode.PROTOCOL_ERROR),
    (request_with((b"te", b"gzip")), H2ErrorCode.PROTOCOL_ERROR),
    (request_with((b"x", b"line\nfeed")), H2ErrorCode.PROTOCOL_ERROR),
    (request_with((b"x", b" space")), H2ErrorCode.PROTOCOL_ERROR),
    (request_with((b"content-length", b"1")), H2ErrorCode.PROTOCOL_ERROR),
    (request_with((b"content-length", b"one")), H2ErrorCode.PROTOCOL_ERROR),
    (request_with(*[(b"x", b"")] * 128), H2ErrorCode.ENHANCE_YOUR_CALM),
    (request_with(*[(b"x", b"a" * 8100)] * 2), H2ErrorCode.ENHANCE_YOUR_CALM),
    (headers(flags=END | WHOLE | WITH_PRIORITY, block=word(1) + b"\0" + BLOCK), H2ErrorCode(1)),
    (headers() + data(b"a"), H2ErrorCode.STREAM_CLOSED),
    (headers() + headers(), H2ErrorCode.STREAM_CLOSED),
    (headers(flags=WHOLE) + headers(flags=WHOLE), H2ErrorCode.PROTOCOL_ERROR),
    (headers(flags=WHOLE) + headers(), H2ErrorCode.PROTOCOL_ERROR),
    (headers() + window(0, 1), H2ErrorCode.PROTOCOL_ERROR),
    (headers() + window((1 << 31) - 1, 1), H2ErrorCode.FLOW_CONTROL_ERROR),
    (headers() + frame(frames.PRIORITY, 0, 1, bytes(4)), H2ErrorCode.FRAME_SIZE_ERROR),
    (headers() + frame(frames.PRIORITY, 0, 1, word(1) + b"\0"), H2ErrorCode.PROTOCOL_ERROR),
]


@pytest.mark.parametrize(("frames_of_peer", "code"), WRONG_STREAMS, ids=lambda value: None)
def test_what_breaks_a_stream_ends_the_stream_alone(
    frames_of_peer: bytes, code: H2ErrorCode
) -> None:
    connection = peers.server()
    events = connection.receive(frames_of_peer, 0.0)
    assert peers.ended_with(connection, events) == code
    (begun,) = connection.receive(headers(3), 0.0)
    assert isinstance(begun, HeadersReceived)


def test_headers_after_the_end_of_a_call_break_the_connection() -> None:
    connection = peers.server()
    connection.receive(headers() + frame(frames.RST_STREAM, 0, 1, word(8)), 0.0)
    events = connection.receive(headers(), 0.0)
    assert peers.failed_with(connection, events) is H2ErrorCode.STREAM_CLOSED


def test_data_after_a_reset_is_answered_with_one() -> None:
    connection = peers.server()
    connection.receive(headers(flags=WHOLE) + frame(frames.RST_STREAM, 0, 1, word(8)), 0.0)
    assert connection.receive(data(b"a"), 0.0) == []
    assert peers.sent(connection)[-1].payload == word(H2ErrorCode.STREAM_CLOSED)


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\n\r\n", frames.PREFACE + data(b"")])
def test_a_beginning_without_preface_and_settings_is_none(first: bytes) -> None:
    connection = Connection(Limits(), is_client=False)
    code = peers.failed_with(connection, connection.receive(first, 0.0))
    assert code is H2ErrorCode.PROTOCOL_ERROR


# --- windows --------------------------------------------------------------------------------------


def test_more_than_a_streams_window_ends_the_stream() -> None:
    connection = peers.server(Limits(window_bytes=200_000))
    chunk = data(bytes(16384))
    events = connection.receive(headers(flags=WHOLE) + chunk * 4, 0.0)
    assert peers.ended_with(connection, events) == H2ErrorCode.FLOW_CONTROL_ERROR


def test_more_than_the_connections_window_ends_the_connection() -> None:
    connection = peers.server(Limits(unread_bytes_max=0))
    calls = headers(1, flags=WHOLE) + headers(3, flags=WHOLE)
    body = data(bytes(16000)) * 3 + data(bytes(16000), 3) * 2
    events = connection.receive(calls + body, 0.0)
    assert peers.failed_with(connection, events) is H2ErrorCode.FLOW_CONTROL_ERROR


# --- bounds ---------------------------------------------------------------------------------------


def test_streams_over_the_bound_are_refused() -> None:
    connection = peers.server(Limits(streams_max=2))
    connection.receive(headers(1) + headers(3) + headers(5), 0.0)
    (reset,) = peers.sent(connection)
    assert (reset.stream_id, reset.payload) == (5, word(H2ErrorCode.REFUSED_STREAM))
    assert connection.stream_count == 2


IDLE: list[tuple[str, Any]] = [
    ("PING", lambda n: frame(frames.PING, 0, 0, bytes(8))),
    ("SETTINGS", lambda n: settings()),
    ("empty DATA", lambda n: data(b"")),
    ("PRIORITY", lambda n: frame(frames.PRIORITY, 0, 1, word(3) + b"\0")),
    ("WINDOW_UPDATE", lambda n: window(1)),
    ("unknown", lambda n: frame(77, 0, 0, b"")),
]


def test_a_peer_that_goes_on_beyond_its_streams_is_ended_whatever_else_it_does() -> None:
    connection = peers.server(Limits(streams_max=1))
    connection.receive(headers(1, flags=WHOLE), 0.0)
    for stream_id in range(3, 5000, 2):
        events = connection.receive(data(bytes(10)) * 3 + headers(stream_id), 0.0)
        connection.consumed(1, 30)
        if connection.is_over:
            break
    assert peers.failed_with(connection, events) is H2ErrorCode.ENHANCE_YOUR_CALM
    assert 1000 < stream_id / 2 < 2000


def test_header_lists_far_over_the_bound_cost_more_than_a_frame() -> None:
    connection = peers.server()
    block = BLOCK + block_of([(b"a", b"")] * 1400)
    for stream_id in range(1, 1000, 2):
        events = connection.receive(headers(stream_id, block=block), 0.0)
        if connection.is_over:
            break
    assert peers.failed_with(connection, events) is H2ErrorCode.ENHANCE_YOUR_CALM
    assert stream_id / 2 < 100


@pytest.mark.parametrize("make", [row[1] for row in IDLE], ids=[row[0] for row in IDLE])
def test_frames_that_carry_nothing_are_counted(make: Any) -> None:  # noqa: ANN401
    connection = peers.server(Limits(idle_frames_max=100, idle_frames_per_s=10))
    connection.receive(headers(flags=WHOLE), 0.0)
    for number in range(98):
        connection.receive(make(number), 0.0)
    assert not connection.is_over
    events = []
    for number in range(98, 110):
        events += connection.receive(make(number), 0.0)
    assert peers.failed_with(connection, events) is H2ErrorCode.ENHANCE_YOUR_CALM


# --- any bytes ------------------------------------------------------------------------------------


def conversation(seed: int) -> bytes:
    """Calls as a client makes them, some of which break rules."""
    drawn = random.Random(seed)
    out = bytearray(peers.GREETING)
    stream_id = 1
    for _ in range(drawn.randrange(1, 30)):
        kind = drawn.randrange(8)
        if kind < 4:
            out += headers(stream_id, flags=WHOLE | (END if kind == 3 else 0))
            stream_id += 2
        elif kind < 6:
            last = max(1, stream_id - 2 * drawn.randrange(1, 4))
            flags = drawn.choice([0, END, PADDED])
            body = drawn.randbytes(drawn.randrange(40))
            out += data(b"\x01" + body + b"\0" if flags == PADDED else body, last, flags=flags)
        elif kind == 6:
            out += drawn.choice([settings(INITIAL_WINDOW_SIZE=drawn.randrange(9999)), window(7)])
        else:
            out += frame(drawn.randrange(11), drawn.randrange(256), 1, drawn.randbytes(8))
    return bytes(out)


def told(parts: list[bytes]) -> list[Any]:
    connection = Connection(Limits(), is_client=False)
    events = [event for part in parts for event in connection.receive(part, 0.0)]
    return [
        (
            type(event).__name__,
            *(value.pairs if hasattr(value, "pairs") else value for value in event),
        )
        for event in events
    ]


@given(seed=st.integers(0, 1 << 32), cuts=st.lists(st.integers(0, 3000), max_size=20))
def test_bytes_say_the_same_however_they_are_cut(seed: int, cuts: list[int]) -> None:
    whole = conversation(seed)
    marks = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    parts = [whole[begin:end] for begin, end in itertools.pairwise(marks)]
    assert told(parts) == told([whole])


@given(seed=st.integers(0, 1 << 32), is_client=st.booleans())
def test_no_bytes_are_an_error_of_ours(seed: int, is_client: bool) -> None:  # noqa: FBT001
    drawn = random.Random(seed)
    connection = peers.client() if is_client else peers.server()
    if is_client:
        connection.open_stream(BLOCK)
    noise = bytearray(conversation(seed)[len(peers.GREETING) :])
    for _ in range(drawn.randrange(5)):
        if noise:
            noise[drawn.randrange(len(noise))] = drawn.randrange(256)
    for event in connection.receive(bytes(noise), 0.0):
        if isinstance(event, HeadersReceived):
            connection.send_headers(event.stream_id, peers.RESPONSE_BLOCK)
            connection.send_data(event.stream_id, bytes(drawn.randrange(100_000)))
    assert connection.unread >= 0
