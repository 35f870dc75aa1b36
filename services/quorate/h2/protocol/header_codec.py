"""Decodes and validates header blocks (RFC 9113, section 8) and encodes ours.

Decoding uses hpack. A client repeats itself: as long as no block has changed the decoder's table,
equal blocks have equal fields, and are decoded and validated once. Our own fields are never put
into the peer's table, so that a field is always encoded in the same way.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from hpack import Decoder, Encoder
from hpack.exceptions import HPACKError, OversizedHeaderListError
from hpack.table import HeaderTable

from quorate.h2.peer_text import quoted
from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.protocol.header_cache import HeaderCache
from quorate.h2.protocol.limits import ListenerMemory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.h2.protocol.limits import Limits

_FIELD_OVERHEAD: Final = 32
_SIZE_UPDATE: Final = 0x20
# A block may begin with two size updates (RFC 7541, section 4.2); hpack accepts any number, slowly.
_SIZE_UPDATES: Final = re.compile(rb"(?:[\x20-\x3e]|\x3f[\x80-\xff]*[\x00-\x7f]){3}")
# Larger blocks cannot be decoded to their end, so that the connection is lost.
_HARD_FACTOR: Final = 4
_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE: Final = re.compile(rb"(?:[^\x00\r\n \t](?:[^\x00\r\n]*[^\x00\r\n \t])?)?", re.DOTALL)
_OF_REQUESTS: Final = frozenset((b":method", b":scheme", b":path", b":authority"))
_OF_CONNECTIONS: Final = frozenset(
    (b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade")
)


class BlockError(Exception):
    """A block that ends the connection, since later blocks cannot be decoded."""

    def __init__(self, code: H2ErrorCode, words: str) -> None:
        super().__init__(words)
        self.code = code


class Fields:
    """One header list. `wrong` is the fault, if any: the stream then ends with `code`."""

    __slots__ = ("code", "content_length", "meaning", "pairs", "pseudo", "wrong")

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self.pseudo: dict[bytes, bytes] = {}
        self.pairs = pairs
        self.content_length: int | None = None
        self.wrong: str | None = None
        self.code = H2ErrorCode.PROTOCOL_ERROR
        # The parsed fields, cached by their reader for the next equal block.
        self.meaning: Any = None


class _Table(HeaderTable):
    """A decoder's table that counts its additions.

    Its contents do not show all of them: an entry larger than the table empties it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.additions = 0

    def add(self, name: bytes, value: bytes) -> None:
        self.additions += 1
        super().add(name, value)


class BlockReader:
    """Decodes the blocks that one peer sends."""

    def __init__(self, limits: Limits, memory: ListenerMemory | None = None) -> None:
        self._limits = limits
        self._decoder = Decoder(max_header_list_size=limits.header_bytes_max * _HARD_FACTOR)
        self._table = self._decoder.header_table = _Table()
        self._cache = HeaderCache[Fields](limits, memory or ListenerMemory())

    def read(self, block: bytes) -> Fields:
        """Decode a block. Raises BlockError."""
        known = self._cache.get(block)
        if known is not None:
            return known
        if _SIZE_UPDATES.match(block):
            words = "a block changes the size of the table more than twice"
            raise BlockError(H2ErrorCode.COMPRESSION_ERROR, words)
        additions = self._table.additions
        try:
            pairs = [(bytes(name), bytes(value)) for name, value in self._decode(block)]
        except OversizedHeaderListError as error:
            words = f"a header list of more than {self._decoder.max_header_list_size} bytes"
            raise BlockError(H2ErrorCode.ENHANCE_YOUR_CALM, words) from error
        except HPACKError as error:
            # hpack's message may contain the whole block, or the address of an object.
            words = f"a header block that cannot be decoded: {type(error).__name__}"
            raise BlockError(H2ErrorCode.COMPRESSION_ERROR, words) from error
        fields = validate(pairs, self._limits)
        has_size_update = bool(block) and block[0] & 0xE0 == _SIZE_UPDATE
        if self._table.additions != additions or has_size_update:
            # Such a block must change the table again each time; earlier blocks now have another
            # meaning.
            self._cache.clear()
        else:
            self._cache.add(block, pairs, fields)
        return fields

    def close(self) -> None:
        """Release the memory of cached blocks."""
        self._cache.clear()

    def _decode(self, block: bytes) -> Iterable[Any]:
        return self._decoder.decode(block, raw=True)


