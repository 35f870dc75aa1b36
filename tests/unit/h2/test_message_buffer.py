"""Messages that a call receives, and the room that is given for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quorate.h2 import grpc_framing
from quorate.h2.message_buffer import MESSAGES_PER_ITERATION, IncompleteError, MessageBuffer
from quorate.h2.protocol import frames
from tests.unit.h2 import peers

if TYPE_CHECKING:
    from quorate.h2.protocol.connection import Connection


def called(bytes_max: int = 1 << 20) -> tuple[Connection, MessageBuffer]:
    connection = peers.server()
    connection.receive(peers.headers(flags=peers.WHOLE), 0.0)
    return connection, MessageBuffer(connection, 1, bytes_max=bytes_max, flush_soon=lambda: None)


def put(connection: Connection, message_buffer: MessageBuffer, payload: bytes) -> None:
    connection.receive(peers.data(payload), 0.0)
    message_buffer.feed(payload, is_last=False)


def granted(connection: Connection) -> int:
    """The number of further bytes that the stream may carry."""
    updates = [one for one in peers.sent(connection) if one.kind == frames.WINDOW_UPDATE]
    return sum(frames.WORD.unpack(one.payload)[0] for one in updates if one.stream_id == 1)


async def test_what_is_there_is_taken_at_once() -> None:
    connection, inbox = called()
    put(connection, inbox, grpc_framing.frame_message(b"a") + grpc_framing.frame_message(b"b"))
    inbox.feed(b"", is_last=True)
    assert [await inbox.next(), await inbox.next(), await inbox.next()] == [b"a", b"b", None]
    assert connection.unread == 0


async def test_whoever_takes_many_small_messages_lets_others_have_their_turn() -> None:
    connection, inbox = called()
    put(connection, inbox, grpc_framing.frame_message(b"") * 2 * MESSAGES_PER_ITERATION)
    inbox.feed(b"", is_last=True)
    taken = 0

    async def take_all() -> None:
        nonlocal taken
        while await inbox.next() is not None:
            taken += 1

    taking = asyncio.ensure_future(take_all())
    for turn in range(2):
        await asyncio.sleep(0)
        assert taken == (turn + 1) * MESSAGES_PER_ITERATION
    await taking


async def test_a_message_that_nobody_waits_for_gets_no_more_room() -> None:
    connection, inbox = called()
    put(connection, inbox, b"\0\0\x01\0\0" + bytes(16_000))
    put(connection, inbox, bytes(16_000))
    put(connection, inbox, bytes(16_000))
    assert granted(connection) == 0
    waiting = asyncio.ensure_future(inbox.next())
    await asyncio.sleep(0)
    assert granted(connection) == 48_005
    put(connection, inbox, bytes(16_384))
    put(connection, inbox, bytes(1152))
    assert await waiting == bytes(65_536)
    assert connection.unread == 0


async def test_half_a_message_at_the_end_is_an_error() -> None:
    connection, inbox = called()
    put(connection, inbox, b"\0\0\0\0\x05ab")
    inbox.feed(b"", is_last=True)
    with pytest.raises(IncompleteError):
        await inbox.next()


async def test_a_message_over_the_bound_is_an_error_at_its_length() -> None:
    connection, inbox = called(bytes_max=10)
    put(connection, inbox, b"\0\0\0\0\x0b")
    with pytest.raises(grpc_framing.OversizedError, match=r"11 vs\. 10"):
        await inbox.next()
