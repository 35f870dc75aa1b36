"""Abuse of HTTP/2 by a client that writes its frames itself, for `tests.bench.attacker`.

Each flood is a `Flood`: the frames of one more call, made as fast as the sockets take them, or as
many calls in parallel as the flood holds. Frames are made in batches of bytes, because a library
would cost the client more than the server. What comes back is read and counted. Nothing here
widens a
window unless the flood says so.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.bench.http2_client import header_block, message
from tests.integration.raw_http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
)

if TYPE_CHECKING:
    from collections.abc import Callable

API_VERSIONS: Final = "/quorate.raft.v1.Raft/ApiVersions"
HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"
FIELDS: Final = 1_450
# `age` of HPACK's static table, a field of one byte. Longer fields would be more than a connection
# may send.
_ONE_BYTE_FIELD: Final = b"\x95"
_GET: Final = b"\x82\x86\x84\x01\x01a"
CALLS_HELD: Final = 12
PLAIN_CALLS: Final = 1_024
_BATCH: Final = 200
_READ_BYTES: Final = 1 << 18
_INITIAL_WINDOW_SIZE: Final = 4
_WINDOW: Final = 65_535
_WINDOW_MAX: Final = 2**31 - 1
# A connection is left before it has used its ids up.
_STREAM_MAX: Final = 2**31 - 2 * _BATCH
_TOP_UP_BYTES: Final = 1 << 28
# Of all connections together: a server that ends each one immediately is not asked for ever.
RECONNECTS_MAX: Final = 20_000
_CANCEL: Final = (8).to_bytes(4, "big")
_NO_ERROR_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Flood:
    """`make` gives the frames of one call; `held` bounds the calls in flight on a connection.

    With `calls_max` a connection makes so many calls and then keeps them.
    """

    make: Callable[[int], bytes]
    window: int = _WINDOW
    held: int | None = None
    calls_max: int | None = None


def _calls(path: str) -> Callable[[int], bytes]:
    block, empty = header_block(path, "controller"), message(b"")

    def make(stream: int) -> bytes:
        return frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, empty)

    return make


def _wide_headers(stream: int) -> bytes:
    # The server resets each, since no call may have so many fields.
    block = header_block(API_VERSIONS, "controller") + _ONE_BYTE_FIELD * FIELDS
    return frame(HEADERS, END_HEADERS, stream, block)


def _byte_and_reset(stream: int) -> bytes:
    reset = frame(RST_STREAM, 0, stream, _CANCEL)
    return _begun(stream) + reset


def _byte_and_no_window(stream: int) -> bytes:
    return _begun(stream) + frame(WINDOW_UPDATE, 0, stream, bytes(4))


def _begun(stream: int) -> bytes:
    block = header_block(API_VERSIONS, "controller")
    return frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, 0, stream, b"\0")


def _plain_get(stream: int) -> bytes:
    return frame(HEADERS, END_HEADERS | END_STREAM, stream, _GET)


FLOODS: Final[dict[str, Flood]] = {
    "pipelined": Flood(_calls(API_VERSIONS)),
    "within-limits": Flood(_calls(API_VERSIONS), window=_WINDOW_MAX, held=CALLS_HELD),
    "wide-headers": Flood(_wide_headers),
    "headers-byte-reset": Flood(_byte_and_reset),
    "headers-byte-window-zero": Flood(_byte_and_no_window),
    "health-port": Flood(_calls(HEALTH_CHECK)),
    "non-grpc": Flood(_plain_get, window=0, calls_max=PLAIN_CALLS),
}


@dataclass(slots=True)
class Counts:
    """Frames that an attacker has sent and got. `ended` are connections ended by the server."""

    answers: int = 0
    refusals: int = 0
    resets: int = 0
    ended: int = 0
    sent_bytes: int = 0


class _Connection:
    """One socket of a flood."""

    def __init__(
        self, flood: Flood, counts: Counts, address: tuple[str, int], source: str | None
    ) -> None:
        self._flood = flood
        self._counts = counts
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(5)
        try:
            if source is not None:
                self.socket.bind((source, 0))
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self.socket.setblocking(False)  # noqa: FBT003
        setting = struct.pack(">HL", _INITIAL_WINDOW_SIZE, flood.window)
        self._out = bytearray(PREFACE + frame(SETTINGS, 0, 0, setting))
        if flood.window > _WINDOW:
            more = struct.pack(">L", flood.window - _WINDOW)
            self._out += frame(WINDOW_UPDATE, 0, 0, more)
        self._in = b""
        self._next_stream = 1
        self._made = 0
        self._under_way: set[int] = set()
        self._received = 0

    @property
    def wants_to_write(self) -> bool:
        return bool(self._out) or self._room() > 0

    def _room(self) -> int:
        """The number of calls that may begin now."""
        flood = self._flood
        room = _BATCH
        if flood.held is not None:
            room = flood.held - len(self._under_way)
        if flood.calls_max is not None:
            room = min(room, flood.calls_max - self._made)
        return room

    def write(self) -> None:
        """Send as much as the socket takes now. Raises OSError when the server has closed."""
        if not self._out:
            for _ in range(self._room()):
                self._out += self._flood.make(self._next_stream)
                if self._flood.held is not None:
                    self._under_way.add(self._next_stream)
                self._next_stream += 2
                self._made += 1
        sent = self.socket.send(self._out)
        self._counts.sent_bytes += sent
        del self._out[:sent]
        if self._next_stream > _STREAM_MAX:
            raise ConnectionError("all stream ids are used")

    def read(self) -> None:
        """Take what has come. Raises OSError when the server has closed or says goodbye."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("the server has closed the connection")
        data = self._in + data
        at, end = 0, len(data)
        while end - at >= 9:
            size = int.from_bytes(data[at : at + 3], "big")
            if end - at < 9 + size:
                break
            stream = int.from_bytes(data[at + 5 : at + 9], "big")
            self._take(data[at + 3], data[at + 4], stream, data[at + 9 : at + 9 + size])
            at += 9 + size
        self._in = data[at:]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        counts = self._counts
        if kind == DATA:
            # Each answer is short, so that it is one frame.
            counts.answers += 1
            self._top_up(len(payload))
        elif kind == HEADERS and flags & END_STREAM:
            counts.refusals += 1
        elif kind == RST_STREAM:
            counts.resets += 1
        elif kind == SETTINGS and not flags & ACK:
            self._out += frame(SETTINGS, ACK, 0, b"")
        elif kind == PING and not flags & ACK:
            self._out += frame(PING, ACK, 0, payload)
        elif kind == GOAWAY:
            raise ConnectionError("the server has said goodbye")
        if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self._under_way.discard(stream)

    def _top_up(self, size: int) -> None:
        if self._flood.window <= _WINDOW:
            return
        self._received += size
        if self._received >= _TOP_UP_BYTES:
            self._out += frame(WINDOW_UPDATE, 0, 0, struct.pack(">L", self._received))
            self._received = 0


