"""Splits log files at batch boundaries for parallel reading, without reading them completely.

A file is split about every `split_bytes`, at the next intact batch. The following batches must
confirm its offset and epoch, because no CRC covers these. Each split has its first offset and the
offset that must follow: the reader of the first of two splits detects records missing between them.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import closing, suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.directories import header_at
from quorate.records.batch import BATCH_BYTES_MAX, HEADER_BYTES, CorruptBatchError, check_batch
from quorate.records.value_types import value_type
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.pipeline.source.directories import Directory, LogFile, SnapshotFile
    from quorate.records.batch import BatchHeader
    from quorate.storage.file_system import File

NO_END: Final = 2**63 - 1
_WINDOW_BYTES: Final = 256 * 1024
_MAGIC: Final = b"\x02"
_MAGIC_AT: Final = 16
_LENGTH_AT: Final = 8
_LENGTH_END: Final = 12
_START_OF: Final = itemgetter(1)


@value_type
class Split:
    """Bytes `start` to `end` of a file, which are complete batches unless damaged.

    `first_offset` is the required offset of the first batch, `next_offset` the one that must follow
    the last batch; None if unknown. Records are read from `low` up to, not including, `high`. The
    last part of a stream's micro-batch must reach `reach`, the known end of the log. All records of
    a snapshot have `snapshot_offset`, the last offset that it covers. The logs in `elsewhere`, of
    other voters, have the same records; then `epochs` has all epochs and their start offsets.
    `checkpoint` has the epochs of the directory's own checkpoint file, which may be older or newer.
    """

    path: str
    source_node: int | None
    start: int
    end: int
    first_offset: int | None
    next_offset: int | None
    low: int
    high: int
    snapshot_offset: int | None = None
    reach: int | None = None
    elsewhere: tuple[str, ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()
    checkpoint: tuple[tuple[int, int], ...] = ()

    def overlaps(self, first: int, last: int) -> bool:
        """True if any of these offsets of the file is wanted."""
        return self.snapshot_offset is not None or (last >= self.low and first < self.high)

    def epoch_of(self, offset: int) -> int | None:
        """The epoch of the record at this offset, if the log's epochs are known."""
        return self.epoch_from(offset)[0]

    def epoch_from(self, offset: int) -> tuple[int | None, int | None]:
        """The same, and the start offset of the next epoch, if any."""
        index = bisect_right(self.epochs, offset, key=_START_OF)
        until = self.epochs[index][1] if index < len(self.epochs) else None
        return self.epochs[index - 1][0] if index else None, until


def boundaries(
    path: str, size_bytes: int, split_bytes: int, *, first: int, last: int | None
) -> list[tuple[int, int]]:
    """Positions, with their offsets, of batches about every `split_bytes`; the first is at 0.

    Offsets of a segment are from `first` up to `last`, exclusive, if known. An unreadable file is
    not split from there on: its reader reports it.
    """
    found = [(0, first)]
    if size_bytes <= split_bytes:
        return found
    with suppress(OSError, StorageError), closing(OsFileSystem().open(path)) as file:
        for wanted in range(split_bytes, size_bytes, split_bytes):
            if wanted <= found[-1][0]:
                continue
            place = batch_from(file, size_bytes, wanted, first=found[-1][1], last=last)
            if place is None:
                break
            found.append(place)
    return found


def batch_from(
    file: File, size_bytes: int, position: int, *, first: int, last: int | None
) -> tuple[int, int] | None:
    """Position and offset of the first intact batch from `position` on with a possible offset."""
    for at in _candidates(file, size_bytes, position):
        header = whole_batch_at(file, at)
        if header is None or header.base_offset <= first:
            continue
        position = at + header.size_bytes
        if position >= size_bytes:
            break
        behind = offset_behind(file, position, size_bytes, last)
        if behind != header.last_offset + 1 or (last is not None and behind > last):
            continue
        # No CRC covers the epoch either, and the first batch of a split has no predecessor.
        if header_at(file, position).epoch == header.epoch:
            return at, header.base_offset
    return None


def log_splits(directory: Directory, low: int, high: int, split_bytes: int) -> list[Split]:
    """The splits of the segments' records from `low` up to `high`, exclusive."""
    splits = []
    segments = directory.segments
    for index, segment in enumerate(segments):
        following = segments[index + 1].base_offset if index + 1 < len(segments) else None
        if segment.base_offset >= high or (following is not None and following <= low):
            continue
        splits += [
            split
            for split in _file_splits(
                directory,
                segment,
                split_bytes,
                first=segment.base_offset,
                behind=following,
                low=low,
                high=high,
            )
            if split.low < split.high
        ]
    return splits


def snapshot_splits(directory: Directory, snapshot: SnapshotFile, split_bytes: int) -> list[Split]:
    """The splits of a snapshot."""
    last = snapshot.snapshot_id.offset - 1
    return _file_splits(directory, snapshot, split_bytes, snapshot_offset=last)


def _file_splits(
    directory: Directory,
    file: LogFile | SnapshotFile,
    split_bytes: int,
    *,
    first: int = 0,
    behind: int | None = None,
    low: int = -1,
    high: int = NO_END,
    snapshot_offset: int | None = None,
) -> list[Split]:
    """The splits of a file with offsets from `low` up to `high`.

    The file's offsets are from `first` up to `behind`, exclusive, if known.
    """
    places = boundaries(file.path, file.size_bytes, split_bytes, first=first, last=behind)
    ends = [*places[1:], (file.size_bytes, behind)]
    return [
        Split(
            path=file.path,
            source_node=directory.node_id,
            start=start,
            end=end,
            first_offset=begin,
            next_offset=following,
            low=low,
            high=high,
            snapshot_offset=snapshot_offset,
        )
        for (start, begin), (end, following) in zip(places, ends, strict=True)
        if begin < high and (following is None or following > low)
    ]


def offset_behind(file: File, position: int, end: int, next_offset: int | None) -> int | None:
    """The offset of the batch at `position`; `next_offset` is the one after `end`."""
    if position >= end:
        return next_offset
    try:
        return header_at(file, position).base_offset
    except CorruptBatchError:
        return None


def pack_splits(splits: Iterable[Split], split_bytes: int) -> list[list[Split]]:
    """Group neighbours up to `split_bytes`, because a task per tiny file costs more."""
    packs: list[list[Split]] = []
    size_bytes = 0
    for split in splits:
        size_bytes += split.end - split.start
        # An empty file is a split as well.
        if not packs or size_bytes > split_bytes:
            packs.append([])
            size_bytes = split.end - split.start
        packs[-1].append(split)
    return packs


def whole_batch_at(file: File, position: int) -> BatchHeader | None:
    """The header of the batch at `position`; None without a valid one."""
    try:
        head = file.read_at(position, HEADER_BYTES)
        length = int.from_bytes(head[_LENGTH_AT:_LENGTH_END], "big", signed=True)
        if not HEADER_BYTES <= length + _LENGTH_END <= BATCH_BYTES_MAX:
            return None
        return check_batch(file.read_at(position, length + _LENGTH_END))
    except CorruptBatchError:
        return None


def _candidates(file: File, size_bytes: int, position: int) -> Iterator[int]:
    """Yield positions at which a batch may start: the magic byte is at the right distance."""
    while position < size_bytes:
        window = file.read_at(position, _WINDOW_BYTES + _MAGIC_AT)
        at = window.find(_MAGIC, _MAGIC_AT)
        while at >= 0:
            yield position + at - _MAGIC_AT
            at = window.find(_MAGIC, at + 1)
        if len(window) <= _MAGIC_AT:
            return
        position += len(window) - _MAGIC_AT
