"""gRPC on HTTP/2: length-prefixed messages, metadata, timeouts, status."""

from __future__ import annotations

import base64
import binascii
import struct
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote, unquote

import grpc

if TYPE_CHECKING:
    from collections.abc import Iterable

Metadata: TypeAlias = "tuple[tuple[str, str | bytes], ...]"
_PREFIX: Final = struct.Struct(">BL")
PREFIX_BYTES: Final = _PREFIX.size
_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
# Characters of grpc-message, so that it fits into a peer's header list with all else.
_MESSAGE_CHARACTERS_MAX: Final = 4096
_UNITS: Final = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_RESERVED: Final = frozenset(
    (
        b"te",
        b"content-type",
        b"content-length",
        b"grpc-timeout",
        b"grpc-encoding",
        b"grpc-accept-encoding",
        b"grpc-status",
        b"grpc-message",
    )
)
OF_NUMBERS: Final = {code.value[0]: code for code in grpc.StatusCode}


class OversizedError(Exception):
    """A message over the size limit, or a compressed one; `code` is the resulting status."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words)
        self.code = code


def frame_message(data: bytes) -> bytes:
    """Prefix a message with its length."""
    return _PREFIX.pack(0, len(data)) + data


class MessageReader:
    """Splits the bytes of one direction of a call into messages."""

    __slots__ = ("_at", "_bytes_max", "_data", "_size")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._data: bytes | bytearray = b""
        self._at = 0
        # Size of the next message; None before its prefix is complete.
        self._size: int | None = None

    def __len__(self) -> int:
        """The number of bytes that are not taken as messages yet."""
        return len(self._data) - self._at

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        if len(self) == 0:
            self._data, self._at = data, 0
            return
        if isinstance(self._data, bytes):
            self._data = bytearray(self._data[self._at :])
            self._at = 0
        self._data += data

    @property
    def is_whole(self) -> bool:
        """True if the next message is complete."""
        left = len(self) - PREFIX_BYTES
        if left < 0:
            return False
        size = self._size
        return left >= (_PREFIX.unpack_from(self._data, self._at)[1] if size is None else size)

    def take(self) -> bytes | None:
        """Return the next message; None until it is complete.

        Raises OversizedError as soon as its length is known.
        """
        data, at = self._data, self._at
        left = len(data) - at - PREFIX_BYTES
        if self._size is None:
            if left < 0:
                return None
            self._size = self._checked(*_PREFIX.unpack_from(data, at))
        if left < self._size:
            return None
        begin = at + PREFIX_BYTES
        end = self._at = begin + self._size
        self._size = None
        if isinstance(data, bytes):
            message = data[begin:end]
        else:
            # Slicing the bytearray would make a second copy of a message that may be large.
            with memoryview(data) as view:
                message = bytes(view[begin:end])
        if end == len(data):
            self._data, self._at = b"", 0
        elif isinstance(data, bytearray):
            del data[:end]
            self._at = 0
        return message

    def _checked(self, is_compressed: int, size: int) -> int:
        if is_compressed:
            words = "the message is compressed, and no compression was agreed on"
            raise OversizedError(grpc.StatusCode.INTERNAL, words)
        if size > self._bytes_max:
            words = f"Received message larger than max ({size} vs. {self._bytes_max})"
            raise OversizedError(grpc.StatusCode.RESOURCE_EXHAUSTED, words)
        return size


# --- metadata -------------------------------------------------------------------------------------


def timeout_s(value: bytes) -> float:
    """Parse a grpc-timeout into seconds. Raises ValueError."""
    number, unit = value[:-1], _UNITS.get(value[-1:])
    if unit is None or not number.isdigit() or len(number) > 8:
        raise ValueError(f"grpc-timeout is {value!r}")
    return int(number) * unit


def timeout_value(seconds: float) -> bytes:
    """Format a time as grpc-timeout, as precisely as its digits allow."""
    for unit, size in ((b"n", 1e-9), (b"u", 1e-6), (b"m", 1e-3), (b"S", 1.0), (b"M", 60.0)):
        count = max(0, int(seconds / size))
        if count < 100_000_000:
            return b"%d%s" % (count, unit)
    return b"%dH" % min(99_999_999, int(seconds / 3600))


def status_words(words: str) -> bytes:
    """Encode a message as grpc-message."""
    return quote(words[:_MESSAGE_CHARACTERS_MAX], safe=_PRINTABLE, errors="replace").encode()


def words_of(value: bytes) -> str:
    """Decode a grpc-message."""
    return unquote(value.decode("latin-1"), errors="replace")


def metadata_pairs(metadata: Iterable[tuple[str, str | bytes]]) -> list[tuple[bytes, bytes]]:
    """Encode metadata as headers."""
    pairs = []
    for key, value in metadata:
        data = value.encode() if isinstance(value, str) else value
        if key.endswith("-bin"):
            data = base64.b64encode(data).rstrip(b"=")
        pairs.append((key.lower().encode(), data.strip()))
    return pairs


def metadata_of(pairs: Iterable[tuple[bytes, bytes]]) -> Metadata:
    """Return the metadata among headers. Raises ValueError for invalid base64."""
    metadata: list[tuple[str, str | bytes]] = []
    for name, value in pairs:
        if name in _RESERVED:
            continue
        key = name.decode()
        if key.endswith("-bin"):
            metadata.extend((key, _unpacked(key, part)) for part in value.split(b","))
        else:
            metadata.append((key, value.decode("utf-8", errors="replace")))
    return tuple(metadata)


def _unpacked(key: str, value: bytes) -> bytes:
    try:
        return base64.b64decode(value.strip() + b"=" * (-len(value.strip()) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError(f"{key} is no base64: {error}") from error
