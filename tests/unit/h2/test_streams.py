"""Bytes that wait on a stream."""

from __future__ import annotations

from quorate.h2.streams import Stream


def test_bytes_that_wait_leave_in_order_as_many_as_there_is_room_for() -> None:
    stream = Stream(1, in_window=1, out_window=1)
    stream.put_back(b"abc")
    stream.put_back(b"de")
    assert [stream.take(2), stream.take(9), stream.take(9)] == [b"ab", b"c", b"de"]
    assert stream.queued == 0
