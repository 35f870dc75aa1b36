"""A frame as bytes."""

from __future__ import annotations

from quorate.h2.protocol import frames


def test_a_frame_begins_with_its_length_kind_flags_and_stream() -> None:
    made = frames.frame(frames.DATA, frames.END_STREAM, 0x01020304, bytes(70_000))
    assert made[:9] == b"\x01\x11\x70\x00\x01\x01\x02\x03\x04"
    assert len(made) == 70_009
