"""Bounds for all that a peer decides, and the count of frames that carry nothing.

What is over one ends as RST_STREAM where the stream alone is at fault, otherwise as GOAWAY.
"""

from __future__ import annotations

from typing import Final

from quorate.h2.protocol import frames
from quorate.records.value_types import named_value

# A frame that moves something forward pays for this many that do not.
_CREDIT_OF_DATA: Final = 2
# The first frames of a stream pay when it has ended, and not at all where it is reset: otherwise a
# byte of DATA in each stream would pay for the reset (CVE-2023-44487, CVE-2025-8671).
UNPAID_FRAMES: Final = 4
# A stream that the client resets, or that is reset for what the client did, costs as much as this
# many frames that carry nothing.
RESET_COST: Final = 4
# Fields beyond the bound of a header list: so many cost as much as a frame.
FIELDS_OF_A_FRAME: Final = 32

# For how long a connection may be silent, in seconds, as rpc/channels.py asks it of gRPC. From the
# connection to its first byte; the handshake of TLS has as long before.
PREFACE_S: Final = 10.0
IDLE_S: Final = 300.0
PING_EVERY_S: Final = 10.0
PING_PATIENCE_S: Final = 2.0
# Bytes written to a socket that is full may stay there for so long, whatever its peer says.
UNREAD_S: Final = 60.0
# For the tasks of calls that were cancelled, and for bytes that are still on their way.
LAST_WORDS_S: Final = 1.0


@named_value
class Limits:
    """What one end of a connection lets the other do."""

    streams_max: int = 1024
    # Of the headers of a call as they are read: names, values, and 32 for each.
    header_bytes_max: int = 16 * 1024
    header_count_max: int = 128
    # Of a block as it is sent. More is no header list that anybody would accept.
    block_bytes_max: int = 32 * 1024
    block_frames_max: int = 16
    frame_bytes_max: int = frames.FRAME_BYTES
    # What may come on a stream, and on all streams together, before somebody has read it.
    stream_window_bytes: int = frames.WINDOW_BYTES
    window_bytes: int = frames.WINDOW_BYTES
    unread_bytes_max: int = 1024 * 1024
    # Of all connections of a listener together. Each may have a window's worth beyond it.
    unread_in_all_bytes_max: int = 64 * 1024 * 1024
    # Estimated memory of cached header blocks: what each connection may keep in any case, what it
    # may keep at most, and below which sum of a listener it may keep more than the first.
    cached_headers_own_bytes: int = 16 * 1024
    cached_headers_bytes_max: int = 256 * 1024
    cached_headers_in_all_bytes_max: int = 32 * 1024 * 1024
    # Frames that carry nothing: at once, and for how long.
    idle_frames_max: int = 4096
    idle_frames_per_s: int = 512
    # Streams opened beyond `streams_max`. Nothing else pays for these.
    refused_streams_max: int = 1024
    refused_streams_per_s: int = 64


class ListenerMemory:
    """Bytes that all connections of a listener hold together: unread requests, cached headers."""

    __slots__ = ("cached_headers_bytes", "unread_bytes")

    def __init__(self) -> None:
        self.cached_headers_bytes = 0
        self.unread_bytes = 0


class Patience:
    """Counts frames that carry nothing. Those that do, in either direction, pay for some."""

    __slots__ = ("_at_once", "_left", "_looked_s", "_per_s")

    def __init__(self, *, at_once: int, per_s: int) -> None:
        self._at_once = at_once
        self._per_s = per_s
        self._left = float(at_once)
        self._looked_s: float | None = None

    def earn(self, frames: int = 1) -> None:
        """So many frames moved something forward."""
        self._left = min(self._left + _CREDIT_OF_DATA * frames, self._at_once)

    def charge(self, frames: int) -> None:
        """So many more frames that carry nothing, which the next `spend` judges."""
        self._left -= frames

    def spend(self, now_s: float, frames: int = 1) -> bool:
        """So many more frames that carry nothing; False when that was one too many."""
        if self._looked_s is None:
            self._looked_s = now_s
        self._left -= frames
        if self._left >= 0:
            return True
        # Looked at only when it matters: most connections never come here.
        since_s = now_s - self._looked_s
        self._looked_s = now_s
        self._left += min(since_s * self._per_s, self._at_once)
        return self._left >= 0
