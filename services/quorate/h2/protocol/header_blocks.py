"""Reassembles header blocks from HEADERS and CONTINUATION frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import H2ErrorCode, ProtocolViolationError, unpadded
from quorate.h2.protocol.header_codec import BlockReader

if TYPE_CHECKING:
    from quorate.h2.protocol.header_codec import Fields
    from quorate.h2.protocol.limits import Limits, ListenerMemory


class HeaderBlocks:
    """The block that was begun last; its fields are decoded with its last frame.

    `stream_id` is its stream, `is_last` whether it ends the peer's side of that stream, and
    `is_circular` whether it declares that the stream depends on itself.
    """

    def __init__(self, limits: Limits, memory: ListenerMemory) -> None:
        self._limits = limits
        self._reader = BlockReader(limits, memory)
        self._bytes = bytearray()
        self._frames = 0
        # Whether only the rest of a block may follow.
        self.is_open = False
        self.stream_id = 0
        self.is_last = False
        self.is_circular = False

    def begin(self, flags: int, stream_id: int, payload: bytes) -> Fields | None:
        """Take a HEADERS frame; return its fields if it holds the whole block.

        Raises ProtocolViolationError, and BlockError for a block that cannot be read.
        """
        if stream_id == 0:
            raise ProtocolViolationError(H2ErrorCode.PROTOCOL_ERROR, "HEADERS on stream 0")
        if flags & frames.PADDED:
            payload = unpadded(payload)
        depends_on = None
        if flags & frames.WITH_PRIORITY:
            if len(payload) < 5:
                raise ProtocolViolationError(
                    H2ErrorCode.FRAME_SIZE_ERROR, "HEADERS without their priority"
                )
            depends_on = frames.WORD.unpack_from(payload)[0] & frames.STREAM_ID_MAX
            payload = payload[5:]
        self.stream_id, self.is_last = stream_id, bool(flags & frames.END_STREAM)
        # Checked when the block has been decoded, which may change the table.
        self.is_circular = depends_on == stream_id
        if flags & frames.END_HEADERS:
            return self._reader.read(payload)
        self._bytes, self._frames, self.is_open = bytearray(payload), 1, True
        return None

    def on_continuation(self, flags: int, payload: bytes) -> Fields | None:
        """Take a CONTINUATION frame; return the fields if it is the last.

        Raises as `begin` does.
        """
        if not self.is_open:
            raise ProtocolViolationError(H2ErrorCode.PROTOCOL_ERROR, "CONTINUATION of nothing")
        self._frames += 1
        limits = self._limits
        size = len(self._bytes) + len(payload)
        if size > limits.block_bytes_max or self._frames > limits.block_frames_max:
            words = f"a header block of {size} bytes in {self._frames} frames"
            raise ProtocolViolationError(H2ErrorCode.ENHANCE_YOUR_CALM, words)
        self._bytes += payload
        if not flags & frames.END_HEADERS:
            return None
        block, self._bytes, self.is_open = bytes(self._bytes), bytearray(), False
        return self._reader.read(block)

    def close(self) -> None:
        """Release the memory of cached blocks: the connection is closed."""
        self._reader.close()
