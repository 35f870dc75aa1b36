"""Checks the epochs of one file's batches against their neighbours and the log's checkpoint.

No CRC covers a batch's epoch, but a flipped bit there contradicts the neighbours: epochs rise only
at a LeaderChange. The checkpoint is used only if the neighbours do not decide, because a copy of a
log may have a checkpoint of another time.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import closing, suppress
from itertools import islice, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.directories import find_directory
from quorate.pipeline.source.options import OptionError
from quorate.pipeline.source.record_epochs import RecordEpochs
from quorate.raft.replication.batch_validation import begins_epoch
from quorate.records.batch import CorruptBatchError
from quorate.records.codec.schema import SchemaError
from quorate.records.control import control_records
from quorate.records.value_types import value_type
from quorate.storage import layout
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem, parent
from quorate.storage.log.batch_scanner import FileBatch, scan_batches

if TYPE_CHECKING:
    from quorate.pipeline.source.splits import Split
    from quorate.storage.file_system import File

_NEIGHBOUR_BYTES: Final = 64 * 1024
_START_OF: Final = itemgetter(1)


@value_type
class EpochFault:
    """A contradiction in a batch's epoch; `epoch` is the correct one if that is certain."""

    reason: str
    epoch: int | None


class BatchEpochs:
    """Checks the epochs of a split's batches in order; `before` is the epoch of the last batch."""

    def __init__(self, split: Split, file: File) -> None:
        self._split = split
        self._file = file
        self.before: int | None = None
        self._is_first = split.start == 0 and split.snapshot_offset is None

    def forget(self) -> None:
        """Skip missing batches: any epoch may follow."""
        self.before, self._is_first = None, False

    def fault(self, batch: FileBatch) -> EpochFault | None:
        """The contradiction in a batch's epoch, or None."""
        epoch = batch.header.epoch
        found = None
        try:
            if _leads(batch):
                found = self._fault_of_leader(batch)
            elif epoch != self.before:
                found = self._fault_of_other(batch)
        except (SchemaError, CorruptBatchError):
            # A control record of a newer release is reported with the records.
            pass
        if found is None:
            self.before = epoch
        elif found.epoch is not None:
            self.before = found.epoch
        self._is_first = False
        return found

    def _fault_of_other(self, batch: FileBatch) -> EpochFault | None:
        """The fault of a batch that does not start an epoch: it must have the previous one's."""
        epoch = batch.header.epoch
        recorded, start = self._recorded(batch)
        following = self._following(batch)
        follower = following[0] if following else None
        if self.before is None and epoch in {recorded, follower}:
            return None
        before = self._in_front()
        if before is not None:
            if epoch == before:
                return None
            is_alone = follower != epoch or recorded == before
            reason = f"epoch {epoch} behind epoch {before} without a LeaderChange"
            return EpochFault(reason, before if is_alone else epoch)
        if follower is not None and follower in {recorded, *following[1:]}:
            return EpochFault(f"epoch {epoch} in front of epoch {follower}", follower)
        # A copy may have a checkpoint that is older than the last epoch.
        if follower is None and recorded is not None:
            is_last = start == self._split.checkpoint[-1][1]
            return None if is_last and epoch > recorded else _against_checkpoint(epoch, recorded)
        return None

    def _fault_of_leader(self, batch: FileBatch) -> EpochFault | None:
        """The fault of the first batch of an epoch: it must be higher than the previous one's."""
        epoch = batch.header.epoch
        recorded, start = self._recorded(batch)
        if start != batch.header.base_offset:
            recorded = None
        following = self._following(batch)
        if epoch in {recorded, *following} and (self.before is None or epoch > self.before):
            return None
        before = self._in_front()
        floor = -1 if before is None else before
        if recorded is not None and recorded > floor:
            fault = _against_checkpoint(epoch, recorded)
            # Otherwise the checkpoint alone contradicts the batch, and may be of another time.
            is_certain = epoch <= floor or recorded in following
            return fault if is_certain else EpochFault(fault.reason, None)
        # If the two followers differ, either may be the corrupt one.
        follower = following[0] if len(set(following)) == 1 else None
        if follower is not None and follower > floor and (epoch <= floor or len(following) > 1):
            reason = f"epoch {epoch} of a LeaderChange in front of epoch {follower}"
            return EpochFault(reason, follower)
        if epoch <= floor:
            return EpochFault(f"epoch {epoch} of a LeaderChange behind epoch {floor}", None)
        behind = [each.header.epoch for each in self._behind(batch)]
        if len(behind) > 1 and floor < behind[0] <= behind[1] <= epoch:
            reason = f"epoch {epoch} of a LeaderChange in front of epoch {behind[0]}"
            return EpochFault(reason, None)
        return None

    def _recorded(self, batch: FileBatch) -> tuple[int | None, int]:
        """The epoch that the checkpoint has for a batch, and its start offset."""
        entries = self._split.checkpoint
        index = bisect_right(entries, batch.header.base_offset, key=_START_OF) - 1
        return entries[index] if index >= 0 else (None, -1)

    def _in_front(self) -> int | None:
        """The epoch of the previous batch, which may be in the previous segment."""
        if self.before is None and self._is_first and self._split.first_offset:
            with suppress(OptionError):
                directory = find_directory(parent(self._split.path))
                self.before = RecordEpochs().before(directory, self._split.first_offset)
        return self.before

    def _following(self, batch: FileBatch) -> list[int]:
        """The epochs of up to two following batches before the next epoch starts."""
        found = takewhile(lambda each: not _leads(each), self._behind(batch))
        return [each.header.epoch for each in found]

    def _behind(self, batch: FileBatch) -> list[FileBatch]:
        """Up to two batches after this one, which may be in the next segment."""
        position = batch.position + batch.header.size_bytes
        found = _batches_at(self._file, position)
        following = self._split.next_offset
        is_of_log = self._split.snapshot_offset is None
        if position >= self._file.size() and following is not None and is_of_log:
            path = f"{parent(self._split.path)}/{layout.segment_name(following)}"
            with suppress(OSError, StorageError), closing(OsFileSystem().open(path)) as file:
                found = _batches_at(file, 0)
        return found


def _batches_at(file: File, position: int) -> list[FileBatch]:
    found: list[FileBatch] = []
    with suppress(OSError, CorruptBatchError):
        batches = scan_batches(file, file.size(), position, chunk_bytes=_NEIGHBOUR_BYTES)
        found += islice(batches, 2)
    return found


def _leads(batch: FileBatch) -> bool:
    """True if a batch starts an epoch. Raises SchemaError and CorruptBatchError."""
    return batch.header.is_control and begins_epoch(
        control_records(batch.buffer, batch.at, batch.header)
    )


def _against_checkpoint(epoch: int, recorded: int) -> EpochFault:
    return EpochFault(f"epoch {epoch} where the log's epochs have {recorded}", recorded)
