"""Cached header blocks are few, small, and bounded by the memory that they take."""

from __future__ import annotations

import tracemalloc

import pytest

from quorate.h2.call_headers import request_of
from quorate.h2.protocol.header_cache import BLOCKS_MAX, FIELDS_MAX, HeaderCache, estimated_bytes
from quorate.h2.protocol.header_codec import BlockReader, block_of
from quorate.h2.protocol.limits import Limits, ListenerMemory
from tests.unit.h2.peers import REQUEST

PAIR = (b"a", b"1")


def test_a_block_is_kept_until_the_cache_is_cleared() -> None:
    cache, memory = make()
    cache.add(b"block", [PAIR], 7)
    assert cache.get(b"block") == 7
    assert memory.cached_headers_bytes == estimated_bytes(b"block", [PAIR])
    cache.clear()
    assert cache.get(b"block") is None
    assert memory.cached_headers_bytes == 0


@pytest.mark.parametrize(
    ("block", "pairs"),
    [(b"", []), (bytes(1025), [PAIR]), (b"block", [PAIR] * (FIELDS_MAX + 1))],
)
def test_blocks_that_are_large_are_not_kept(block: bytes, pairs: list[tuple[bytes, bytes]]) -> None:
    cache, memory = make()
    cache.add(block, pairs, 7)
    assert cache.get(block) is None
    assert memory.cached_headers_bytes == 0


def test_a_connection_keeps_few_blocks() -> None:
    cache, _ = make()
    for number in range(BLOCKS_MAX + 1):
        cache.add(b"%d" % number, [], number)
    kept = [cache.get(b"%d" % number) for number in range(BLOCKS_MAX + 1)]
    assert kept == [*range(BLOCKS_MAX), None]


def test_a_connection_keeps_no_more_than_its_bytes() -> None:
    size = estimated_bytes(b"0", [PAIR])
    cache, memory = make(Limits(cached_headers_bytes_max=2 * size))
    for number in range(3):
        cache.add(b"%d" % number, [PAIR], number)
    assert cache.get(b"2") is None
    assert memory.cached_headers_bytes == 2 * size


def test_connections_share_a_bound_and_each_has_a_part_of_its_own() -> None:
    size = estimated_bytes(b"0", [PAIR])
    limits = Limits(cached_headers_own_bytes=size, cached_headers_in_all_bytes_max=3 * size)
    memory = ListenerMemory()
    first, second = (HeaderCache[int](limits, memory) for _ in range(2))
    for number in range(4):
        first.add(b"%d" % number, [PAIR], number)
    assert memory.cached_headers_bytes == 3 * size
    for number in range(2):
        second.add(b"%d" % number, [PAIR], number)
    assert memory.cached_headers_bytes == 4 * size
    first.clear()
    second.add(b"1", [PAIR], 1)
    assert second.get(b"1") == 1


@pytest.mark.parametrize(
    "pairs",
    [
        [(b"grpc-timeout", b"1S")],
        [(b"k%d" % number, b"") for number in range(FIELDS_MAX - len(REQUEST) - 1)],
        [(b"a-bin", b"," * 800)],
        [(b"a", b"\xff" * 800)],
        [(b"a", b"x" * 800 + "\N{GRINNING FACE}".encode())],
    ],
    ids=["ordinary", "many", "binary", "invalid", "wide"],
)
def test_a_kept_block_takes_no_more_memory_than_is_counted(
    pairs: list[tuple[bytes, bytes]],
) -> None:
    requests = [[*REQUEST, (b"number", b"%d" % number), *pairs] for number in range(20)]
    blocks = [block_of(request) for request in requests]
    memory = ListenerMemory()
    limits = Limits(cached_headers_own_bytes=1 << 30, cached_headers_bytes_max=1 << 30)
    reader = BlockReader(limits, memory)
    tracemalloc.start()
    try:
        for block in blocks:
            request_of(reader.read(block))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(reader.read(block) is reader.read(block) for block in blocks)
    assert taken <= memory.cached_headers_bytes


def make(limits: Limits | None = None) -> tuple[HeaderCache[int], ListenerMemory]:
    memory = ListenerMemory()
    return HeaderCache(limits or Limits(), memory), memory
