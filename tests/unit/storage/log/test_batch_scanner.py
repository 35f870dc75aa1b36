"""Batches of a file, each checked, and what can be salvaged behind damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.records.batch import CorruptBatchError, encode_batch
from quorate.storage.log import batch_scanner
from quorate.storage.log.batch_scanner import resync_batches, scan_batches
from tests.unit.storage.conftest import Replica

if TYPE_CHECKING:
    from quorate.storage.file_system import File


def batch(base: int, size: int = 20) -> bytes:
    return encode_batch([b"v" * size], timestamp_ms=5, base_offset=base, epoch=3)


def file_of(data: bytes) -> tuple[Replica, File]:
    replica = Replica()
    file = replica.disk.open("/data/x", create=True)
    file.write_at(0, data)
    return replica, file


@pytest.mark.parametrize("chunk_bytes", [1, 61, 100, 1 << 20])
def test_batches_come_in_order_whatever_the_chunks(
    chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_scanner, "CHUNK_BYTES", chunk_bytes)
    batches = [batch(n, size) for n, size in enumerate((1, 200, 30, 1000, 5))]
    _, file = file_of(b"".join(batches))
    found = list(scan_batches(file, file.size()))
    assert [b.data for b in found] == batches
    assert [b.position for b in found] == [sum(map(len, batches[:n])) for n in range(5)]
    second = found[1].position
    assert [b.data for b in scan_batches(file, file.size(), second)] == batches[1:]


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_every_cut_ends_the_scan_at_a_batch_boundary(
    chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_scanner, "CHUNK_BYTES", chunk_bytes)
    whole = batch(0) + batch(1)
    for size in range(len(batch(0)) + 1, len(whole)):
        _, file = file_of(whole[:size])
        found = scan_batches(file, size)
        assert next(found).data == batch(0)
        with pytest.raises(CorruptBatchError) as error:
            next(found)
        assert error.value.position == len(batch(0))


def test_a_file_shorter_than_said_is_an_error() -> None:
    _, file = file_of(batch(0))
    with pytest.raises(CorruptBatchError, match="the file ends before 500 bytes"):
        list(scan_batches(file, 500, len(batch(0))))


def test_what_checks_behind_damage_is_found_again() -> None:
    batches = [batch(n) for n in range(5)]
    data = bytearray(b"".join(batches))
    data[len(batches[0]) + 9] ^= 0x10  # the length of the second batch
    data[-1] ^= 1
    _, file = file_of(bytes(data))
    start = len(batches[0])
    assert [b.header.base_offset for b in resync_batches(file, file.size(), start)] == [2, 3]


def test_nothing_is_found_behind_a_torn_tail() -> None:
    data = batch(0) + b"\0" * 4096 + bytes((i * 37 + 11) & 255 for i in range(300)) + b"\x02"
    _, file = file_of(data)
    assert list(resync_batches(file, file.size(), len(batch(0)))) == []


class Counting:
    """A file that records the largest read and the sum of all reads."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.most = self.all = 0

    def read_at(self, position: int, size: int) -> bytes:
        self.most, self.all = max(self.most, size), self.all + size
        return self.file.read_at(position, size)


def test_salvage_holds_a_window_and_reads_nothing_more_than_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_scanner, "BATCH_BYTES_MAX", 300)
    monkeypatch.setattr(batch_scanner, "SALVAGE_BYTES", 600)
    noise = bytes((i * 37 + 11) & 255 for i in range(5000))
    for parts in ([batch(1), noise, batch(2, 200), batch(3)], [noise, batch(1)], [noise, b"\2"]):
        data = b"".join(parts)
        counting = Counting(file_of(data)[1])
        found = [b.data for b in resync_batches(counting, len(data), 0)]  # type: ignore[arg-type]
        assert found == [part for part in parts if part != noise and len(part) > 1]
        assert counting.most <= 600
        assert counting.all <= 2 * len(data) + 600
