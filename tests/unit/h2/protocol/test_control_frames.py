"""Settings, windows, pings and resets, and streams that come to an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from quorate.h2.protocol import frames
from quorate.h2.protocol.events import GoAwayReceived, PingAnswered, StreamReset
from quorate.h2.protocol.frames import H2ErrorCode, frame
from quorate.h2.protocol.limits import Limits
from tests.unit.h2 import peers
from tests.unit.h2.peers import BLOCK, END, WHOLE, data, headers, settings, word

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_reset_by_the_peer_is_told() -> None:
    connection = peers.server()
    events = connection.receive(headers() + frame(frames.RST_STREAM, 0, 1, word(8)), 0.0)
    assert events[1:] == [StreamReset(1, 8, "", is_peers=True)]


def test_pings_and_settings_are_answered_and_unknown_frames_are_not() -> None:
    connection = peers.server()
    connection.receive(
        frame(frames.PING, 0, 0, b"12345678") + settings() + frame(99, 0, 3, b"x"), 0.0
    )
    assert peers.sent(connection) == [
        (frames.PING, 1, 0, b"12345678"),
        (frames.SETTINGS, 1, 0, b""),
    ]
    assert connection.receive(frame(frames.PING, 1, 0, bytes(8)), 0.0) == [PingAnswered()]


def test_a_peer_that_goes_away_says_up_to_where() -> None:
    connection = peers.client()
    payload = word(5) + word(0) + b"bye"
    assert connection.receive(frame(frames.GOAWAY, 0, 0, payload), 0.0) == [
        GoAwayReceived(5, 0, "bye")
    ]


def test_who_goes_away_refuses_what_begins_later() -> None:
    connection = peers.server()
    connection.receive(headers(1), 0.0)
    connection.go_away(H2ErrorCode.NO_ERROR)
    connection.receive(headers(3), 0.0)
    last = peers.sent(connection)[-1]
    assert (last.stream_id, last.payload) == (3, word(H2ErrorCode.REFUSED_STREAM))


BYTE: Final = b"\x00"
CANCEL: Final = word(H2ErrorCode.CANCEL)
# What a client may do to a stream on which it has sent a byte, so that the stream is reset.
RESETS: Final[dict[str, Callable[[int], bytes]]] = {
    "RST_STREAM": lambda stream_id: frame(frames.RST_STREAM, 0, stream_id, CANCEL),
    "WINDOW_UPDATE of 0": lambda stream_id: peers.window(0, stream_id),
    "a window too wide": lambda stream_id: peers.window(frames.WINDOW_BYTES_MAX, stream_id),
    "DATA after the end": lambda stream_id: data(b"", stream_id, flags=END) + data(b"", stream_id),
    "HEADERS again": lambda stream_id: headers(stream_id, flags=WHOLE),
    "PRIORITY": lambda stream_id: frame(frames.PRIORITY, 0, stream_id, word(stream_id) + BYTE),
}


@pytest.mark.parametrize("reset", RESETS.values(), ids=RESETS)
@pytest.mark.parametrize("data_frames", [0, 1, 4])
def test_streams_that_are_reset_again_and_again_end_the_connection(
    data_frames: int, reset: Callable[[int], bytes]
) -> None:
    """Also where a byte of DATA comes on each: CVE-2023-44487 and CVE-2025-8671."""
    connection = peers.server()
    for stream_id in range(1, 10_000, 2):
        begun = headers(stream_id, flags=WHOLE) + data(BYTE, stream_id) * data_frames
        events = connection.receive(begun + reset(stream_id), 0.0)
        if connection.is_over:
            break
        connection.send_headers(stream_id, peers.TRAILERS_BLOCK, is_last=True)
    assert peers.failed_with(connection, events) is H2ErrorCode.ENHANCE_YOUR_CALM


def test_a_client_may_cancel_all_its_calls_at_once_and_go_on() -> None:
    connection = peers.server()
    for round_s in range(3):
        first = 1 + 10_000 * round_s
        for stream_id in range(first, first + 2 * 1000, 2):
            connection.receive(headers(stream_id), round_s * 10.0)
        for stream_id in range(first, first + 2 * 1000, 2):
            connection.receive(frame(frames.RST_STREAM, 0, stream_id, CANCEL), round_s * 10.0)
        assert not connection.is_over


def test_a_client_that_cancels_some_calls_is_paid_for_by_the_others() -> None:
    connection = peers.server()
    for stream_id in range(1, 40_000, 2):
        connection.receive(headers(stream_id, flags=WHOLE) + data(BYTE, stream_id, flags=END), 0.0)
        if stream_id % 4 == 1:
            connection.send_headers(stream_id, peers.RESPONSE_BLOCK)
            connection.send_data(stream_id, BYTE)
            connection.send_headers(stream_id, peers.TRAILERS_BLOCK, is_last=True)
        else:
            connection.receive(frame(frames.RST_STREAM, 0, stream_id, CANCEL), 0.0)
        assert not connection.is_over


def test_resets_by_the_server_for_what_its_client_does_count_too() -> None:
    connection = peers.server(Limits(idle_frames_max=8, idle_frames_per_s=0))
    for stream_id in (1, 3, 5):
        connection.receive(headers(stream_id), 0.0)
        connection.reset(stream_id, H2ErrorCode.CANCEL)
    events = connection.receive(frame(frames.PING, 0, 0, bytes(8)), 0.0)
    assert peers.failed_with(connection, events) is H2ErrorCode.ENHANCE_YOUR_CALM


def test_a_server_may_reset_all_calls_of_its_client() -> None:
    connection = peers.client()
    for _ in range(3000):
        stream_id = connection.open_stream(BLOCK)
        connection.receive(frame(frames.RST_STREAM, 0, stream_id, CANCEL), 0.0)
    assert not connection.is_over
