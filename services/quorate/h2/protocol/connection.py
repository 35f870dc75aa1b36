"""Sans-I/O HTTP/2 connection: bytes in, events out, bytes to send.

RFC 9113 and the given limits define what a peer may do. A violation that concerns one stream ends
the stream; any other ends the connection, with the reason in a GOAWAY.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.h2.protocol import frames
from quorate.h2.protocol.control_frames import ControlFrames
from quorate.h2.protocol.events import (
    ConnectionFailed,
    DataReceived,
    HeadersReceived,
)
from quorate.h2.protocol.frames import H2ErrorCode, ProtocolViolationError, unpadded
from quorate.h2.protocol.header_blocks import HeaderBlocks
from quorate.h2.protocol.header_codec import (
    BlockError,
    request_error,
    response_error,
    trailers_error,
)
from quorate.h2.protocol.limits import FIELDS_OF_A_FRAME, RESET_COST, FloodLimiter

if TYPE_CHECKING:
    from quorate.h2.protocol.events import Event
    from quorate.h2.protocol.header_codec import Fields
    from quorate.h2.protocol.limits import Limits, ListenerMemory
    from quorate.h2.protocol.stream import Stream


class Connection(ControlFrames):
    """One end of a connection. Times are arguments, with an arbitrary origin."""

    def __init__(
        self, limits: Limits, *, is_client: bool, memory: ListenerMemory | None = None
    ) -> None:
        """Connections that are limited together share `memory`."""
        super().__init__(limits, is_client=is_client, memory=memory)
        self._in = b""
        self._preface = b"" if is_client else frames.PREFACE
        self._header_blocks = HeaderBlocks(limits, self._memory)
        self._refused = FloodLimiter(
            at_once=limits.refused_streams_max, per_s=limits.refused_streams_per_s
        )
        self.is_over = False

    # --- in ---------------------------------------------------------------------------------------

    def receive(self, data: bytes, now_s: float) -> list[Event]:
        """Parse bytes and return their events; nothing more after ConnectionFailed."""
        if self.is_over:
            return []
        self._now_s = now_s
        try:
            self._frames(self._in + data if self._in else data)
        except ProtocolViolationError as error:
            self._fail(error.code, str(error))
        except BlockError as error:
            self._fail(error.code, str(error))
        return self.take_events()

    def _fail(self, code: H2ErrorCode, words: str) -> None:
        self.go_away(code, words)
        self.is_over = True
        self._events.append(ConnectionFailed(code, words))

    def _frames(self, data: bytes) -> None:
        at, end = 0, len(data)
        if self._preface:
            at = len(self._preface)
            if data[:at] != self._preface[:end]:
                raise ProtocolViolationError(
                    H2ErrorCode.PROTOCOL_ERROR, "not the connection preface of HTTP/2"
                )
            if end < at:
                self._in = data
                return
            self._preface = b""
        unpack, size_max = frames.HEAD.unpack_from, self._limits.frame_bytes_max
        while end - at >= frames.HEAD_BYTES:
            high, low, kind, flags, stream_id = unpack(data, at)
            size = high << 16 | low
            if size > size_max:
                words = f"a frame of {size} bytes: {size_max} are the most"
                raise ProtocolViolationError(H2ErrorCode.FRAME_SIZE_ERROR, words)
            begin = at + frames.HEAD_BYTES
            if end - begin < size:
                break
            at = begin + size
            self._frame(kind, flags, stream_id & frames.STREAM_ID_MAX, data[begin:at])
        self._in = data[at:]

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if not self._had_settings and (kind != frames.SETTINGS or flags & frames.ACK):
            raise ProtocolViolationError(
                H2ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS"
            )
        blocks = self._header_blocks
        if blocks.is_open and (kind != frames.CONTINUATION or stream_id != blocks.stream_id):
            raise ProtocolViolationError(
                H2ErrorCode.PROTOCOL_ERROR, "a frame within a header block"
            )
        if kind == frames.DATA:
            self._data(flags, stream_id, payload)
        elif kind == frames.HEADERS:
            self._has_read(blocks.begin(flags, stream_id, payload))
        elif kind == frames.CONTINUATION:
            self._has_read(blocks.on_continuation(flags, payload))
        else:
            self._spend()
            self._control(kind, flags, stream_id, payload)

    # --- headers ----------------------------------------------------------------------------------

    def _has_read(self, fields: Fields | None) -> None:
        """Handle a complete header block; None means that it continues."""
        if fields is None:
            return
        stream_id, is_last = self._header_blocks.stream_id, self._header_blocks.is_last
        stream = self._streams.get(stream_id)
        if stream is None:
            stream = self._opened(stream_id)
            if stream is None:
                return
        elif not stream.can_receive:
            self._break(stream, H2ErrorCode.STREAM_CLOSED, "HEADERS after the end of the stream")
            return
        wrong = self._fault(stream, fields, is_last=is_last)
        if wrong is None and self._header_blocks.is_circular:
            wrong = "a stream that depends on itself"
        if wrong is not None:
            cost = RESET_COST + len(fields.pairs) // FIELDS_OF_A_FRAME
            self._break(stream, fields.code, wrong, cost=cost)
            return
        is_interim = self._is_client and fields.pseudo.get(b":status", b"")[:1] == b"1"
        if not is_interim:
            stream.had_headers = True
        if stream.body_left is None:
            stream.body_left = fields.content_length
        if is_last and not self._peer_ended(stream):
            return
        if not is_interim:
            self._events.append(HeadersReceived(stream_id, fields, is_last))
        if is_last:
            self._forget_ended(stream)

    def _fault(self, stream: Stream, fields: Fields, *, is_last: bool) -> str | None:
        if not stream.had_headers:
            return response_error(fields) if self._is_client else request_error(fields)
        return trailers_error(fields) if is_last else "trailers that do not end the stream"

    def _opened(self, stream_id: int) -> Stream | None:
        """Open a stream of the peer; None if it may not be opened now."""
        was_ours = self._ended.get(stream_id)
        if was_ours:
            self._spend()
            return None
        if was_ours is not None:
            raise ProtocolViolationError(
                H2ErrorCode.STREAM_CLOSED, "HEADERS on a stream that has ended"
            )
        if self._is_client or not stream_id & 1 or stream_id <= self._last_peer_id:
            words = f"stream {stream_id} may not be opened, after {self._last_peer_id}"
            raise ProtocolViolationError(H2ErrorCode.PROTOCOL_ERROR, words)
        self._last_peer_id = stream_id
        if stream_id > self._last_answered_id or len(self._streams) >= self._limits.streams_max:
            self._spend()
            if not self._refused.spend(self._now_s):
                words = "too many streams beyond MAX_CONCURRENT_STREAMS"
                raise ProtocolViolationError(H2ErrorCode.ENHANCE_YOUR_CALM, words)
            self.refuse(stream_id, H2ErrorCode.REFUSED_STREAM)
            self._remember(stream_id, is_ours=True)
            return None
        return self._add(stream_id)

    # --- data -------------------------------------------------------------------------------------

    def _data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._in_window -= size
        if self._in_window < 0:
            raise ProtocolViolationError(
                H2ErrorCode.FLOW_CONTROL_ERROR, "more bytes than the window has"
            )
        self._ungranted += size
        if flags & frames.PADDED:
            payload = unpadded(payload)
        is_last = bool(flags & frames.END_STREAM)
        if not payload and not is_last:
            self._spend()
        stream = self._streams.get(stream_id)
        if stream is None:
            self._data_on_ended(stream_id)
        elif not stream.can_receive:
            self._break(stream, H2ErrorCode.STREAM_CLOSED, "DATA after the end of the stream")
        elif not stream.had_headers:
            self._break(stream, H2ErrorCode.PROTOCOL_ERROR, "DATA before a response")
        else:
            self._data_on(stream, payload, size, is_last=is_last)
        self._grant()

    def _data_on(self, stream: Stream, payload: bytes, size: int, *, is_last: bool) -> None:
        stream.in_window -= size
        if stream.in_window < 0:
            words = "more bytes than the stream's window has"
            self._break(stream, H2ErrorCode.FLOW_CONTROL_ERROR, words)
            return
        # Padding counts as read immediately.
        stream.read += size - len(payload)
        stream.unread += len(payload)
        self._note_unread(len(payload))
        if payload:
            self._moved(stream)
        if stream.body_left is not None:
            stream.body_left -= len(payload)
            if stream.body_left < 0:
                words = "more bytes than content-length says"
                self._break(stream, H2ErrorCode.PROTOCOL_ERROR, words)
                return
        if is_last and not self._peer_ended(stream):
            return
        self._events.append(DataReceived(stream.id, payload, is_last))
        if is_last:
            self._forget_ended(stream)

    def _data_on_ended(self, stream_id: int) -> None:
        self._check_opened(stream_id, "DATA")
        self._spend()
        if not self._ended.get(stream_id):
            self.refuse(stream_id, H2ErrorCode.STREAM_CLOSED)

    def close(self) -> None:
        """Release everything: the connection is lost, and received data will not be read."""
        self.is_over = True
        self._note_unread(-self.unread)
        self._header_blocks.close()
        self._streams.clear()

    def _peer_ended(self, stream: Stream) -> bool:
        """Note that the peer sends no more on a stream; False if that is too early."""
        if stream.body_left:
            words = "fewer bytes than content-length says"
            self._break(stream, H2ErrorCode.PROTOCOL_ERROR, words)
            return False
        stream.can_receive = False
        return True

    def _forget_ended(self, stream: Stream) -> None:
        if not stream.can_send:
            self._pay(stream)
            self._forget(stream, is_ours=False)
