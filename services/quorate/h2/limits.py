"""Bounds for all that a peer decides, and the count of frames that carry nothing.

What is over one ends as RST_STREAM where the stream alone is at fault, otherwise as GOAWAY.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.h2 import frames

# A frame that moves something forward pays for this many that do not.
_CREDIT_OF_DATA: Final = 2

# For how long a connection may be silent, in seconds, as rpc/channels.py asks it of gRPC. From the
# connection to its first byte; the handshake of TLS has as long before.
PREFACE_S: Final = 10.0
IDLE_S: Final = 300.0
PING_EVERY_S: Final = 10.0
PING_PATIENCE_S: Final = 2.0
# Bytes written to a socket that is full may stay there for so long, whatever its peer says.
UNREAD_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
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


class ListenerMemory:
    """Bytes that all connections of a listener hold together: unread requests, cached headers."""

    __slots__ = ("cached_headers_bytes", "unread_bytes")

    def __init__(self) -> None:
        self.cached_headers_bytes = 0
        self.unread_bytes = 0


class Patience:
    """Counts frames that carry nothing. Those that do, in either direction, pay for some."""

    __slots__ = ("_left", "_limits", "_looked_s")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._left = float(limits.idle_frames_max)
        self._looked_s: float | None = None

    def earn(self) -> None:
        """Something was moved forward."""
        self._left = min(self._left + _CREDIT_OF_DATA, self._limits.idle_frames_max)

    def spend(self, now_s: float, frames: int = 1) -> bool:
        """So many more frames that carry nothing; False when that was one too many."""
        self._left -= frames
        if self._left >= 0:
            return True
        # Looked at only when it matters: most connections never come here.
        limits = self._limits
        since_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        self._looked_s = now_s
        self._left += min(since_s * limits.idle_frames_per_s, limits.idle_frames_max)
        return self._left >= 0
