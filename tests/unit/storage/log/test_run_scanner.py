"""Batches of a file in runs: the same ones that come one by one, with the same errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.batch import CorruptBatchError
from quorate.storage.log.batch_scanner import scan_batches
from quorate.storage.log.run_scanner import batches_of, runs_of, scan_runs
from tests.unit.storage.log.test_batch_scanner import batch, file_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.storage.file_system import File
    from quorate.storage.log.batch_scanner import FileBatch

SIZES = st.lists(st.integers(1, 300), min_size=1, max_size=8)


def singly(file: File, size_bytes: int, chunk_bytes: int) -> Iterator[FileBatch]:
    for run in scan_runs(file, size_bytes, 0, chunk_bytes=chunk_bytes):
        yield from batches_of(run)


def one_by_one(file: File, size_bytes: int, chunk_bytes: int) -> Iterator[FileBatch]:
    return scan_batches(file, size_bytes, chunk_bytes=chunk_bytes)


def told(scan: Callable[[File, int, int], Iterator[FileBatch]], data: bytes, chunk: int) -> object:
    """The batches of a scan, and the error that ends it."""
    _, file = file_of(data)
    found: list[object] = []
    try:
        found.extend((one.position, one.header, one.data) for one in scan(file, len(data), chunk))
    except CorruptBatchError as error:
        return found, error.position, error.reason
    return found


@given(SIZES, st.integers(1, 2000), st.data())
def test_runs_hold_what_comes_one_by_one(sizes: list[int], chunk: int, data: st.DataObject) -> None:
    content = bytearray(b"".join(batch(number, size) for number, size in enumerate(sizes)))
    if data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    cut = bytes(content[: data.draw(st.integers(1, len(content)))])
    assert told(singly, cut, chunk) == told(one_by_one, cut, chunk)


def test_batches_of_one_buffer_are_a_run() -> None:
    _, file = file_of(b"".join(batch(number) for number in range(20)))
    batches = list(scan_batches(file, file.size(), chunk_bytes=5 * len(batch(0))))
    runs = list(runs_of(batches))
    assert [len(run) for run in runs] == [5, 5, 5, 5]
    assert [each for run in runs for each in batches_of(run)] == batches


def test_a_file_shorter_than_said_is_an_error_in_runs_too() -> None:
    _, file = file_of(batch(0))
    runs = scan_runs(file, file.size() + 100, 0, chunk_bytes=1 << 20)
    assert len(next(runs)) == 1
    with pytest.raises(CorruptBatchError, match="the file ends before"):
        next(runs)
