"""The batches of one split in order, with what is damaged or missing between them.

A CRC does not cover a batch's offset and epoch, so these are held against their neighbours: a batch
whose own offset cannot stand where it stands, while its successor goes on as if it could, has a
flipped bit there; otherwise something is missing in front of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.damage import Damage, words_of
from quorate.pipeline.source.directories import header_at
from quorate.raft.fitting import begins_epoch
from quorate.records.batch import CorruptBatchError
from quorate.records.control import control_records
from quorate.records.schema import SchemaError
from quorate.storage.errors import StorageError
from quorate.storage.files import OsFileSystem
from quorate.storage.scan import salvage_batches, scan_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.pipeline.source.splits import Split
    from quorate.records.batch import BatchHeader
    from quorate.storage.files import File
    from quorate.storage.scan import FileBatch

# Records in one buffer are decoded together, and what that costs for each of their shapes is shared
# by more of them in a larger one.
BUFFER_BYTES: Final = 8 * 1024 * 1024


def read_split(split: Split) -> Iterator[FileBatch | Damage]:
    """Everything in a split, in order; what cannot be read is told where it stands."""
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
    reason = f"cannot be read: {words_of(error)}"
    return Damage(reason, split.path, position, split.end - position, split.first_offset)


class _SplitReader:
    def __init__(self, split: Split, file: File) -> None:
        self.split = split
        self.file = file
        self.position = split.start
        self.expected = split.first_offset
        self.epoch: int | None = None
        # The name of the next segment says so. Behind other splits it is said by a batch, whose
        # offset no CRC covers.
        self.limit = split.next_offset if split.end == file.size() else None

    def run(self) -> Iterator[FileBatch | Damage]:
        end = self.split.end
        while self.position < end:
            try:
                for batch in scan_batches(self.file, end, self.position, chunk_bytes=BUFFER_BYTES):
                    yield from self.take(batch)
                    if self.expected is not None and self.expected >= self.split.high:
                        # The next batch is not asked for, and may be on its way to the disk.
                        return
            except CorruptBatchError as error:
                yield self.skip(error)
        lost = self.split.next_offset
        if lost is not None and self.expected is not None and self.expected < lost:
            yield self.damage(f"offsets {self.expected} to {lost - 1} are missing behind", 0)

    def take(self, batch: FileBatch) -> Iterator[FileBatch | Damage]:
        header = batch.header
        self.position = batch.position
        base, expected = header.base_offset, self.expected
        if expected is not None and base != expected:
            is_followed = self.follows(header, expected)
            if base < expected or is_followed:
                why = f"offset {base} where the log goes on at {expected}"
                yield self.damage(f"{why}: this batch does not belong here", header.size_bytes)
                self.position += header.size_bytes
                if is_followed:
                    self.expected = expected + header.last_offset_delta + 1
                return
        if self.limit is not None and header.last_offset >= self.limit:
            why = f"offsets {base} to {header.last_offset} where the next segment has {self.limit}"
            yield self.damage(f"{why}: this batch does not belong here", header.size_bytes)
            self.position += header.size_bytes
            return
        if expected is not None and base != expected:
            what = f"offset {base} where the log goes on at {expected}"
            yield self.damage(f"{what}: offsets {expected} to {base - 1} are missing", 0)
            self.epoch = None
        if header.epoch != self.epoch:
            if self.epoch is not None and not self.begins_epoch(batch):
                why = f"epoch {header.epoch} behind epoch {self.epoch} without a LeaderChange"
                yield self.damage(why, 0)
            self.epoch = header.epoch
        self.expected = header.last_offset + 1
        self.position += header.size_bytes
        yield batch

    def follows(self, header: BatchHeader, expected: int) -> bool:
        """Whether the batch behind this one goes on as if this one began at `expected`."""
        behind, following = (
            self.position + header.size_bytes,
            expected + header.last_offset_delta + 1,
        )
        if behind >= self.split.end:
            return self.split.next_offset == following
        try:
            return header_at(self.file, behind).base_offset == following
        except CorruptBatchError:
            return False

    def begins_epoch(self, batch: FileBatch) -> bool:
        try:
            return begins_epoch(control_records(batch.buffer, batch.at, batch.header))
        except (SchemaError, CorruptBatchError):
            # A control record of a newer release is told among the records.
            return True

    def skip(self, error: CorruptBatchError) -> Damage:
        """Go on behind bytes that do not check, and say what they cost."""
        self.position = error.position
        found = next(salvage_batches(self.file, self.split.end, self.position + 1), None)
        behind = self.split.end if found is None else found.position
        reason, first = error.reason, self.expected
        following = self.split.next_offset if found is None else found.header.base_offset
        if first is not None and following is not None and following > first:
            reason += f"; offsets {first} to {following - 1} are lost"
        elif found is None and following is None:
            reason += "; nothing behind it checks: a torn tail, or the end of the log is damaged"
        damage = self.damage(reason, behind - self.position)
        self.position = behind
        self.expected = following
        self.epoch = None
        return damage

    def damage(self, reason: str, size_bytes: int) -> Damage:
        return Damage(reason, self.split.path, self.position, size_bytes, self.expected)
