"""Reads batches of a file in runs for readers of whole logs: all verified, none made an object."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from quorate.records.batch import BatchHeader, CorruptBatchError, check_batch
from quorate.records.columnar.batch_run import read_run, run_at
from quorate.storage.log.batch_scanner import (
    CHUNK_BYTES,
    FileBatch,
    bytes_of_batch,
    read_window,
    resync_batches,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.records.columnar.batch_run import BatchRun
    from quorate.storage.file_system import File


def scan_runs(
    file: File, size_bytes: int, position: int, *, chunk_bytes: int
) -> Iterator[BatchRun]:
    """Yield the batches from `position` to `size_bytes`, in runs of up to `chunk_bytes`.

    Raises CorruptBatchError, with its position in the file, at the first that fails verification.
    """
    buffer, start = b"", position
    while position < size_bytes:
        at = position - start
        if len(buffer) - at < bytes_of_batch(buffer, at) and start + len(buffer) < size_bytes:
            buffer, start, at = read_window(file, size_bytes, position, chunk_bytes), position, 0
        run = read_run(buffer, at, start=start)
        if not len(run):
            try:
                check_batch(buffer, at)
            except CorruptBatchError as error:
                raise CorruptBatchError(position, error.reason) from error
        yield run
        position = start + int(run.ends[-1])


def salvage_runs(file: File, size_bytes: int, position: int) -> Iterator[BatchRun]:
    """Yield all intact batches from `position` on, in runs, resynchronised after damage."""
    try:
        yield from scan_runs(file, size_bytes, position, chunk_bytes=CHUNK_BYTES)
    except CorruptBatchError as error:
        yield from runs_of(resync_batches(file, size_bytes, error.position))


def batches_of(run: BatchRun) -> Iterator[FileBatch]:
    """Yield the batches of a run as objects."""
    for at, fields in zip(run.at.tolist(), run.headers.tolist(), strict=True):
        yield FileBatch(run.start + at, BatchHeader._make(fields), run.buffer, at)


def runs_of(batches: Iterable[FileBatch]) -> Iterator[BatchRun]:
    """Yield verified batches in runs of those that lie in one buffer, in order."""
    for _, together in groupby(batches, key=lambda batch: id(batch.buffer)):
        several = list(together)
        first = several[0]
        places = [batch.at for batch in several]
        yield run_at(first.buffer, places, start=first.position - first.at)
