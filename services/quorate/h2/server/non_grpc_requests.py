"""Rejects requests that are not gRPC with an HTTP status, without a task or a slot.

The response is sent when the request is complete: an earlier one would hide errors in the rest of
the request. A few responses of a connection have a line of text, which may have to wait for a
window. The others are headers only, so that a client that grants no window cannot make this end
hold data.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.protocol.header_codec import block_of

if TYPE_CHECKING:
    from quorate.h2.protocol.connection import Connection

# Seconds for the rest of a request, and for a text to be sent.
REST_S: Final = 5.0
# The most texts of one connection that wait for a window.
UNSENT_MAX: Final = 8
TEXT: Final = b"This server speaks gRPC.\n"


class HttpRefusals:
    """The rejected requests of one connection. Times are of the monotonic clock."""

    __slots__ = ("_connection", "_unsent", "_waiting")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # By stream: its HTTP status, and the time limit for the rest. The oldest is the first.
        self._waiting: dict[int, tuple[bytes, float]] = {}
        # By stream: the time limit for sending its text.
        self._unsent: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._unsent)

    def begin(self, stream_id: int, status: bytes, *, is_last: bool) -> None:
        """Reject a request whose headers have arrived."""
        self._waiting[stream_id] = (status, time.monotonic() + REST_S)
        self.receive(stream_id, 0, is_last=is_last)

    def receive(self, stream_id: int, size: int, *, is_last: bool) -> None:
        """Discard more of a request, and respond at its end."""
        if stream_id in self._waiting:
            self._connection.consumed(stream_id, size)
            if is_last:
                self._answer(stream_id, time.monotonic())

    def look(self, now_s: float) -> bool:
        """End the requests that have timed out; return whether there were any."""
        unsent = [stream_id for stream_id, due_s in self._unsent.items() if due_s <= now_s]
        for stream_id in unsent:
            del self._unsent[stream_id]
            self._connection.reset(stream_id, H2ErrorCode.CANCEL)
        late = [stream_id for stream_id, (_, due_s) in self._waiting.items() if due_s <= now_s]
        for stream_id in late:
            self._answer(stream_id, now_s)
        return bool(unsent or late)

    def forget(self, stream_id: int) -> None:
        """Remove a stream that has ended, or whose text has been sent."""
        self._waiting.pop(stream_id, None)
        self._unsent.pop(stream_id, None)

    def _answer(self, stream_id: int, now_s: float) -> None:
        status, _ = self._waiting.pop(stream_id)
        block = block_of([(b":status", status), (b"content-type", b"text/plain")])
        has_text = len(self._unsent) < UNSENT_MAX
        self._connection.send_headers(stream_id, block, is_last=not has_text)
        if has_text and not self._connection.send_data(stream_id, TEXT, is_last=True):
            self._unsent[stream_id] = now_s + REST_S
