"""A client that speaks as much of HTTP/2 as abuse takes: calls begun and not ended, nothing read.

Flow control is obeyed, so that the other side has to take whatever it has made room for.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable
    from types import TracebackType

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
_INITIAL_WINDOW_SIZE: Final = 4
MAX_CONCURRENT_STREAMS: Final = 3
NO_ERROR: Final = 0
REFUSED_STREAM: Final = 7
_WINDOW: Final = 65535
_FRAME_MAX: Final = 16384


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame."""
    size = len(payload).to_bytes(3, "big")
    return size + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _literal(name: str, value: str) -> bytes:
    """A header without any compression; both lengths take one byte."""
    return b"".join((b"\0", bytes([len(name)]), name.encode(), bytes([len(value)]), value.encode()))


def headers_of(path: str) -> bytes:
    """The headers that begin a gRPC call."""
    return b"".join(
        _literal(name, value)
        for name, value in (
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "controller"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        )
    )


class RawConnection:
    """One connection. With `reads_nothing` the other side may send no byte of any answer."""

    def __init__(
        self,
        address: tuple[str, int],
        *,
        source: str,
        reads_nothing: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address = address
        self._tls = tls
        self._source = source
        self._own_window = 0 if reads_nothing else _WINDOW
        self._window = _WINDOW
        self._initial = _WINDOW
        self._windows: dict[int, int] = {}
        self._next = 1
        self._left: dict[int, bytes] = {}
        self.sent = 0
        self.trailers: list[bytes] = []
        # What the other side has set, and with which code it has reset streams.
        self.settings: dict[int, int] = {}
        self.resets: list[int] = []
        # The code with which it has ended the connection.
        self.gone: int | None = None
        self.is_closed = False
        self._listening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(
            *self._address, local_addr=(self._source, 0), family=socket.AF_INET, ssl=self._tls
        )
        setting = _INITIAL_WINDOW_SIZE.to_bytes(2, "big") + self._own_window.to_bytes(4, "big")
        self._writer.write(PREFACE + frame(SETTINGS, 0, 0, setting))
        self._listening = asyncio.ensure_future(self._listen())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        assert self._listening is not None
        self._listening.cancel()
        # Nothing is waited for that the other side would have to say.
        self._writer.transport.abort()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    async def send(self, data: bytes) -> None:
        """Frames as they are. Raises ConnectionError when the other side takes no more."""
        self._writer.write(data)
        await self._writer.drain()

    def begin(self, path: str, *requests: bytes, is_whole: bool = True) -> None:
        """Begin a call. Of requests that are not whole the last byte never comes."""
        stream = self._next
        self._next += 2
        self._windows[stream] = self._initial
        self._writer.write(frame(HEADERS, 4, stream, headers_of(path)))
        message = b"".join(b"\0" + len(data).to_bytes(4, "big") + data for data in requests)
        self._left[stream] = message if is_whole else message[:-1]
        self._pump([stream])

    def _pump(self, streams: Iterable[int]) -> None:
        for stream in streams:
            if not self._window:
                break
            left = self._left.get(stream, b"")
            while left and (n := min(_FRAME_MAX, self._window, self._windows[stream], len(left))):
                self._writer.write(frame(DATA, 0, stream, left[:n]))
                left = left[n:]
                self._window -= n
                self._windows[stream] -= n
                self.sent += n
            if left:
                self._left[stream] = left
            else:
                self._left.pop(stream, None)

    async def _listen(self) -> None:
        try:
            while True:
                size, kind = _split(await self._reader.readexactly(5))
                stream = int.from_bytes(await self._reader.readexactly(4), "big")
                self._heard(kind[0], kind[1], stream, await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            self.is_closed = True

    def _heard(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream:
                self._windows[stream] = self._windows.get(stream, 0) + more
                self._pump([stream])
            else:
                self._window += more
                self._pump(list(self._left))
        elif kind == PING and not flags:
            self._writer.write(frame(PING, 1, 0, payload))
        elif kind == GOAWAY:
            self.gone = int.from_bytes(payload[4:8], "big")
        elif kind == RST_STREAM:
            self.resets.append(int.from_bytes(payload, "big"))
        elif kind == SETTINGS and not flags:
            self.settings |= {
                int.from_bytes(payload[at : at + 2], "big"): int.from_bytes(
                    payload[at + 2 : at + 6], "big"
                )
                for at in range(0, len(payload), 6)
            }
            self._writer.write(frame(SETTINGS, 1, 0, b""))
        elif kind == HEADERS and flags & 1:
            self.trailers.append(payload)
        if kind == RST_STREAM or (kind == HEADERS and flags & 1):
            self._left.pop(stream, None)


def _split(head: bytes) -> tuple[int, bytes]:
    return int.from_bytes(head[:3], "big"), head[3:]
