"""Bytes that wait on a stream."""

from __future__ import annotations

from quorate.h2.protocol.stream import Stream


def test_bytes_that_wait_leave_in_order_as_many_as_there_is_room_for() -> None:
    stream = Stream(1, in_window=1, out_window=1)
    stream.put_back(b"abc")
    stream.put_back(b"de")
    assert [stream.take(2), stream.take(9), stream.take(9)] == [b"ab", b"c", b"de"]
    assert stream.queued == 0


def test_what_is_left_of_a_large_message_is_not_copied_for_each_frame() -> None:
    stream = Stream(1, in_window=1, out_window=1)
    message = b"abcdefgh"
    stream.put_back(message)
    assert [stream.take(3), stream.take(3)] == [b"abc", b"def"]
    assert stream.queue is not None
    assert stream.queue[0] is message
    assert stream.queued == 2
    assert stream.take(3) == b"gh"
    assert not stream.queue
