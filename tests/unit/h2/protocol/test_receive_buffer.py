"""Received bytes come out in their order, in pieces."""

from __future__ import annotations

from quorate.h2.protocol.receive_buffer import PIECE_BYTES, ReceivedBytes


def test_bytes_come_in_pieces_and_in_order() -> None:
    received = ReceivedBytes()
    assert not received
    assert received.take() == b""
    data = bytes(number % 251 for number in range(2 * PIECE_BYTES + 10))
    received.put(data[:100])
    received.put(data[100:-5])
    taken = [received.take()]
    received.put(data[-5:])
    while received:
        taken.append(received.take())
    assert b"".join(taken) == data
    assert max(map(len, taken)) == PIECE_BYTES


def test_what_is_left_can_be_discarded() -> None:
    received = ReceivedBytes()
    received.put(bytes(3 * PIECE_BYTES))
    received.take()
    received.clear()
    assert not received
    assert received.take() == b""
