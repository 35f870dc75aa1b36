"""Errors that end a connection, and checks of frames."""

from __future__ import annotations

from quorate.h2.protocol.frames import H2ErrorCode


class BreachError(Exception):
    """The peer has violated the protocol, and the connection ends."""

    def __init__(self, code: H2ErrorCode, words: str) -> None:
        super().__init__(words)
        self.code = code


def unpadded(payload: bytes) -> bytes:
    """Return a frame's payload without its padding. Raises BreachError."""
    if not payload or payload[0] >= len(payload):
        raise BreachError(H2ErrorCode.PROTOCOL_ERROR, "a frame has less than its padding")
    return payload[1 : len(payload) - payload[0]]


def check_size(size: int, wanted: int) -> None:
    """Raise BreachError for a frame whose size does not match its type."""
    if size != wanted:
        raise BreachError(H2ErrorCode.FRAME_SIZE_ERROR, f"a frame of {size} bytes, not {wanted}")


def check_place(stream_id: int, *, on_stream: bool) -> None:
    """Raise BreachError for a stream frame on stream 0, or a connection frame on a stream."""
    if bool(stream_id) != on_stream:
        raise BreachError(H2ErrorCode.PROTOCOL_ERROR, f"a frame that may not be on {stream_id}")
