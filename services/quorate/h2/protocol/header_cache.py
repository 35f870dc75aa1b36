"""Decoded header blocks that one connection keeps, so that a repeated block is decoded once.

The memory of a cached block is estimated from its fields: Python objects take up to forty times the
received bytes. Each connection has a small guaranteed part, so that a client cannot keep others
from being served quickly; beyond it all connections of a listener share one limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.h2.protocol.limits import Limits, ListenerMemory

T = TypeVar("T")

BLOCKS_MAX: Final = 64
# Clients of gRPC send fewer than sixteen fields.
FIELDS_MAX: Final = 32
_BLOCK_BYTES_MAX: Final = 1024

# Measured with tracemalloc: the most bytes that a block, a field and each byte of a field take, as
# bytes, as metadata, and in the containers of both.
_COST_OF_BLOCK: Final = 700
_COST_OF_FIELD: Final = 280
_COST_OF_BYTE: Final = 5
# Metadata that ends in -bin has one item for each comma (h2/grpc_framing.py splits it there).
_COST_OF_ITEM: Final = 128


def estimated_bytes(block: bytes, pairs: Sequence[tuple[bytes, bytes]]) -> int:
    """Estimate the memory of a cached block, with all that is made of its fields."""
    cost = _COST_OF_BLOCK + len(block)
    for name, value in pairs:
        cost += _COST_OF_FIELD + _COST_OF_BYTE * (len(name) + len(value))
        if name.endswith(b"-bin"):
            cost += _COST_OF_ITEM * value.count(b",")
    return cost


class HeaderCache(Generic[T]):
    """The decoded blocks of one connection, valid until its table changes."""

    __slots__ = ("_bytes", "_limits", "_meanings", "_memory")

    def __init__(self, limits: Limits, memory: ListenerMemory) -> None:
        self._limits = limits
        self._memory = memory
        self._meanings: dict[bytes, T] = {}
        self._bytes = 0

    def get(self, block: bytes) -> T | None:
        """Return the decoded block, if it is cached."""
        return self._meanings.get(block)

    def add(self, block: bytes, pairs: Sequence[tuple[bytes, bytes]], meaning: T) -> None:
        """Cache a block with these fields, if the memory limits allow it."""
        is_small = 0 < len(block) <= _BLOCK_BYTES_MAX and len(pairs) <= FIELDS_MAX
        if not is_small or len(self._meanings) >= BLOCKS_MAX:
            return
        size = estimated_bytes(block, pairs)
        limits, memory = self._limits, self._memory
        own = self._bytes + size
        if own > limits.cached_headers_bytes_max:
            return
        in_all = memory.cached_headers_bytes + size
        is_much = own > limits.cached_headers_own_bytes
        if is_much and in_all > limits.cached_headers_in_all_bytes_max:
            return
        self._meanings[block] = meaning
        self._bytes = own
        memory.cached_headers_bytes = in_all

    def clear(self) -> None:
        """Drop everything: the table has changed, or the connection is closed."""
        self._meanings.clear()
        self._memory.cached_headers_bytes -= self._bytes
        self._bytes = 0
