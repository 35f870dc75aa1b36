"""A frame as bytes."""

from __future__ import annotations

import pytest

from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import (
    H2ErrorCode,
    ProtocolViolationError,
    check_size,
    check_stream_id,
    unpadded,
)


def test_a_frame_begins_with_its_length_kind_flags_and_stream() -> None:
    made = frames.frame(frames.DATA, frames.END_STREAM, 0x01020304, bytes(70_000))
    assert made[:9] == b"\x01\x11\x70\x00\x01\x01\x02\x03\x04"
    assert len(made) == 70_009


def test_padding_is_taken_off() -> None:
    assert unpadded(b"\x02abc\0\0") == b"abc"
    assert unpadded(b"\x02\0\0") == b""


@pytest.mark.parametrize("payload", [b"", b"\x01", b"\x04abc"])
def test_there_is_no_more_padding_than_frame(payload: bytes) -> None:
    with pytest.raises(ProtocolViolationError) as raised:
        unpadded(payload)
    assert raised.value.code is H2ErrorCode.PROTOCOL_ERROR


def test_sizes_and_places_are_those_of_the_kind() -> None:
    check_size(4, 4)
    check_stream_id(1, on_stream=True)
    check_stream_id(0, on_stream=False)
    with pytest.raises(ProtocolViolationError, match="5 bytes, not 4") as raised:
        check_size(5, 4)
    assert raised.value.code is H2ErrorCode.FRAME_SIZE_ERROR
    for stream_id in (0, 1):
        with pytest.raises(ProtocolViolationError, match=f"may not be on {stream_id}"):
            check_stream_id(stream_id, on_stream=not stream_id)
