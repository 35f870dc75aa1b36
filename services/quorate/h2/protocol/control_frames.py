"""Handles SETTINGS, WINDOW_UPDATE, PING, RST_STREAM, GOAWAY and PRIORITY frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.h2.protocol import frames
from quorate.h2.protocol.events import GoAwayReceived, PingAnswered, StreamReset, StreamsAllowed
from quorate.h2.protocol.flow_control import FlowControl
from quorate.h2.protocol.frames import (
    H2ErrorCode,
    ProtocolViolationError,
    check_size,
    check_stream_id,
)
from quorate.h2.protocol.limits import RESET_COST, UNPAID_FRAMES, FloodLimiter, ListenerMemory

if TYPE_CHECKING:
    from quorate.h2.protocol.limits import Limits
    from quorate.h2.protocol.stream import Stream

# Ended streams to remember, for frames that a peer sent before it learned of the end.
_ENDED_MAX: Final = 4096
_WORDS_MAX: Final = 256
# Changing the windows of this many streams costs as much as a frame.
_STREAMS_OF_A_FRAME: Final = 16


class ControlFrames(FlowControl):
    """The settings of both ends, and the peer's use of its frame and memory limits."""

    def __init__(
        self, limits: Limits, *, is_client: bool, memory: ListenerMemory | None = None
    ) -> None:
        """Connections that are limited together share `memory`."""
        super().__init__(limits, is_client=is_client, memory=memory)
        self._flood_limiter = FloodLimiter(
            at_once=limits.idle_frames_max, per_s=limits.idle_frames_per_s
        )
        self._had_settings = False
        # By stream: whether this end has ended it while the peer may not know yet.
        self._ended: dict[int, bool] = {}
        self._last_peer_id = 0
        self._last_answered_id = frames.STREAM_ID_MAX
        self._now_s = 0.0

    @property
    def is_greeted(self) -> bool:
        """True if the peer has sent its settings."""
        return self._had_settings

    def _spend(self, idle_frames: int = 1) -> None:
        if not self._flood_limiter.spend(self._now_s, idle_frames):
            words = "too many frames that carry nothing"
            raise ProtocolViolationError(H2ErrorCode.ENHANCE_YOUR_CALM, words)

    # --- frames -----------------------------------------------------------------------------------

    def _control(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        if kind == frames.WINDOW_UPDATE:
            check_size(size, 4)
            self._window_update(stream_id, frames.WORD.unpack(payload)[0] & frames.STREAM_ID_MAX)
        elif kind == frames.PING:
            check_stream_id(stream_id, on_stream=False)
            check_size(size, 8)
            if flags & frames.ACK:
                self._events.append(PingAnswered())
            else:
                self._put(frames.PING, frames.ACK, 0, payload)
        elif kind == frames.SETTINGS:
            check_stream_id(stream_id, on_stream=False)
            self._settings(flags, payload)
        elif kind == frames.RST_STREAM:
            check_stream_id(stream_id, on_stream=True)
            check_size(size, 4)
            self._reset_by_peer(stream_id, frames.WORD.unpack(payload)[0])
        elif kind == frames.PRIORITY:
            check_stream_id(stream_id, on_stream=True)
            depends_on = frames.WORD.unpack_from(payload)[0] if size == 5 else 0
            if size != 5:
                self._break_or_refuse(stream_id, H2ErrorCode.FRAME_SIZE_ERROR)
            elif depends_on & frames.STREAM_ID_MAX == stream_id:
                self._break_or_refuse(stream_id, H2ErrorCode.PROTOCOL_ERROR)
        elif kind == frames.GOAWAY:
            check_stream_id(stream_id, on_stream=False)
            if size < 8:
                raise ProtocolViolationError(
                    H2ErrorCode.FRAME_SIZE_ERROR, f"GOAWAY of {size} bytes"
                )
            last, code = frames.WORD.unpack_from(payload)[0], frames.WORD.unpack_from(payload, 4)[0]
            words = payload[8 : 8 + _WORDS_MAX].decode(errors="replace")
            self._events.append(GoAwayReceived(last & frames.STREAM_ID_MAX, code, words))
        elif kind == frames.PUSH_PROMISE:
            raise ProtocolViolationError(H2ErrorCode.PROTOCOL_ERROR, "nobody wants PUSH_PROMISE")

    def _settings(self, flags: int, payload: bytes) -> None:
        self._had_settings = True
        if len(payload) % 6 or (flags & frames.ACK and payload):
            raise ProtocolViolationError(
                H2ErrorCode.FRAME_SIZE_ERROR, f"SETTINGS of {len(payload)} bytes"
            )
        if flags & frames.ACK:
            return
        # The last of several values for one setting counts: the streams are visited once.
        values = dict(frames.SETTING.iter_unpack(payload))
        push, window = values.get(frames.ENABLE_PUSH, 0), values.get(frames.INITIAL_WINDOW_SIZE)
        frame_bytes = values.get(frames.MAX_FRAME_SIZE)
        if push > 1 or (push and self._is_client):
            raise ProtocolViolationError(
                H2ErrorCode.PROTOCOL_ERROR, f"SETTINGS: ENABLE_PUSH is {push}"
            )
        if frame_bytes is not None:
            if not frames.FRAME_BYTES <= frame_bytes <= frames.FRAME_BYTES_MAX:
                words = f"SETTINGS: MAX_FRAME_SIZE is {frame_bytes}"
                raise ProtocolViolationError(H2ErrorCode.PROTOCOL_ERROR, words)
            self._frame_bytes = min(frame_bytes, self._limits.frame_bytes_max)
        if frames.MAX_CONCURRENT_STREAMS in values:
            self._events.append(StreamsAllowed(values[frames.MAX_CONCURRENT_STREAMS]))
        if window is not None:
            self._spend(self.stream_count // _STREAMS_OF_A_FRAME)
        if window is not None and not self._set_initial_window(window):
            words = f"SETTINGS: INITIAL_WINDOW_SIZE is {window}"
            raise ProtocolViolationError(H2ErrorCode.FLOW_CONTROL_ERROR, words)
        self._put(frames.SETTINGS, frames.ACK, 0, b"")
        # After the acknowledgement: before it a peer may not expect what its new window allows.
        if window is not None and self._waiting:
            self._pump()

    def _window_update(self, stream_id: int, size: int) -> None:
        if stream_id and stream_id not in self._streams:
            self._check_opened(stream_id, "WINDOW_UPDATE")
            return
        if self._widen(stream_id, size):
            return
        code = H2ErrorCode.FLOW_CONTROL_ERROR if size else H2ErrorCode.PROTOCOL_ERROR
        words = f"WINDOW_UPDATE by {size}"
        if stream_id == 0:
            raise ProtocolViolationError(code, words)
        self._break(self._streams[stream_id], code, words)

    def _reset_by_peer(self, stream_id: int, code: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            self._check_opened(stream_id, "RST_STREAM")
            return
        if self._is_client:
            # A server can only reset streams that its client has opened.
            self._pay(stream)
        else:
            # The frame itself has been charged.
            self._spend(RESET_COST - 1)
        self._forget(stream, is_ours=False)
        self._events.append(StreamReset(stream_id, code, "", is_peers=True))

    # --- ends of streams --------------------------------------------------------------------------

    def reset(self, stream_id: int, code: H2ErrorCode) -> None:
        """Reset a stream; its pending data is not sent."""
        stream = self._streams.get(stream_id)
        if stream is not None:
            if not self._is_client:
                # A server resets streams that its client does not read, or that exceed a limit.
                self._flood_limiter.charge(RESET_COST)
            self.refuse(stream_id, code)
            self._forget(stream, is_ours=True)

    def go_away(self, code: H2ErrorCode, words: str = "") -> None:
        """Send GOAWAY: streams that the peer opens from now on are not accepted."""
        self._last_answered_id = min(self._last_answered_id, self._last_peer_id)
        head = frames.WORD.pack(self._last_answered_id) + frames.WORD.pack(code)
        self._put(frames.GOAWAY, 0, 0, head + words.encode()[:_WORDS_MAX])

    def _moved(self, stream: Stream) -> None:
        stream.moved += 1
        if stream.moved > UNPAID_FRAMES:
            self._flood_limiter.earn()

    def _pay(self, stream: Stream) -> None:
        """Credit the first frames of a stream that has ended regularly."""
        self._flood_limiter.earn(min(stream.moved, UNPAID_FRAMES))

    def _break(
        self, stream: Stream, code: H2ErrorCode, words: str, *, cost: int = RESET_COST
    ) -> None:
        """End a stream for a violation by the peer."""
        self._spend(cost)
        self.refuse(stream.id, code)
        self._forget(stream, is_ours=True)
        self._events.append(StreamReset(stream.id, code, words, is_peers=False))

    def _break_or_refuse(self, stream_id: int, code: H2ErrorCode) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None:
            self._break(stream, code, "PRIORITY that may not be")
        else:
            self.refuse(stream_id, code)

    def _check_opened(self, stream_id: int, what: str) -> None:
        is_peers = bool(stream_id & 1) != self._is_client
        last = self._last_peer_id if is_peers else self._next_id - 2
        if stream_id == 0 or stream_id > last:
            words = f"{what} on stream {stream_id}, which nobody has opened"
            raise ProtocolViolationError(H2ErrorCode.PROTOCOL_ERROR, words)

    def _finished(self, stream: Stream) -> None:
        """Handle the end of our side of a stream."""
        if not stream.can_receive:
            self._pay(stream)
            self._forget(stream, is_ours=False)
        elif not self._is_client:
            self._pay(stream)
            # The response is complete: data that the peer still sends would not be read.
            self.refuse(stream.id, H2ErrorCode.NO_ERROR)
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