class Flooder:
    """`connections` sockets to one address, each followed by another when the server ends it."""

    def __init__(
        self, flood: Flood, address: tuple[str, int], *, connections: int, source: str | None
    ) -> None:
        self.counts = Counts()
        self._flood = flood
        self._address = address
        self._connections = connections
        self._source = source
        self._poll = select.epoll()
        self._open: dict[int, _Connection] = {}
        self._reconnects = 0

    def run(self, seconds: float, answers_max: int) -> Counts:
        """Attack for so long, or until so many answers; then close all connections together."""
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline and self.counts.answers < answers_max:
                self._connect(deadline)
                self._turn()
        finally:
            for connection in self._open.values():
                connection.socket.close()
            self._poll.close()
        # A call that was answered ends with headers, too.
        self.counts.refusals = max(0, self.counts.refusals - self.counts.answers)
        return self.counts

    def _connect(self, deadline: float) -> None:
        while len(self._open) < self._connections and time.monotonic() < deadline:
            if self._reconnects > RECONNECTS_MAX:
                return
            self._reconnects += 1
            try:
                connection = _Connection(self._flood, self.counts, self._address, self._source)
            except OSError:
                # The server takes no connection now; the next turn tries again.
                return
            number = connection.socket.fileno()
            self._open[number] = connection
            self._poll.register(number, select.EPOLLIN | select.EPOLLOUT)

    def _turn(self) -> None:
        for number, events in self._poll.poll(_NO_ERROR_S):
            connection = self._open[number]
            try:
                if events & ~select.EPOLLOUT:
                    connection.read()
                if events & select.EPOLLOUT and connection.wants_to_write:
                    connection.write()
            except BlockingIOError:
                continue
            except OSError:
                self.counts.ended += 1
                self._poll.unregister(number)
                del self._open[number]
                connection.socket.close()
                continue
            wanted = select.EPOLLOUT if connection.wants_to_write else 0
            self._poll.modify(number, select.EPOLLIN | wanted)
