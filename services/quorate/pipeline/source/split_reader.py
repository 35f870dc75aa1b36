"""Reads the batches of one split in order and reports damage and gaps.

A CRC does not cover a batch's offset and epoch, so these are checked against the neighbours. If a
batch's offset is impossible at its position, but its successor continues from the expected offset,
a bit has flipped. Otherwise records are missing before the batch.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from quorate.pipeline.source.batch_epochs import BatchEpochs
from quorate.pipeline.source.damage import Damage, describe_os_error
from quorate.pipeline.source.splits import offset_behind
from quorate.records.batch import CorruptBatchError
from quorate.storage import layout
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem, parent
from quorate.storage.log.batch_scanner import resync_batches
from quorate.storage.log.run_scanner import batches_of, scan_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.pipeline.source.splits import Split
    from quorate.records.batch import BatchHeader
    from quorate.records.columnar.batch_run import BatchRun
    from quorate.storage.file_system import File

# Records in one buffer are decoded together. A larger buffer spreads the cost per record layout
# over more records.
BUFFER_BYTES: Final = 8 * 1024 * 1024


def read_split(split: Split) -> Iterator[BatchRun | Damage]:
    """Yield the contents of a split in order, with damage at its position.

    Consecutive batches in one buffer form a run.
    """
    try:
        file = OsFileSystem().open(split.path)
    except (OSError, StorageError) as error:
        yield _unreadable(split, split.start, error)
        return
    reader = _SplitReader(split, file)
    try:
        yield from reader.run()
    except OSError as error:
        yield _unreadable(split, reader.position, error)
    finally:
        file.close()


def _unreadable(split: Split, position: int, error: Exception) -> Damage:
    reason = f"cannot be read: {describe_os_error(error)}"
    if isinstance(error, FileNotFoundError) and split.snapshot_offset is None:
        begin = _first_segment(parent(split.path))
        if begin is not None and begin > (split.first_offset or 0):
            reason = f"deleted before it was read: the log begins at {begin} by now"
    return Damage(
        reason,
        split.path,
        position,
        split.end - position,
        split.first_offset,
        is_unread=True,
        behind=split.next_offset,
    )


def _first_segment(path: str) -> int | None:
    """The lowest base offset of a directory's segments; None without any."""
    with suppress(OSError, StorageError):
        bases = map(layout.parse_segment, OsFileSystem().list_dir(path))
        return min((base for base in bases if base is not None), default=None)
    return None


def _snapshot_for(path: str, end: int) -> str | None:
    """The name of a directory's snapshot that covers the offsets below `end`, if it has one."""
    with suppress(OSError, StorageError):
        for name in sorted(OsFileSystem().list_dir(path)):
            snapshot_id = layout.parse_checkpoint(name)
            if snapshot_id is not None and snapshot_id.offset >= end:
                return name
    return None


class _Sequence:
    """The batches of a run as columns, and the breaks between batches.

    A break is before a control batch, a gap in offsets and a change of epoch.
    """

    def __init__(self, run: BatchRun) -> None:
        self.base = run.field("base_offset")
        self.behind = run.last_offsets + 1
        self.epoch = run.field("epoch")
        self.ends = run.ends
        self.is_control = run.is_control
        is_break = self.is_control.copy()
        is_break[1:] |= self.base[1:] != self.behind[:-1]
        is_break[1:] |= self.epoch[1:] != self.epoch[:-1]
        self._breaks = np.append(np.flatnonzero(is_break), len(run))

    def stop(self, index: int) -> int:
        """The first break after the batch at `index`."""
        return int(self._breaks[np.searchsorted(self._breaks, index, "right")])


