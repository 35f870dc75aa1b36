"""What breaks a connection, whatever it is in the middle of."""

from __future__ import annotations

from quorate.h2.protocol.frames import H2ErrorCode


class BreachError(Exception):
    """The peer has broken a rule, and the connection ends."""

    def __init__(self, code: H2ErrorCode, words: str) -> None:
        super().__init__(words)
        self.code = code


def unpadded(payload: bytes) -> bytes:
    """What a frame holds beside its padding. Raises BreachError."""
    if not payload or payload[0] >= len(payload):
        raise BreachError(H2ErrorCode.PROTOCOL_ERROR, "a frame has less than its padding")
    return payload[1 : len(payload) - payload[0]]


def check_size(size: int, wanted: int) -> None:
    """Raises BreachError for a frame of another size than its kind has."""
    if size != wanted:
        raise BreachError(H2ErrorCode.FRAME_SIZE_ERROR, f"a frame of {size} bytes, not {wanted}")


def check_place(stream_id: int, *, on_stream: bool) -> None:
    """Raises BreachError for a frame of a stream on none, or the other way round."""
    if bool(stream_id) != on_stream:
        raise BreachError(H2ErrorCode.PROTOCOL_ERROR, f"a frame that may not be on {stream_id}")
