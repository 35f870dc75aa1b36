"""Header blocks, in one frame or in several."""

from __future__ import annotations

from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import H2ErrorCode, frame
from tests.unit.h2 import peers
from tests.unit.h2.peers import BLOCK, headers


def test_a_block_in_endless_pieces_is_ended() -> None:
    connection = peers.server()
    piece = frame(frames.CONTINUATION, 0, 1, b"")
    events = connection.receive(headers(flags=0, block=b"") + piece * 20, 0.0)
    assert peers.failed_with(connection, events) is H2ErrorCode.ENHANCE_YOUR_CALM


def test_a_block_that_is_far_too_large_is_ended_before_it_is_read() -> None:
    connection = peers.server()
    piece = frame(frames.CONTINUATION, 0, 1, bytes(16384))
    events = connection.receive(headers(flags=0, block=b"") + piece * 5, 0.0)
    assert peers.failed_with(connection, events) is H2ErrorCode.ENHANCE_YOUR_CALM


def test_a_block_that_unfolds_too_far_ends_the_connection() -> None:
    connection = peers.server()
    # One large entry in the table, and then a byte for each time that it is named.
    entry = b"\x40\x01x\x7f\xa1\x1e" + bytes(4000)
    events = connection.receive(headers(block=BLOCK + entry + b"\xbe" * 1000), 0.0)
    assert peers.failed_with(connection, events) is H2ErrorCode.ENHANCE_YOUR_CALM
