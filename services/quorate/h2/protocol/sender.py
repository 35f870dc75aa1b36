"""Send side of a connection: frames, and DATA that waits for a flow-control window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.h2.protocol import frames
from quorate.h2.protocol.events import StreamWritable
from quorate.h2.protocol.stream import Stream

if TYPE_CHECKING:
    from quorate.h2.protocol.events import Event
    from quorate.h2.protocol.frames import H2ErrorCode
    from quorate.h2.protocol.limits import Limits

PING_BYTES: Final = bytes(8)
# Bytes of bodies that are framed before the next `take`; the rest waits in its stream.
_TAKEN_AT_ONCE_BYTES: Final = 256 * 1024


class Sender:
    """Frames to send, in order; `take` returns them."""

    def __init__(self, limits: Limits, *, is_client: bool) -> None:
        self._limits = limits
        self._is_client = is_client
        self._out: list[bytes] = []
        self._events: list[Event] = []
        self._streams: dict[int, Stream] = {}
        self._next_id = 1 if is_client else 2
        self._out_window = frames.WINDOW_BYTES
        self._initial_window = frames.WINDOW_BYTES
        self._frame_bytes = frames.FRAME_BYTES
        # Streams with pending bytes, the next one first; those whose own window is closed.
        self._waiting: dict[int, Stream] = {}
        self._stuck: dict[int, Stream] = {}
        self._is_paused = False
        self._body_bytes = 0

    def start(self) -> None:
        """Queue the connection preface and the settings."""
        limits = self._limits
        values = {
            frames.MAX_CONCURRENT_STREAMS: limits.streams_max,
            frames.INITIAL_WINDOW_SIZE: limits.stream_window_bytes,
            frames.MAX_FRAME_SIZE: limits.frame_bytes_max,
            frames.MAX_HEADER_LIST_SIZE: limits.header_bytes_max,
        }
        if self._is_client:
            values = {frames.ENABLE_PUSH: 0} | values
            del values[frames.MAX_CONCURRENT_STREAMS]
            self._out.append(frames.PREFACE)
        payload = b"".join(frames.SETTING.pack(key, value) for key, value in values.items())
        self._put(frames.SETTINGS, 0, 0, payload)
        if limits.window_bytes > frames.WINDOW_BYTES:
            self._put_window(0, limits.window_bytes - frames.WINDOW_BYTES)

    def take(self) -> bytes:
        """Remove and return the bytes to send now."""
        data = b"".join(self._out)
        self._out.clear()
        self._body_bytes = 0
        return data

    def take_events(self) -> list[Event]:
        """Remove and return the events since the last call."""
        events, self._events = self._events, []
        return events

    @property
    def has_more(self) -> bool:
        """True if pending bodies may be sent: `resume` frames them."""
        return bool(self._waiting) and self._out_window > 0 and not self._is_paused

    @property
    def stream_count(self) -> int:
        """The number of open streams."""
        return len(self._streams)

    def queued(self, stream_id: int) -> int:
        """The number of bytes of a stream that wait for space."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else stream.queued

    # --- streams ----------------------------------------------------------------------------------

    def open_stream(self, block: bytes) -> int:
        """Begin a request with these headers; return the stream's id."""
        stream_id = self._next_id
        self._next_id += 2
        self._put_headers(self._add(stream_id), block, 0)
        return stream_id

    def send_headers(self, stream_id: int, block: bytes, *, is_last: bool = False) -> None:
        """Send headers, or trailers, which wait for the data before them."""
        stream = self._streams.get(stream_id)
        if stream is None or not stream.can_send:
            return
        if is_last and stream.queued:
            stream.trailers = block
            return
        self._put_headers(stream, block, frames.END_STREAM if is_last else 0)
        if is_last:
            stream.can_send = False
            self._finished(stream)

    def send_data(self, stream_id: int, data: bytes, *, is_last: bool = False) -> bool:
        """Send part of a body, as far as the windows allow; return whether all of it was sent."""
        stream = self._streams.get(stream_id)
        if stream is None or not stream.can_send:
            return True
        size = len(data)
        room = min(self._out_window, stream.out_window, self._frame_bytes)
        is_taken = self._body_bytes < _TAKEN_AT_ONCE_BYTES and not self._is_paused
        if size <= room and not stream.queued and is_taken:
            self._put_data(stream, data, is_last=is_last)
            return True
        if size:
            stream.put_back(data)
        stream.is_last_queued = is_last
        self._waiting[stream_id] = stream
        self._pump()
        return not stream.queued

    def pause(self) -> None:
        """Send no bodies until `resume`: the peer does not read."""
        self._is_paused = True

    def resume(self) -> None:
        """Send bodies again."""
        self._is_paused = False
        self._pump()

    def ping(self) -> None:
        """Send a PING."""
        self._put(frames.PING, 0, 0, PING_BYTES)

    def refuse(self, stream_id: int, code: H2ErrorCode) -> None:
        """Send RST_STREAM."""
        self._put(frames.RST_STREAM, 0, stream_id, frames.WORD.pack(code))

    # --- frames -----------------------------------------------------------------------------------

    def _put(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        self._out.append(frames.frame(kind, flags, stream_id, payload))

    def _put_window(self, stream_id: int, size: int) -> None:
        self._put(frames.WINDOW_UPDATE, 0, stream_id, frames.WORD.pack(size))

    def _put_headers(self, stream: Stream, block: bytes, flags: int) -> None:
        self._moved(stream)
        stream_id, size = stream.id, self._frame_bytes
        if len(block) <= size:
            self._put(frames.HEADERS, flags | frames.END_HEADERS, stream_id, block)
            return
        self._put(frames.HEADERS, flags, stream_id, block[:size])
        for at in range(size, len(block), size):
            flags = frames.END_HEADERS if at + size >= len(block) else 0
            self._put(frames.CONTINUATION, flags, stream_id, block[at : at + size])

    def _put_data(self, stream: Stream, data: bytes, *, is_last: bool) -> None:
        size = len(data)
        self._body_bytes += size
        self._out_window -= size
        stream.out_window -= size
        self._moved(stream)
        flags = frames.END_STREAM if is_last else 0
        self._put(frames.DATA, flags, stream.id, data)
        if is_last:
            stream.can_send = False
            self._finished(stream)

    def _pump(self) -> None:
        """Send pending data, a frame of each stream in turn."""
        waiting = self._waiting
        while waiting and not self._is_paused and self._body_bytes < _TAKEN_AT_ONCE_BYTES:
            stream_id, stream = next(iter(waiting.items()))
            room = min(self._out_window, stream.out_window, self._frame_bytes)
            if stream.queued and self._out_window <= 0:
                return
            del waiting[stream_id]
            if stream.queued and room <= 0:
                self._stuck[stream_id] = stream
                continue
            data = stream.take(room) if stream.queued else b""
            is_drained = not stream.queued
            if data or stream.is_last_queued:
                self._put_data(stream, data, is_last=is_drained and stream.is_last_queued)
            if not is_drained:
                waiting[stream_id] = stream
                continue
            self._events.append(StreamWritable(stream_id))
            if stream.trailers is not None:
                self.send_headers(stream_id, stream.trailers, is_last=True)

    # --- hooks of the receive side ----------------------------------------------------------------

    def _add(self, stream_id: int) -> Stream:
        stream = self._streams[stream_id] = Stream(
            stream_id,
            in_window=self._limits.stream_window_bytes,
            out_window=self._initial_window,
        )
        return stream

    def _drop(self, stream: Stream) -> None:
        del self._streams[stream.id]
        self._waiting.pop(stream.id, None)
        self._stuck.pop(stream.id, None)

    def _moved(self, stream: Stream) -> None:
        """A frame that carries something was sent on a stream."""

    def _finished(self, stream: Stream) -> None:
        """Our end of a stream is closed."""
