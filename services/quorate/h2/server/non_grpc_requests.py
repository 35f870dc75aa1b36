"""Requests that are not gRPC: refused with a status of HTTP, without a task or a slot.

The answer is sent when the request is complete: an earlier one would hide what is wrong with the
rest of it. A few answers of a connection have a line of text, which may have to wait for a window;
the others are headers alone, so that a client which grants no window makes this end hold nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.protocol.header_codec import block_of

if TYPE_CHECKING:
    from quorate.h2.protocol.connection import Connection

# For the rest of a request, and for a text to leave.
REST_S: Final = 5.0
# Texts of one connection that wait for a window.
UNSENT_MAX: Final = 8
TEXT: Final = b"This server speaks gRPC.\n"


class HttpRefusals:
    """The requests of one connection that are refused. Times are of the monotonic clock."""

    __slots__ = ("_connection", "_unsent", "_waiting")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # By stream: its HTTP status, and when the rest has to be there. The oldest is the first.
        self._waiting: dict[int, tuple[bytes, float]] = {}
        # By stream: when its text has to have left.
        self._unsent: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._unsent)

    def begin(self, stream_id: int, status: bytes, *, is_last: bool) -> None:
        """Refuse a request whose headers have come."""
        self._waiting[stream_id] = (status, time.monotonic() + REST_S)
        self.receive(stream_id, 0, is_last=is_last)

    def receive(self, stream_id: int, size: int, *, is_last: bool) -> None:
        """More of a request, which is discarded; answers it at its end."""
        if stream_id in self._waiting:
            self._connection.consumed(stream_id, size)
            if is_last:
                self._answer(stream_id, time.monotonic())

    def look(self, now_s: float) -> bool:
        """End the requests whose time is over; whether there were any."""
        unsent = [stream_id for stream_id, due_s in self._unsent.items() if due_s <= now_s]
        for stream_id in unsent:
            del self._unsent[stream_id]
            self._connection.reset(stream_id, H2ErrorCode.CANCEL)
        late = [stream_id for stream_id, (_, due_s) in self._waiting.items() if due_s <= now_s]
        for stream_id in late:
            self._answer(stream_id, now_s)
        return bool(unsent or late)

    def forget(self, stream_id: int) -> None:
        """The stream has ended, or its text has left."""
        self._waiting.pop(stream_id, None)
        self._unsent.pop(stream_id, None)

    def _answer(self, stream_id: int, now_s: float) -> None:
        status, _ = self._waiting.pop(stream_id)
        block = block_of([(b":status", status), (b"content-type", b"text/plain")])
        has_text = len(self._unsent) < UNSENT_MAX
        self._connection.send_headers(stream_id, block, is_last=not has_text)
        if has_text and not self._connection.send_data(stream_id, TEXT, is_last=True):
            self._unsent[stream_id] = now_s + REST_S
