"""Frames that no connection takes."""

from __future__ import annotations

import pytest

from quorate.h2.checks import BreachError, check_place, check_size, unpadded
from quorate.h2.protocol.frames import H2ErrorCode


def test_padding_is_taken_off() -> None:
    assert unpadded(b"\x02abc\0\0") == b"abc"
    assert unpadded(b"\x02\0\0") == b""


@pytest.mark.parametrize("payload", [b"", b"\x01", b"\x04abc"])
def test_there_is_no_more_padding_than_frame(payload: bytes) -> None:
    with pytest.raises(BreachError) as raised:
        unpadded(payload)
    assert raised.value.code is H2ErrorCode.PROTOCOL_ERROR


def test_sizes_and_places_are_those_of_the_kind() -> None:
    check_size(4, 4)
    check_place(1, on_stream=True)
    check_place(0, on_stream=False)
    with pytest.raises(BreachError, match="5 bytes, not 4") as raised:
        check_size(5, 4)
    assert raised.value.code is H2ErrorCode.FRAME_SIZE_ERROR
    for stream_id in (0, 1):
        with pytest.raises(BreachError, match=f"may not be on {stream_id}"):
            check_place(stream_id, on_stream=not stream_id)
