"""One HTTP/2 connection without IO: bytes in, events out, and the bytes that are to be sent.

What a peer may do is RFC 9113 and the limits that it is given. A breach that concerns one stream
ends the stream; any other ends the connection, with the reason in a GOAWAY.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.h2 import frames
from quorate.h2.checks import BreachError, check_place, check_size, unpadded
from quorate.h2.events import (
    ConnectionFailed,
    DataReceived,
    GoneAway,
    HeadersReceived,
    PingAnswered,
    StreamEnded,
    StreamsAllowed,
)
from quorate.h2.frames import ErrorCode
from quorate.h2.headers import (
    BlockError,
    BlockReader,
    fault_of_request,
    fault_of_response,
    fault_of_trailers,
)
from quorate.h2.limits import Patience, Unread
from quorate.h2.sending import Sender

if TYPE_CHECKING:
    from quorate.h2.events import Event
    from quorate.h2.headers import Fields
    from quorate.h2.limits import Limits
    from quorate.h2.streams import Stream

# Streams that have ended, for what a peer sent before it heard of that.
_ENDED_MAX: Final = 4096
_WORDS_MAX: Final = 256
# To change the windows of so many costs as much as a frame does.
_STREAMS_OF_A_FRAME: Final = 16


class Connection(Sender):
    """One end of a connection. Times are handed in; the clock's zero is of no importance."""

    def __init__(
        self, limits: Limits, *, is_client: bool, unread_in_all: Unread | None = None
    ) -> None:
        """`unread_in_all` is shared by connections that are bounded together."""
        super().__init__(limits, is_client=is_client)
        self._unread_in_all = unread_in_all or Unread()
        self._patience = Patience(limits)
        self._reader = BlockReader(limits)
        self._in = b""
        self._preface = b"" if is_client else frames.PREFACE
        self._had_settings = False
        self._in_window = limits.window_bytes
        self._ungranted = 0
        # Received on any stream, and read by nobody yet.
        self.unread = 0
        self._block: bytearray | None = None
        self._block_of = 0
        self._block_is_last = False
        self._block_is_circular = False
        self._block_frames = 0
        # Whether we have ended it while the peer may not know yet.
        self._ended: dict[int, bool] = {}
        self._last_peer_id = 0
        self._last_answered_id = frames.STREAM_ID_MAX
        self._now_s = 0.0
        self.is_over = False

    @property
    def is_greeted(self) -> bool:
        """Whether the peer has sent its settings."""
        return self._had_settings

    # --- in ---------------------------------------------------------------------------------------

    def receive(self, data: bytes, now_s: float) -> list[Event]:
        """What these bytes say; after ConnectionFailed nothing any more."""
        if self.is_over:
            return []
        self._now_s = now_s
        try:
            self._frames(self._in + data if self._in else data)
        except BreachError as error:
            self._fail(error.code, str(error))
        except BlockError as error:
            self._fail(error.code, str(error))
        return self.take_events()

    def _fail(self, code: ErrorCode, words: str) -> None:
        self.go_away(code, words)
        self.is_over = True
        self._events.append(ConnectionFailed(code, words))

    def _frames(self, data: bytes) -> None:
        at, end = 0, len(data)
        if self._preface:
            at = len(self._preface)
            if data[:at] != self._preface[:end]:
                raise BreachError(ErrorCode.PROTOCOL_ERROR, "this is no preface of HTTP/2")
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
                raise BreachError(ErrorCode.FRAME_SIZE_ERROR, words)
            begin = at + frames.HEAD_BYTES
            if end - begin < size:
                break
            at = begin + size
            self._frame(kind, flags, stream_id & frames.STREAM_ID_MAX, data[begin:at])
        self._in = data[at:]

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if not self._had_settings and (kind != frames.SETTINGS or flags & frames.ACK):
            raise BreachError(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        if self._block is not None and (kind != frames.CONTINUATION or stream_id != self._block_of):
            raise BreachError(ErrorCode.PROTOCOL_ERROR, "a frame within a header block")
        if kind == frames.DATA:
            self._data(flags, stream_id, payload)
        elif kind == frames.HEADERS:
            self._headers(flags, stream_id, payload)
        elif kind == frames.CONTINUATION:
            self._continuation(flags, payload)
        else:
            self._spend()
            self._control(kind, flags, stream_id, payload)

    def _spend(self, idle_frames: int = 1) -> None:
        if not self._patience.spend(self._now_s, idle_frames):
            words = "too many frames that carry nothing"
            raise BreachError(ErrorCode.ENHANCE_YOUR_CALM, words)

    # --- headers ----------------------------------------------------------------------------------

    def _headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id == 0:
            raise BreachError(ErrorCode.PROTOCOL_ERROR, "HEADERS on stream 0")
        if flags & frames.PADDED:
            payload = unpadded(payload)
        depends_on = None
        if flags & frames.WITH_PRIORITY:
            if len(payload) < 5:
                raise BreachError(ErrorCode.FRAME_SIZE_ERROR, "HEADERS without their priority")
            depends_on = frames.WORD.unpack_from(payload)[0] & frames.STREAM_ID_MAX
            payload = payload[5:]
        self._block_of, self._block_is_last = stream_id, bool(flags & frames.END_STREAM)
        # Judged when the block has been read, which may change the table.
        self._block_is_circular = depends_on == stream_id
        if flags & frames.END_HEADERS:
            self._block_read(payload)
            return
        self._block = bytearray(payload)
        self._block_frames = 1

    def _continuation(self, flags: int, payload: bytes) -> None:
        if self._block is None:
            raise BreachError(ErrorCode.PROTOCOL_ERROR, "CONTINUATION of nothing")
        self._block_frames += 1
        limits = self._limits
        size = len(self._block) + len(payload)
        if size > limits.block_bytes_max or self._block_frames > limits.block_frames_max:
            words = f"a header block of {size} bytes in {self._block_frames} frames"
            raise BreachError(ErrorCode.ENHANCE_YOUR_CALM, words)
        self._block += payload
        if flags & frames.END_HEADERS:
            block, self._block = bytes(self._block), None
            self._block_read(block)

    def _block_read(self, block: bytes) -> None:
        fields = self._reader.read(block)
        stream_id, is_last = self._block_of, self._block_is_last
        stream = self._streams.get(stream_id)
        if stream is None:
            stream = self._opened(stream_id)
            if stream is None:
                return
        elif not stream.can_receive:
            self._break(stream, ErrorCode.STREAM_CLOSED, "HEADERS after the end of the stream")
            return
        wrong = self._fault(stream, fields, is_last=is_last)
        if wrong is None and self._block_is_circular:
            wrong = "a stream that depends on itself"
        if wrong is not None:
            self._break(stream, fields.code, wrong)
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
            return fault_of_response(fields) if self._is_client else fault_of_request(fields)
        return fault_of_trailers(fields) if is_last else "trailers that do not end the stream"

    def _opened(self, stream_id: int) -> Stream | None:
        """A stream that the peer opens; None where it may not now."""
        was_ours = self._ended.get(stream_id)
        if was_ours:
            self._spend()
            return None
        if was_ours is not None:
            raise BreachError(ErrorCode.STREAM_CLOSED, "HEADERS on a stream that has ended")
        if self._is_client or not stream_id & 1 or stream_id <= self._last_peer_id:
            words = f"stream {stream_id} may not be opened, after {self._last_peer_id}"
            raise BreachError(ErrorCode.PROTOCOL_ERROR, words)
        self._last_peer_id = stream_id
        if stream_id > self._last_answered_id or len(self._streams) >= self._limits.streams_max:
            self._spend()
            self.refuse(stream_id, ErrorCode.REFUSED_STREAM)
            self._remember(stream_id, is_ours=True)
            return None
        return self._add(stream_id)

    # --- data -------------------------------------------------------------------------------------

    def _data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._in_window -= size
        if self._in_window < 0:
            raise BreachError(ErrorCode.FLOW_CONTROL_ERROR, "more bytes than the window has")
        self._ungranted += size
        if flags & frames.PADDED:
            payload = unpadded(payload)
        is_last = bool(flags & frames.END_STREAM)
        if payload:
            self._patience.earn()
        elif not is_last:
            self._spend()
        stream = self._streams.get(stream_id)
        if stream is None:
            self._data_on_ended(stream_id)
        elif not stream.can_receive:
            self._break(stream, ErrorCode.STREAM_CLOSED, "DATA after the end of the stream")
        elif not stream.had_headers:
            self._break(stream, ErrorCode.PROTOCOL_ERROR, "DATA before a response")
        else:
            self._data_on(stream, payload, size, is_last=is_last)
        self._grant()

    def _data_on(self, stream: Stream, payload: bytes, size: int, *, is_last: bool) -> None:
        stream.in_window -= size
        if stream.in_window < 0:
            words = "more bytes than the stream's window has"
            self._break(stream, ErrorCode.FLOW_CONTROL_ERROR, words)
            return
        # What fills a frame up is read at once.
        stream.read += size - len(payload)
        stream.unread += len(payload)
        self._note_unread(len(payload))
        if stream.body_left is not None:
            stream.body_left -= len(payload)
            if stream.body_left < 0:
                self._break(stream, ErrorCode.PROTOCOL_ERROR, "more bytes than content-length says")
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
            self.refuse(stream_id, ErrorCode.STREAM_CLOSED)

    def _check_opened(self, stream_id: int, what: str) -> None:
        is_peers = bool(stream_id & 1) != self._is_client
        last = self._last_peer_id if is_peers else self._next_id - 2
        if stream_id == 0 or stream_id > last:
            words = f"{what} on stream {stream_id}, which nobody has opened"
            raise BreachError(ErrorCode.PROTOCOL_ERROR, words)

    def consumed(self, stream_id: int, size: int) -> None:
        """Somebody has read so many bytes of a stream; the peer may send as many more."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        stream.unread -= size
        self._note_unread(-size)
        stream.read += size
        if stream.can_receive and stream.read * 2 >= self._limits.stream_window_bytes:
            stream.in_window += stream.read
            self._put_window(stream_id, stream.read)
            stream.read = 0
        if self._ungranted:
            self._grant()

    def _grant(self) -> None:
        """Let the peer send more on all streams, unless too much of it is unread."""
        limits = self._limits
        if self._ungranted * 2 < limits.window_bytes:
            return
        is_much = (
            self.unread > limits.unread_bytes_max
            or self._unread_in_all.size > limits.unread_in_all_bytes_max
        )
        # A stream whose bytes are all read may go on, whatever the others hold.
        if not self.unread or not is_much:
            self._in_window += self._ungranted
            self._put_window(0, self._ungranted)
            self._ungranted = 0

    def _note_unread(self, size: int) -> None:
        self.unread += size
        self._unread_in_all.size += size

    def close(self) -> None:
        """The connection is gone: nobody will read what has come on it."""
        self.is_over = True
        self._note_unread(-self.unread)
        self._streams.clear()

    def _peer_ended(self, stream: Stream) -> bool:
        """The peer sends no more on a stream; False where that is too early."""
        if stream.body_left:
            words = "fewer bytes than content-length says"
            self._break(stream, ErrorCode.PROTOCOL_ERROR, words)
            return False
        stream.can_receive = False
        return True

    def _forget_ended(self, stream: Stream) -> None:
        if not stream.can_send:
            self._forget(stream, is_ours=False)

    # --- the rest ---------------------------------------------------------------------------------

    def _control(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        if kind == frames.WINDOW_UPDATE:
            check_size(size, 4)
            self._window_update(stream_id, frames.WORD.unpack(payload)[0] & frames.STREAM_ID_MAX)
        elif kind == frames.PING:
            check_place(stream_id, on_stream=False)
            check_size(size, 8)
            if flags & frames.ACK:
                self._events.append(PingAnswered())
            else:
                self._put(frames.PING, frames.ACK, 0, payload)
        elif kind == frames.SETTINGS:
            check_place(stream_id, on_stream=False)
            self._settings(flags, payload)
        elif kind == frames.RST_STREAM:
            check_place(stream_id, on_stream=True)
            check_size(size, 4)
            self._reset_by_peer(stream_id, frames.WORD.unpack(payload)[0])
        elif kind == frames.PRIORITY:
            check_place(stream_id, on_stream=True)
            depends_on = frames.WORD.unpack_from(payload)[0] if size == 5 else 0
            if size != 5:
                self._break_or_refuse(stream_id, ErrorCode.FRAME_SIZE_ERROR)
            elif depends_on & frames.STREAM_ID_MAX == stream_id:
                self._break_or_refuse(stream_id, ErrorCode.PROTOCOL_ERROR)
        elif kind == frames.GOAWAY:
            check_place(stream_id, on_stream=False)
            if size < 8:
                raise BreachError(ErrorCode.FRAME_SIZE_ERROR, f"GOAWAY of {size} bytes")
            last, code = frames.WORD.unpack_from(payload)[0], frames.WORD.unpack_from(payload, 4)[0]
            words = payload[8 : 8 + _WORDS_MAX].decode(errors="replace")
            self._events.append(GoneAway(last & frames.STREAM_ID_MAX, code, words))
        elif kind == frames.PUSH_PROMISE:
            raise BreachError(ErrorCode.PROTOCOL_ERROR, "nobody wants PUSH_PROMISE")

    def _settings(self, flags: int, payload: bytes) -> None:
        self._had_settings = True
        if len(payload) % 6 or (flags & frames.ACK and payload):
            raise BreachError(ErrorCode.FRAME_SIZE_ERROR, f"SETTINGS of {len(payload)} bytes")
        if flags & frames.ACK:
            return
        # Of several values for one setting the last holds: the streams are visited once.
        values = dict(frames.SETTING.iter_unpack(payload))
        push, window = values.get(frames.ENABLE_PUSH, 0), values.get(frames.INITIAL_WINDOW_SIZE)
        frame_bytes = values.get(frames.MAX_FRAME_SIZE)
        if push > 1 or (push and self._is_client):
            raise BreachError(ErrorCode.PROTOCOL_ERROR, f"SETTINGS: ENABLE_PUSH is {push}")
        if frame_bytes is not None:
            if not frames.FRAME_BYTES <= frame_bytes <= frames.FRAME_BYTES_MAX:
                words = f"SETTINGS: MAX_FRAME_SIZE is {frame_bytes}"
                raise BreachError(ErrorCode.PROTOCOL_ERROR, words)
            self._frame_bytes = min(frame_bytes, self._limits.frame_bytes_max)
        if frames.MAX_CONCURRENT_STREAMS in values:
            self._events.append(StreamsAllowed(values[frames.MAX_CONCURRENT_STREAMS]))
        if window is not None:
            self._spend(self.stream_count // _STREAMS_OF_A_FRAME)
        if window is not None and not self._set_initial_window(window):
            words = f"SETTINGS: INITIAL_WINDOW_SIZE is {window}"
            raise BreachError(ErrorCode.FLOW_CONTROL_ERROR, words)
        self._put(frames.SETTINGS, frames.ACK, 0, b"")
        # Behind the acknowledgement: before it a peer need not know what its new window lets come.
        if window is not None and self._waiting:
            self._pump()

    def _window_update(self, stream_id: int, size: int) -> None:
        if stream_id and stream_id not in self._streams:
            self._check_opened(stream_id, "WINDOW_UPDATE")
            return
        if self._widen(stream_id, size):
            return
        code = ErrorCode.FLOW_CONTROL_ERROR if size else ErrorCode.PROTOCOL_ERROR
        words = f"WINDOW_UPDATE by {size}"
        if stream_id == 0:
            raise BreachError(code, words)
        self._break(self._streams[stream_id], code, words)

    def _reset_by_peer(self, stream_id: int, code: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            self._check_opened(stream_id, "RST_STREAM")
            return
        self._forget(stream, is_ours=False)
        self._events.append(StreamEnded(stream_id, code, "", is_peers=True))

    def _break(self, stream: Stream, code: ErrorCode, words: str) -> None:
        """End a stream for what the peer has done on it."""
        self._spend()
        self.refuse(stream.id, code)
        self._forget(stream, is_ours=True)
        self._events.append(StreamEnded(stream.id, code, words, is_peers=False))

    def _break_or_refuse(self, stream_id: int, code: ErrorCode) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None:
            self._break(stream, code, "PRIORITY that may not be")
        else:
            self.refuse(stream_id, code)

    # --- out --------------------------------------------------------------------------------------

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        """Cut a stream off; nothing that waits for it is sent."""
        stream = self._streams.get(stream_id)
        if stream is not None:
            self.refuse(stream_id, code)
            self._forget(stream, is_ours=True)

    def go_away(self, code: ErrorCode, words: str = "") -> None:
        """Take no stream any more that the peer opens from now on."""
        self._last_answered_id = min(self._last_answered_id, self._last_peer_id)
        head = frames.WORD.pack(self._last_answered_id) + frames.WORD.pack(code)
        self._put(frames.GOAWAY, 0, 0, head + words.encode()[:_WORDS_MAX])

    def _moved(self) -> None:
        self._patience.earn()

    def _finished(self, stream: Stream) -> None:
        """Our end of a stream is closed."""
        if not stream.can_receive:
            self._forget(stream, is_ours=False)
        elif not self._is_client:
            # The answer is complete: what the peer still sends would be read by nobody.
            self.refuse(stream.id, ErrorCode.NO_ERROR)
            self._forget(stream, is_ours=True)

    def _forget(self, stream: Stream, *, is_ours: bool) -> None:
        self._note_unread(-stream.unread)
        self._drop(stream)
        self._remember(stream.id, is_ours=is_ours)
        self._grant()

    def _remember(self, stream_id: int, *, is_ours: bool) -> None:
        self._ended[stream_id] = is_ours
        if len(self._ended) > _ENDED_MAX:
            del self._ended[next(iter(self._ended))]
