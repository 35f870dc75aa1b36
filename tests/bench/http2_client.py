"""A load generator's own HTTP/2: gRPC calls as bytes on a plain socket, a few microseconds each.

A gRPC library costs a Python client as much as its server, so on one machine it would measure
itself. Here a call is one buffer with the header block made once, and an answer is counted by its
frames. Only what gRPC servers on loopback send is understood.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM: Final = 0x1
_END_HEADERS: Final = 0x4
_ACK: Final = 0x1
_INITIAL_WINDOW: Final = 4
_WINDOW_MAX: Final = 2**31 - 1
_TOP_UP_BYTES: Final = 1 << 28
_READ_BYTES: Final = 1 << 20


class Calls(Protocol):
    """The maker of the calls of a connection."""

    def received(self, stream_id: int, data: bytes) -> None: ...

    def ended(self, stream_id: int, *, had_data: bool) -> None: ...


def frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    """One HTTP/2 frame."""
    size = len(payload)
    return struct.pack(">BHBBL", size >> 16, size & 0xFFFF, kind, flags, stream_id) + payload


def message(payload: bytes) -> bytes:
    """A gRPC message, not compressed."""
    return struct.pack(">BL", 0, len(payload)) + payload


def _literal(text: bytes) -> bytes:
    assert len(text) < 127, "a length of one byte"
    return bytes([len(text)]) + text


def header_block(path: str, authority: str) -> bytes:
    """HPACK of a gRPC request, without the dynamic table: the same bytes for every call."""
    return b"".join(
        (
            b"\x83\x86",  # :method POST, :scheme http
            b"\x04" + _literal(path.encode()),
            b"\x01" + _literal(authority.encode()),
            b"\x0f\x10" + _literal(b"application/grpc"),
            b"\x00\x02te" + _literal(b"trailers"),
        )
    )


class Connection:
    """One socket; what it may not send yet for want of a window waits here."""

    def __init__(self, host: str, port: int, *, source: str = "") -> None:
        """`source` is the client's own address, if any will not do."""
        self.authority = f"{host}:{port}"
        self.calls: Calls | None = None
        self.socket = socket.create_connection((host, port), 10, (source, 0) if source else None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._in = bytearray()
        self._out = bytearray()
        self._next_stream = 1
        self._window = 65_535
        self._initial_window = 65_535
        self._windows: dict[int, int] = {}
        self._waiting: deque[tuple[int, bytes, int]] = deque()
        self._received = 0
        self._had_data: set[int] = set()
        settings = struct.pack(">HLHL", 2, 0, _INITIAL_WINDOW, _WINDOW_MAX)
        self._out += _PREFACE + frame(_SETTINGS, 0, 0, settings)
        self._out += frame(_WINDOW_UPDATE, 0, 0, struct.pack(">L", _WINDOW_MAX - 65_535))
        self.flush()
        self.socket.settimeout(None)

    def close(self) -> None:
        self.socket.close()

    # --- out --------------------------------------------------------------------------------------

    def begin(self, block: bytes) -> int:
        """Open a stream with these headers; its id."""
        stream_id = self._next_stream
        self._next_stream += 2
        self._windows[stream_id] = self._initial_window
        self._out += frame(_HEADERS, _END_HEADERS, stream_id, block)
        return stream_id

    def send(self, stream_id: int, data: bytes, *, is_last: bool = False) -> None:
        """One DATA frame, now or as soon as the windows have room for it."""
        flags = _END_STREAM if is_last else 0
        if self._waiting or not self._fits(stream_id, len(data)):
            self._waiting.append((stream_id, data, flags))
        else:
            self._put(stream_id, data, flags)

    def _fits(self, stream_id: int, size: int) -> bool:
        return self._window >= size and self._windows[stream_id] >= size

    def _put(self, stream_id: int, data: bytes, flags: int) -> None:
        self._window -= len(data)
        self._windows[stream_id] -= len(data)
        self._out += frame(_DATA, flags, stream_id, data)

    def flush(self) -> None:
        """Write everything that may be written."""
        while self._waiting and self._fits(self._waiting[0][0], len(self._waiting[0][1])):
            self._put(*self._waiting.popleft())
        if self._out:
            self.socket.sendall(self._out)
            self._out.clear()

    # --- in ---------------------------------------------------------------------------------------

    def receive(self) -> None:
        """Read what is there. Raises ConnectionError when the server has closed."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError(f"{self.authority} has closed the connection")
        self._in += data
        buffer, at, end = bytes(self._in), 0, len(self._in)
        while end - at >= 9:
            high, low, kind, flags, stream_id = struct.unpack_from(">BHBBL", buffer, at)
            size = high << 16 | low
            if end - at < 9 + size:
                break
            self._frame(kind, flags, stream_id, buffer[at + 9 : at + 9 + size])
            at += 9 + size
        del self._in[:at]

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if kind == _DATA:
            self._note_received(len(payload))
            self._had_data.add(stream_id)
            assert self.calls is not None, "nobody has asked"
            self.calls.received(stream_id, payload)
        elif kind == _WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream_id == 0:
                self._window += more
            elif stream_id in self._windows:
                self._windows[stream_id] += more
        elif kind == _SETTINGS and not flags & _ACK:
            self._settings(payload)
        elif kind == _PING and not flags & _ACK:
            self._out += frame(_PING, _ACK, 0, payload)
        elif kind in (_RST_STREAM, _GOAWAY):
            raise ConnectionError(f"{self.authority} has ended stream {stream_id}: {payload!r}")
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            del self._windows[stream_id]
            assert self.calls is not None, "nobody has asked"
            had_data = stream_id in self._had_data
            self._had_data.discard(stream_id)
            self.calls.ended(stream_id, had_data=had_data)

    def _settings(self, payload: bytes) -> None:
        for key, value in struct.iter_unpack(">HL", payload):
            if key == _INITIAL_WINDOW:
                for stream_id in self._windows:
                    self._windows[stream_id] += value - self._initial_window
                self._initial_window = value
        self._out += frame(_SETTINGS, _ACK, 0, b"")

    def _note_received(self, size: int) -> None:
        self._received += size
        if self._received >= _TOP_UP_BYTES:
            self._out += frame(_WINDOW_UPDATE, 0, 0, struct.pack(">L", self._received))
            self._received = 0


class Readable(Protocol):
    """The part of a connection that a load uses."""

    @property
    def socket(self) -> socket.socket: ...

    def receive(self) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class Load:
    """Calls in flight on some connections, each answered one followed by the next."""

    def __init__(self, connections: Sequence[Readable]) -> None:
        self.connections = connections
        self._poll = select.epoll()
        self._by_number = {one.socket.fileno(): one for one in connections}
        for number in self._by_number:
            self._poll.register(number, select.EPOLLIN)
        self.latencies_ns: list[int] = []
        self.answered = 0
        self.in_flight = 0
        self.is_open = True

    def turn(self, timeout_s: float) -> None:
        """Wait for answers, take them, send what follows."""
        for number, _ in self._poll.poll(timeout_s):
            self._by_number[number].receive()
            self._by_number[number].flush()

    def run(self, duration_s: float) -> float:
        """Keep the calls in flight going; the time that it took. Latencies are of this run."""
        self.latencies_ns.clear()
        began = time.perf_counter()
        deadline = began + duration_s
        while (now := time.perf_counter()) < deadline:
            self.turn(deadline - now)
        return time.perf_counter() - began

    def finish(self) -> None:
        """Make no more calls, and wait for those that are in flight."""
        self.is_open = False
        while self.in_flight:
            self.turn(10)
        self._poll.close()
        for connection in self.connections:
            connection.close()


class _UnaryCalls:
    """Unary calls of one connection."""

    def __init__(self, load: UnaryLoad, connection: Connection) -> None:
        connection.calls = self
        self._load = load
        self._connection = connection
        self._block = header_block(load.path, connection.authority)
        self._began: dict[int, int] = {}

    def call(self) -> None:
        self._load.in_flight += 1
        stream_id = self._connection.begin(self._block)
        self._began[stream_id] = time.perf_counter_ns()
        self._connection.send(stream_id, self._load.next_message(), is_last=True)

    def received(self, stream_id: int, data: bytes) -> None:
        """The answer itself is not looked at: how much was committed is checked afterwards."""

    def ended(self, stream_id: int, *, had_data: bool) -> None:
        if not had_data:
            raise ConnectionError(f"{self._connection.authority}: {self._load.path} has failed")
        self._load.latencies_ns.append(time.perf_counter_ns() - self._began.pop(stream_id))
        self._load.answered += 1
        self._load.in_flight -= 1
        if self._load.is_open:
            self.call()


class UnaryLoad(Load):
    """`in_flight` unary calls, spread over the connections."""

    def __init__(
        self,
        connections: list[Connection],
        path: str,
        next_payload: Callable[[], bytes],
        in_flight: int,
    ) -> None:
        self.path = path
        self._next_payload = next_payload
        super().__init__(connections)
        callers = [_UnaryCalls(self, connection) for connection in connections]
        for number in range(in_flight):
            callers[number % len(callers)].call()
        for connection in connections:
            connection.flush()

    def next_message(self) -> bytes:
        return message(self._next_payload())


class _StreamCalls:
    """One bidi stream: requests with rising sequences, answers that acknowledge up to one."""

    def __init__(self, load: StreamLoad, connection: Connection) -> None:
        connection.calls = self
        self._load = load
        self._connection = connection
        self._stream_id = connection.begin(header_block(load.path, connection.authority))
        self._began: deque[tuple[int, int]] = deque()
        self._partial = b""
        self._sequence = 0

    def put(self) -> None:
        self._load.in_flight += 1
        self._sequence += 1
        self._began.append((self._sequence, time.perf_counter_ns()))
        data = message(self._load.make_payload(self._sequence))
        self._connection.send(self._stream_id, data)

    def received(self, stream_id: int, data: bytes) -> None:
        self._partial += data
        at, last = 0, 0
        while len(self._partial) - at >= 5:
            size = int.from_bytes(self._partial[at + 1 : at + 5], "big")
            if len(self._partial) - at < 5 + size:
                break
            last = self._load.last_sequence(self._partial[at + 5 : at + 5 + size])
            at += 5 + size
        self._partial = self._partial[at:]
        now, count = time.perf_counter_ns(), 0
        while self._began and self._began[0][0] <= last:
            self._load.latencies_ns.append(now - self._began.popleft()[1])
            count += 1
        self._load.answered += count
        self._load.in_flight -= count
        if self._load.is_open:
            for _ in range(count):
                self.put()

    def ended(self, stream_id: int, *, had_data: bool) -> None:
        raise ConnectionError(f"{self._connection.authority} has ended {self._load.path}")


class StreamLoad(Load):
    """One stream a connection, `in_flight` requests on all of them together."""

    def __init__(
        self,
        connections: list[Connection],
        path: str,
        make_payload: Callable[[int], bytes],
        last_sequence: Callable[[bytes], int],
        in_flight: int,
    ) -> None:
        self.path = path
        self.make_payload = make_payload
        self.last_sequence = last_sequence
        super().__init__(connections)
        streams = [_StreamCalls(self, connection) for connection in connections]
        for number in range(in_flight):
            streams[number % len(streams)].put()
        for connection in connections:
            connection.flush()
