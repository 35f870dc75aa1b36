"""Limits on what a peer may send, and the flood limiter for idle frames.

An idle frame carries nothing for a call; DATA in either direction and sent HEADERS do. Exceeding a
limit is answered with RST_STREAM if only the stream is at fault, otherwise with GOAWAY.
"""

from __future__ import annotations

from typing import Final

from quorate.h2.protocol import frames
from quorate.records.value_types import keyword_value_type

# A frame that carries something pays for this many idle frames.
_CREDIT_OF_DATA: Final = 2
# The first frames of a stream pay when it has ended, and not at all if it is reset: otherwise a
# byte of DATA in each stream would pay for the reset (CVE-2023-44487, CVE-2025-8671).
UNPAID_FRAMES: Final = 4
# A stream that the client resets, or that is reset for the client's fault, costs as much as this
# many idle frames.
RESET_COST: Final = 4
# Fields beyond the limit of a header list: this many cost as much as a frame.
FIELDS_OF_A_FRAME: Final = 32

# How long a connection may be silent, in seconds, as rpc/channels.py configures it for grpcio. From
# the connection to its first byte; a TLS handshake has the same limit before.
PREFACE_S: Final = 10.0
IDLE_S: Final = 300.0
PING_EVERY_S: Final = 10.0
PING_PATIENCE_S: Final = 2.0
# Seconds for which bytes may wait in a full socket, whatever its peer sends.
UNREAD_S: Final = 60.0
# Seconds for the tasks of cancelled calls, and for bytes that are being sent.
LAST_WORDS_S: Final = 1.0


@keyword_value_type
class Limits:
    """The limits that one end of a connection sets for the other."""

    streams_max: int = 1024
    # Decoded headers of a call: names, values, and 32 bytes for each field.
    header_bytes_max: int = 16 * 1024
    header_count_max: int = 128
    # Encoded bytes of a block. A larger block cannot be an acceptable header list.
    block_bytes_max: int = 32 * 1024
    block_frames_max: int = 16
    frame_bytes_max: int = frames.FRAME_BYTES
    # Bytes that may arrive on a stream, and on all streams together, before they are read.
    stream_window_bytes: int = frames.WINDOW_BYTES
    window_bytes: int = frames.WINDOW_BYTES
    unread_bytes_max: int = 1024 * 1024
    # All connections of a listener together. Each may exceed it by a window.
    unread_in_all_bytes_max: int = 64 * 1024 * 1024
    # Estimated memory of cached header blocks: the guaranteed part of each connection, the most it
    # may keep, and the sum per listener above which only the guaranteed part is kept.
    cached_headers_own_bytes: int = 16 * 1024
    cached_headers_bytes_max: int = 256 * 1024
    cached_headers_in_all_bytes_max: int = 32 * 1024 * 1024
    # Idle frames: burst and rate.
    idle_frames_max: int = 4096
    idle_frames_per_s: int = 512
    # Streams opened beyond `streams_max`: burst and rate. Other frames do not pay for these.
    refused_streams_max: int = 1024
    refused_streams_per_s: int = 64


class ListenerMemory:
    """Bytes that all connections of a listener hold together: unread requests, cached headers."""

    __slots__ = ("cached_headers_bytes", "unread_bytes")

    def __init__(self) -> None:
        self.cached_headers_bytes = 0
        self.unread_bytes = 0

    def note_unread(self, size: int) -> None:
        """Record that `size` more bytes are unread; fewer if it is negative."""
        self.unread_bytes += size


class FloodLimiter:
    """Rate limiter for idle frames; frames that carry something add credit."""

    __slots__ = ("_at_once", "_left", "_looked_s", "_per_s")

    def __init__(self, *, at_once: int, per_s: int) -> None:
        self._at_once = at_once
        self._per_s = per_s
        self._left = float(at_once)
        self._looked_s: float | None = None

    def earn(self, frames: int = 1) -> None:
        """Add the credit of frames that carry something."""
        self._left = min(self._left + _CREDIT_OF_DATA * frames, self._at_once)

    def charge(self, frames: int) -> None:
        """Charge idle frames; the next `spend` decides."""
        self._left -= frames

    def spend(self, now_s: float, frames: int = 1) -> bool:
        """Charge idle frames; False if the limit is exceeded."""
        if self._looked_s is None:
            self._looked_s = now_s
        self._left -= frames
        if self._left >= 0:
            return True
        # The clock matters only here: most connections never reach this point.
        since_s = now_s - self._looked_s
        self._looked_s = now_s
        self._left += min(since_s * self._per_s, self._at_once)
        return self._left >= 0
