"""Requests that are not gRPC are answered by headers, and hold nothing while they last."""

from __future__ import annotations

import time

import pytest

from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import H2ErrorCode, frame
from quorate.h2.protocol.header_codec import block_of
from quorate.h2.server.non_grpc_requests import REST_S, TEXT, UNSENT_MAX
from tests.unit.h2 import peers
from tests.unit.h2.by_hand import Wire
from tests.unit.h2.peers import END, REQUEST, WHOLE, word

GET = block_of([(b":method", b"GET"), *REQUEST[1:]])
HTML = block_of([*REQUEST[:-1], (b"content-type", b"text/html")])


def begun(*, flags: int = WHOLE, block: bytes = GET) -> Wire:
    """A connection whose client grants no window, and has sent one request."""
    wire = Wire()
    wire.greet()
    wire.send(peers.settings(INITIAL_WINDOW_SIZE=0), peers.headers(flags=flags, block=block))
    return wire


@pytest.mark.parametrize(("block", "status"), [(GET, b"405"), (HTML, b"415")])
async def test_it_is_answered_without_a_task(block: bytes, status: bytes) -> None:
    wire = Wire()
    wire.greet()
    wire.send(peers.headers(block=block))
    assert wire.link.tasks == []
    assert wire.link.connection.stream_count == 0
    await wire.settle()
    head, body = wire.answers()[-2:]
    assert head.payload == block_of([(b":status", status), (b"content-type", b"text/plain")])
    assert (body.flags, body.payload) == (END, TEXT)


async def test_without_a_window_few_texts_wait_and_other_answers_are_headers() -> None:
    wire = begun(flags=END | WHOLE)
    for stream_id in range(3, 201, 2):
        wire.send(peers.headers(stream_id, block=GET))
    assert wire.link.tasks == []
    assert wire.link.connection.stream_count == len(wire.link._refusals) == UNSENT_MAX
    await wire.settle()
    heads = [one for one in wire.answers() if one.kind == frames.HEADERS]
    assert [one.flags for one in heads] == [WHOLE] * UNSENT_MAX + [END | WHOLE] * 92
    wire.send(peers.settings(INITIAL_WINDOW_SIZE=1000))
    await wire.settle()
    assert [one.payload for one in wire.answers() if one.kind == frames.DATA] == [TEXT] * UNSENT_MAX
    assert wire.link.connection.stream_count == len(wire.link._refusals) == 0


async def test_a_text_that_does_not_leave_is_dropped() -> None:
    wire = begun(flags=END | WHOLE)
    now_s = time.monotonic()
    wire.link.check_timeouts(now_s + REST_S - 1)
    assert wire.link.connection.stream_count == 1
    wire.link.check_timeouts(now_s + REST_S + 1)
    await wire.settle()
    assert wire.answers()[-1].payload == word(H2ErrorCode.CANCEL)
    assert wire.link.connection.stream_count == len(wire.link._refusals) == 0


async def test_its_rest_is_read_and_discarded_before_it_is_answered() -> None:
    wire = begun()
    for _ in range(20):
        wire.send(peers.data(bytes(16_000)))
        await wire.settle()
    assert wire.link.connection.unread == 0
    assert frames.HEADERS not in [one.kind for one in wire.answers()]
    wire.send(peers.data(b"", flags=END))
    await wire.settle()
    assert wire.answers()[-1].kind == frames.HEADERS


async def test_its_trailers_end_it() -> None:
    wire = begun()
    wire.send(peers.headers(block=peers.TRAILERS_BLOCK))
    await wire.settle()
    assert wire.answers()[-1].kind == frames.HEADERS


async def test_what_is_wrong_with_its_rest_is_told() -> None:
    wire = begun()
    wire.send(peers.headers(flags=WHOLE, block=GET))
    await wire.settle()
    assert wire.answers()[-1].payload == word(H2ErrorCode.PROTOCOL_ERROR)
    assert len(wire.link._refusals) == 0


async def test_a_client_that_takes_it_back_gets_no_answer() -> None:
    wire = begun()
    wire.send(frame(frames.RST_STREAM, 0, 1, word(H2ErrorCode.CANCEL)))
    wire.link.check_timeouts(time.monotonic() + REST_S + 1)
    await wire.settle()
    assert frames.HEADERS not in [one.kind for one in wire.answers()]


async def test_its_rest_is_not_waited_for_long() -> None:
    wire = begun()
    now_s = time.monotonic()
    wire.link.check_timeouts(now_s + REST_S - 1)
    await wire.settle()
    assert frames.HEADERS not in [one.kind for one in wire.answers()]
    wire.link.check_timeouts(now_s + REST_S + 1)
    await wire.settle()
    assert wire.answers()[-1].kind == frames.HEADERS
    wire.send(peers.settings(INITIAL_WINDOW_SIZE=1000))
    await wire.settle()
    assert wire.answers()[-1].payload == word(H2ErrorCode.NO_ERROR)
    assert wire.link.connection.stream_count == 0