def validate(pairs: list[tuple[bytes, bytes]], limits: Limits) -> Fields:
    """Return the fields with their fault, if any."""
    fields = Fields([pair for pair in pairs if not pair[0].startswith(b":")])
    size = sum(len(name) + len(value) + _FIELD_OVERHEAD for name, value in pairs)
    if size > limits.header_bytes_max or len(pairs) > limits.header_count_max:
        fields.code = H2ErrorCode.ENHANCE_YOUR_CALM
        fields.wrong = (
            f"{len(pairs)} headers with {size} bytes: {limits.header_count_max} with "
            f"{limits.header_bytes_max} are the most"
        )
        return fields
    fields.wrong = _fault_of_pseudo(fields, pairs) or _fault_of(fields)
    return fields


def _fault_of_pseudo(fields: Fields, pairs: list[tuple[bytes, bytes]]) -> str | None:
    has_regular = False
    for name, value in pairs:
        if not name.startswith(b":"):
            has_regular = True
            continue
        if has_regular:
            return "a pseudo-header behind headers"
        if name in fields.pseudo:
            return f"{quoted(name)} twice"
        if name not in _OF_REQUESTS and name != b":status":
            return f"{quoted(name)} is unknown"
        if not _VALUE.fullmatch(value):
            return f"{quoted(name)} has a value that no header may have"
        fields.pseudo[name] = value
    return None


def _fault_of(fields: Fields) -> str | None:
    for name, value in fields.pairs:
        if not _NAME.fullmatch(name):
            return "a header's name has letters that it may not have"
        if not _VALUE.fullmatch(value):
            return f"{quoted(name)} has a value that no header may have"
        if name in _OF_CONNECTIONS or (name == b"te" and value != b"trailers"):
            return f"{quoted(name)} belongs to connections of HTTP/1.1"
        if name == b"content-length":
            if not value.isdigit() or len(value) > 18 or fields.content_length is not None:
                return "content-length is no number, or there twice"
            fields.content_length = int(value)
    return None


def request_error(fields: Fields) -> str | None:
    """Return the reason why these fields cannot begin a request, or None."""
    if fields.wrong is not None:
        return fields.wrong
    pseudo = fields.pseudo
    if b":status" in pseudo:
        return "a request with :status"
    if not (b":method" in pseudo and b":scheme" in pseudo and pseudo.get(b":path")):
        return "a request needs :method, :scheme and :path"
    return None


def response_error(fields: Fields) -> str | None:
    """Return the reason why these fields cannot begin a response, or None."""
    if fields.wrong is not None:
        return fields.wrong
    status = fields.pseudo.get(b":status", b"")
    if len(fields.pseudo) != 1 or len(status) != 3 or not status.isdigit():
        return "a response needs :status and no other pseudo-header"
    return None


def trailers_error(fields: Fields) -> str | None:
    """Return the reason why these fields cannot end a stream, or None."""
    return fields.wrong or ("trailers with pseudo-headers" if fields.pseudo else None)


# Fields marked as never indexed change neither this table nor the peer's.
_ENCODER: Final = Encoder()


@lru_cache(maxsize=1024)
def field(name: bytes, value: bytes) -> bytes:
    """Encode one field of a block."""
    return _ENCODER.add((name, value), sensitive=True, huffman=False)


def block_of(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Encode a header block."""
    return b"".join([field(name, value) for name, value in pairs])
