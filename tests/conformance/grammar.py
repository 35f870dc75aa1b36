"""Frames of HTTP/2 that a random source draws: mostly right, so that what follows is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.integration.raw_http2 import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    headers_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

PUSH_PROMISE: Final = 5
PADDED: Final = 8
PRIORITISED: Final = 0x20
PATHS: Final = tuple(
    f"/grpc.testing.TestService/{name}"
    for name in (
        "EmptyCall",
        "UnaryCall",
        "StreamingOutputCall",
        "StreamingInputCall",
        "FullDuplexCall",
        "HalfDuplexCall",
        "UnimplementedCall",
        "",
    )
)
# Of a hundred frames so many have something about them that is not right.
WRONG_PERCENT: Final = 8
_NAMES: Final = (
    b"grpc-timeout",
    b"grpc-encoding",
    b"content-type",
    b"te",
    b"x-bin",
    b"grpc-message",
    b":path",
    b":status",
    b"connection",
    b"content-length",
    b"X-Upper",
    b"",
)
_VALUES: Final = (
    b"1n",
    b"99999999H",
    b"-1S",
    b"gzip",
    b"identity",
    b"application/grpc+proto",
    b"text/html",
    b"trailers",
    b"AAAA====",
    b"%",
    b"0",
    b"\0\xff",
    b"",
)


class Grammar:
    """The frames of one conversation; it remembers which streams it has opened."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._next = 1
        self._open: list[int] = []
        self._kinds: tuple[tuple[int, Callable[[], bytes]], ...] = (
            (30, self._call),
            (30, self._data),
            (6, self._settings),
            (6, self._ping),
            (8, self._window_update),
            (6, self._reset),
            (4, self._priority),
            (3, self._trailers),
            (3, self._split_headers),
            (1, self._push_promise),
            (1, self._go_away),
            (2, self._unknown),
        )

    def frame(self) -> bytes:
        """The next frame; some headers are two or three."""
        weights = [weight for weight, _ in self._kinds]
        (drawn,) = self._random.choices(self._kinds, weights)
        made = drawn[1]()
        return self._spoiled(made) if self._is_wrong() else made

    def _is_wrong(self) -> bool:
        return self._random.randrange(100) < WRONG_PERCENT

    def _spoiled(self, made: bytes) -> bytes:
        """Another length, type, set of flags or stream than belongs to it."""
        bytes_ = bytearray(made)
        at = self._random.choice((0, 1, 2, 3, 4, 5, 8, self._random.randrange(len(bytes_))))
        bytes_[at] = self._random.randrange(256)
        return bytes(bytes_)

    def _stream(self) -> int:
        if self._open and not self._is_wrong():
            return self._random.choice(self._open)
        return self._random.choice((0, 1, 2, 3, self._next, 2**31 - 1))

    def _new_stream(self) -> int:
        stream = self._next
        self._next += self._random.choice((2, 2, 2, 4))
        self._open.append(stream)
        del self._open[:-8]
        return stream

    def _block(self) -> bytes:
        block = headers_of(self._random.choice(PATHS))
        for _ in range(self._random.choice((0, 0, 0, 1, 2))):
            block += self._header()
        if self._is_wrong():
            block += self._random.randbytes(self._random.randrange(1, 20))
        return block

    def _header(self) -> bytes:
        """A literal that is remembered, not remembered, or never to be; or a changed table."""
        how = self._random.choice((b"\0", b"\x40", b"\x10", b"\x20", b"\x3f\xe1\x1f"))
        if how[0] >> 5 == 1:
            return how
        name, value = self._random.choice(_NAMES), self._random.choice(_VALUES)
        if self._random.randrange(10) == 0:
            value *= self._random.randrange(10)
        return how + bytes([len(name)]) + name + bytes([min(len(value), 126)]) + value[:126]

    def _call(self) -> bytes:
        flags = END_HEADERS | (END_STREAM if self._random.randrange(6) == 0 else 0)
        block = self._block()
        if self._random.randrange(8) == 0:
            flags |= PRIORITISED
            block = self._random.randbytes(5) + block
        if self._random.randrange(8) == 0:
            flags |= PADDED
            pad = self._random.randrange(8)
            block = bytes([pad]) + block + bytes(pad)
        return frame(HEADERS, flags, self._new_stream(), block)

    def _split_headers(self) -> bytes:
        block, stream = self._block(), self._new_stream()
        at = self._random.randrange(len(block))
        last = END_HEADERS if not self._is_wrong() else 0
        return frame(HEADERS, 0, stream, block[:at]) + frame(CONTINUATION, last, stream, block[at:])

    def _trailers(self) -> bytes:
        return frame(HEADERS, END_HEADERS | END_STREAM, self._stream(), self._header())

    def _data(self) -> bytes:
        size = self._random.choice((0, 0, 1, 5, 30, 300))
        body = self._random.randbytes(size) if self._random.randrange(3) == 0 else bytes(size)
        length = size if not self._is_wrong() else self._random.getrandbits(32)
        compressed = self._random.choice((0, 0, 0, 0, 1, 2))
        message = bytes([compressed]) + length.to_bytes(4, "big") + body
        flags = END_STREAM if self._random.randrange(3) == 0 else 0
        if self._random.randrange(8) == 0:
            flags |= PADDED
            pad = self._random.randrange(256)
            message = bytes([pad]) + message + bytes(pad)
        return frame(DATA, flags, self._stream(), message)

    def _settings(self) -> bytes:
        if self._random.randrange(3) == 0:
            return frame(SETTINGS, 1, 0, b"")
        pairs = (
            self._random.choice((1, 2, 3, 4, 5, 6, 8, 99)).to_bytes(2, "big")
            + self._random.choice((0, 1, 100, 4096, 16384, 65535, 2**24, 2**32 - 1)).to_bytes(
                4, "big"
            )
            for _ in range(self._random.randrange(3))
        )
        return frame(SETTINGS, 0, 0, b"".join(pairs))

    def _ping(self) -> bytes:
        return frame(PING, self._random.choice((0, 1)), 0, self._random.randbytes(8))

    def _window_update(self) -> bytes:
        size = self._random.choice((1, 100, 65535, 65535, 2**20, 0 if self._is_wrong() else 9))
        return frame(WINDOW_UPDATE, 0, self._stream(), size.to_bytes(4, "big"))

    def _reset(self) -> bytes:
        code = self._random.choice((0, 7, 8, 2**32 - 1))
        return frame(RST_STREAM, 0, self._stream(), code.to_bytes(4, "big"))

    def _priority(self) -> bytes:
        return frame(PRIORITY, 0, self._stream(), self._random.randbytes(5))

    def _push_promise(self) -> bytes:
        promised = self._next.to_bytes(4, "big")
        return frame(PUSH_PROMISE, END_HEADERS, self._stream(), promised + self._block())

    def _go_away(self) -> bytes:
        code = self._random.choice((0, 0, 11))
        return frame(GOAWAY, 0, 0, bytes(4) + code.to_bytes(4, "big") + b"enough")

    def _unknown(self) -> bytes:
        kind = self._random.randrange(10, 256)
        body = self._random.randbytes(self._random.randrange(40))
        return frame(kind, self._random.randrange(256), self._stream(), body)
