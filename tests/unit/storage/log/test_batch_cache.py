"""The newest batches in memory."""

from __future__ import annotations

import pytest

from quorate.records.batch import encode_batch
from quorate.storage.log.batch_cache import BatchCache


def batch(base: int, count: int = 1) -> bytes:
    return encode_batch([b"x" * 10] * count, timestamp_ms=0, base_offset=base, epoch=1)


SIZE = len(batch(0))
GROUPS = [(0, [batch(0), batch(1), batch(2)]), (3, [batch(3)]), (4, [batch(4), batch(5)])]
ALL = [batch(n) for n in range(6)]


def make(bytes_max: int = 1 << 20) -> BatchCache:
    cache = BatchCache(bytes_max)
    for base, batches in GROUPS:
        cache.append(base, b"".join(batches))
    return cache


@pytest.mark.parametrize(
    ("start", "end", "bytes_max", "expected"),
    [
        (0, 6, 1 << 20, ALL),
        (2, 6, 1 << 20, ALL[2:]),
        (2, 5, 1 << 20, ALL[2:5]),
        (4, 5, 1 << 20, ALL[4:5]),
        (1, 6, SIZE * 2 + 1, ALL[1:3]),
        (1, 6, SIZE * 3, ALL[1:4]),
        (1, 6, 1, ALL[1:2]),
        (5, 6, 0, ALL[5:]),
        (4, 4, 1 << 20, []),
    ],
)
def test_whole_batches_are_read_within_the_bounds(
    start: int, end: int, bytes_max: int, expected: list[bytes]
) -> None:
    assert make().read(start, end=end, bytes_max=bytes_max) == b"".join(expected)


def test_a_start_inside_a_batch_gives_the_whole_batch() -> None:
    cache = BatchCache(1 << 20)
    cache.append(0, batch(0, 4) + batch(4, 2))
    assert cache.read(2, end=6, bytes_max=1 << 20) == batch(0, 4) + batch(4, 2)
    assert cache.read(5, end=6, bytes_max=1 << 20) == batch(4, 2)
    assert cache.read(4, end=5, bytes_max=1 << 20) == b""


def test_the_oldest_groups_leave_first_and_the_newest_stays() -> None:
    cache = make(bytes_max=SIZE * 2)
    assert cache.read(3, end=6, bytes_max=1 << 20) is None
    assert cache.read(4, end=6, bytes_max=1 << 20) == ALL[4] + ALL[5]
    cache.append(6, batch(6, 100))
    assert cache.read(5, end=200, bytes_max=1 << 20) is None
    assert cache.read(6, end=200, bytes_max=1 << 20) == batch(6, 100)


def test_it_stays_within_its_bound_however_long_it_runs() -> None:
    cache = BatchCache(SIZE * 10)
    for base in range(5000):
        cache.append(base, batch(base))
    assert cache.read(4990, end=5000, bytes_max=1 << 20) == b"".join(map(batch, range(4990, 5000)))
    assert cache.read(4989, end=5000, bytes_max=1 << 20) is None


def test_a_cleared_cache_knows_nothing() -> None:
    cache = make()
    cache.clear()
    assert cache.read(5, end=6, bytes_max=100) is None
