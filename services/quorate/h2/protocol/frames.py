"""Frame types, flags, settings and error codes of RFC 9113 (sections 4, 6 and 7)."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES: Final = 9
# The high and the low part of the length, the kind, the flags and the stream.
HEAD: Final = struct.Struct(">BHBBL")
WORD: Final = struct.Struct(">L")
SETTING: Final = struct.Struct(">HL")

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

ACK: Final = 0x1
END_STREAM: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20

ENABLE_PUSH: Final = 2
MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5
MAX_HEADER_LIST_SIZE: Final = 6

# Initial values until a SETTINGS frame changes them, and the limits.
WINDOW_BYTES: Final = 65_535
FRAME_BYTES: Final = 16_384
WINDOW_BYTES_MAX: Final = 2**31 - 1
FRAME_BYTES_MAX: Final = 2**24 - 1
STREAM_ID_MAX: Final = 2**31 - 1


class H2ErrorCode(IntEnum):
    """The error codes with which a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


def frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    """Encode a frame."""
    size = len(payload)
    return HEAD.pack(size >> 16, size & 0xFFFF, kind, flags, stream_id) + payload


class ProtocolViolationError(Exception):
    """The peer has violated the protocol, and the connection ends."""

    def __init__(self, code: H2ErrorCode, words: str) -> None:
        super().__init__(words)
        self.code = code


def unpadded(payload: bytes) -> bytes:
    """Return a frame's payload without its padding. Raises ProtocolViolationError."""
    if not payload or payload[0] >= len(payload):
        raise ProtocolViolationError(
            H2ErrorCode.PROTOCOL_ERROR, "a frame has less than its padding"
        )
    return payload[1 : len(payload) - payload[0]]


def check_size(size: int, wanted: int) -> None:
    """Raise ProtocolViolationError for a frame whose size does not match its type."""
    if size != wanted:
        raise ProtocolViolationError(
            H2ErrorCode.FRAME_SIZE_ERROR, f"a frame of {size} bytes, not {wanted}"
        )


def check_stream_id(stream_id: int, *, on_stream: bool) -> None:
    """Raise ProtocolViolationError for a frame of a stream on stream 0, or the reverse."""
    if bool(stream_id) != on_stream:
        raise ProtocolViolationError(
            H2ErrorCode.PROTOCOL_ERROR, f"a frame that may not be on {stream_id}"
        )