class _SplitReader:
    def __init__(self, split: Split, file: File) -> None:
        self.split = split
        self.file = file
        self.position = split.start
        self.expected = split.first_offset
        self.epochs = BatchEpochs(split, file)
        # If other directories may have them: the reason why offsets from `expected` on are missing.
        self.lost: str | None = None
        # The reader of the next split yields the records from this offset on.
        self.limit = split.next_offset

    def run(self) -> Iterator[BatchRun | Damage]:
        end = self.split.end
        while self.position < end:
            try:
                for run in scan_runs(self.file, end, self.position, chunk_bytes=BUFFER_BYTES):
                    yield from self.take_run(run)
                    if self.is_done():
                        # The next batch is not wanted, and may be a write in progress.
                        return
            except CorruptBatchError as error:
                yield from self.skip(error)
        yield from self.check_end()

    def is_done(self) -> bool:
        return self.expected is not None and self.expected >= self.split.high

    def take_run(self, run: BatchRun) -> Iterator[BatchRun | Damage]:
        """Yield the batches of a run; damage between two batches divides it."""
        sequence = _Sequence(run)
        given = np.zeros(len(run), np.bool_)
        index = first = 0
        while index < len(run) and not self.is_done():
            count = self.count_fitting(sequence, index)
            if count:
                last = index + count - 1
                self.position = run.start + int(sequence.ends[last])
                self.expected = int(sequence.behind[last])
                given[index : last + 1] = True
                index += count
                continue
            alone = run.part(slice(index, index + 1))
            for each in self.take(alone):
                if each is alone:
                    given[index] = True
                    continue
                if given[first:index].any():
                    yield run.part(slice(first, index)).part(given[first:index])
                first = index
                yield each
            index += 1
        if given[first:index].any():
            yield run.part(slice(first, index)).part(given[first:index])

    def count_fitting(self, sequence: _Sequence, index: int) -> int:
        """The number of batches from `index` on with the expected offsets and epoch."""
        base = int(sequence.base[index])
        if base != self.expected or self.lost is not None:
            return 0
        known, until = self.split.epoch_from(base)
        # A control batch may start an epoch.
        if known is None and sequence.is_control[index]:
            return 0
        if sequence.epoch[index] != (self.epochs.before if known is None else known):
            return 0
        stop = sequence.stop(index)
        if self.limit is not None:
            stop = index + int(np.searchsorted(sequence.behind[index:stop], self.limit, "right"))
        high = self.split.high if until is None else min(self.split.high, until)
        return int(np.searchsorted(sequence.base[index:stop], high))

    def check_end(self) -> Iterator[Damage]:
        """Report expected offsets that are missing; those of another file may be readable later."""
        first, following = self.expected, self.split.next_offset
        why = ""
        if following is None and self.split.reach is not None:
            following = self.split.reach
            why = f": the log was seen to reach up to {following}"
            snapshot = _snapshot_for(parent(self.split.path), following)
            if snapshot is not None:
                why = f": {snapshot} stands for them, and startingOffsets=snapshot begins with it"
        elif first is not None and self.part_behind() != following:
            name = layout.segment_name(first)
            is_there = OsFileSystem().exists(f"{parent(self.split.path)}/{name}")
            why = f", and {name} cannot be opened" if is_there else f", and there is no {name}"
        if first is not None and following is not None and first < following:
            reason = f"offsets {first} to {following - 1} are missing behind{why}"
            if self.lost is not None:
                reason = f"{self.lost}; {reason}"
            yield from self.tell(reason, 0, following, is_unread=bool(why))

    def part_behind(self) -> int | None:
        """The offset with which this file continues after the split; None at the file's end."""
        return offset_behind(self.file, self.split.end, self.file.size(), None)

    def take(self, run: BatchRun) -> Iterator[BatchRun | Damage]:
        """Yield a batch, which is a run of its own, and its damage."""
        batch = next(batches_of(run))
        header = batch.header
        self.position = batch.position
        base, expected = header.base_offset, self.expected
        if self.split.elsewhere and (self.lost is not None or base != expected):
            is_borne_out = header.last_offset + 1 in {self.behind(header), self.split.reach}
            if not is_borne_out and not self.follows(header, expected or 0):
                # No CRC covers its offset, and no neighbour confirms it: read it elsewhere.
                self.lost = self.lost or f"offset {base} where the log goes on at {expected}"
                self.position += header.size_bytes
                return
        if expected is not None and base != expected:
            is_followed = self.follows(header, expected)
            if base < expected or is_followed:
                why = f"offset {base} where the log goes on at {expected}"
                why += ": this batch does not belong here"
                following = expected + (header.record_count if is_followed else 0)
                yield from self.tell(why, header.size_bytes, max(following, expected + 1))
                self.position += header.size_bytes
                self.expected = following
                return
        if self.limit is not None and header.last_offset >= self.limit:
            behind = "next segment" if self.split.end == self.file.size() else "part behind"
            why = f"offsets {base} to {header.last_offset} where the {behind} has {self.limit}"
            why += ": this batch does not belong here"
            yield from self.tell(why, header.size_bytes, self.limit)
            self.position += header.size_bytes
            return
        if expected is not None and base != expected:
            what = self.lost or f"offset {base} where the log goes on at {expected}"
            yield from self.tell(f"{what}: offsets {expected} to {base - 1} are missing", 0, base)
            self.epochs.forget()
        self.lost = None
        known = self.split.epoch_of(base) if self.split.epochs else None
        if known is not None and header.epoch != known:
            why = f"epoch {header.epoch} where the log's epochs have {known}"
            yield from self.tell(why, 0, header.last_offset + 1)
        elif known is None and (fault := self.epochs.fault(batch)) is not None:
            why = fault.reason
            if fault.epoch not in {None, header.epoch}:
                why += f": its records are given with epoch {fault.epoch}"
                run = run.with_epoch(fault.epoch)
            yield from self.tell(why, 0, header.last_offset + 1)
        self.expected = header.last_offset + 1
        self.position += header.size_bytes
        yield run

    def follows(self, header: BatchHeader, expected: int) -> bool:
        """True if the following batch continues as if this batch started at `expected`."""
        return self.behind(header) == expected + header.record_count

    def behind(self, header: BatchHeader) -> int | None:
        """The offset of the following batch."""
        following = self.split.next_offset
        if following is None:
            following = self.split.reach
        position = self.position + header.size_bytes
        return offset_behind(self.file, position, self.split.end, following)

    def skip(self, error: CorruptBatchError) -> Iterator[Damage]:
        """Continue after invalid bytes, and report the lost offsets."""
        self.position = error.position
        found = next(resync_batches(self.file, self.split.end, self.position + 1), None)
        behind = self.split.end if found is None else found.position
        if self.split.elsewhere and found is not None:
            # The following batch determines the lost offsets, once its own offset is confirmed.
            self.lost = self.lost or error.reason
            self.position = behind
            self.epochs.forget()
            return
        reason, first = error.reason, self.expected
        following = self.split.next_offset if found is None else found.header.base_offset
        if first is not None and following is not None and following > first:
            reason += f"; offsets {first} to {following - 1} are lost"
        elif found is None and following is None:
            reason += "; nothing behind it checks: a torn tail, or the end of the log is damaged"
        yield from self.tell(reason, behind - self.position, following)
        self.position = behind
        # The following batch may be older data, or its offset may be damaged as well.
        self.expected = max((each for each in (first, following) if each is not None), default=None)
        self.epochs.forget()

    def tell(
        self, reason: str, size_bytes: int, following: int | None, *, is_unread: bool = False
    ) -> Iterator[Damage]:
        """Yield damage at this position if any offset below `following` is wanted.

        Otherwise a stream would report it again with each micro-batch from a segment.
        """
        if following is None or following > self.split.low:
            path, at, first = self.split.path, self.position, self.expected
            yield Damage(reason, path, at, size_bytes, first, is_unread=is_unread, behind=following)
