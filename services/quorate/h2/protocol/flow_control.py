"""Flow control (RFC 9113, 5.2): windows of a connection and of its streams, in both directions.

A peer sends DATA as far as the receive windows of this end allow. They grow when the application
has consumed what came, so that a slow reader slows its sender down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.h2.protocol import frames
from quorate.h2.protocol.limits import ListenerMemory
from quorate.h2.protocol.sender import Sender

if TYPE_CHECKING:
    from quorate.h2.protocol.limits import Limits


class FlowControl(Sender):
    """The windows of one connection."""

    def __init__(
        self, limits: Limits, *, is_client: bool, memory: ListenerMemory | None = None
    ) -> None:
        """Connections that are limited together share `memory`."""
        super().__init__(limits, is_client=is_client)
        self._memory = memory or ListenerMemory()
        self._in_window = limits.window_bytes
        self._ungranted = 0
        # Bytes received on any stream, and not consumed yet.
        self.unread = 0

    # --- send windows -----------------------------------------------------------------------------

    def _widen(self, stream_id: int, size: int) -> bool:
        """Widen a send window; False if it would be invalid."""
        if stream_id == 0:
            self._out_window += size
            is_valid = size > 0 and self._out_window <= frames.WINDOW_BYTES_MAX
        else:
            window = self._streams[stream_id].widen(size)
            if stream_id in self._stuck:
                self._waiting[stream_id] = self._stuck.pop(stream_id)
            is_valid = size > 0 and window <= frames.WINDOW_BYTES_MAX
        if is_valid and self._waiting:
            self._pump()
        return is_valid

    def _set_initial_window(self, size: int) -> bool:
        """Change the windows of all streams, send nothing; False if one would be too wide."""
        more = size - self._initial_window
        self._initial_window = size
        is_valid = size <= frames.WINDOW_BYTES_MAX
        for stream in self._streams.values():
            is_valid = stream.widen(more) <= frames.WINDOW_BYTES_MAX and is_valid
        self._waiting |= self._stuck
        self._stuck.clear()
        return is_valid

    # --- receive windows --------------------------------------------------------------------------

    def consumed(self, stream_id: int, size: int) -> None:
        """Note that `size` bytes of a stream were read; the peer may send as many more."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        stream.consume(size)
        self._note_unread(-size)
        if stream.can_receive and stream.read * 2 >= self._limits.stream_window_bytes:
            self._put_window(stream_id, stream.grant())
        if self._ungranted:
            self._grant()

    def _grant(self) -> None:
        """Let the peer send more on all streams, unless too much of it is unread."""
        limits = self._limits
        if self._ungranted * 2 < limits.window_bytes:
            return
        is_much = (
            self.unread > limits.unread_bytes_max
            or self._memory.unread_bytes > limits.unread_in_all_bytes_max
        )
        # A connection whose bytes are all read may continue, however much the others hold.
        if not self.unread or not is_much:
            self._in_window += self._ungranted
            self._put_window(0, self._ungranted)
            self._ungranted = 0

    def _note_unread(self, size: int) -> None:
        self.unread += size
        self._memory.note_unread(size)
