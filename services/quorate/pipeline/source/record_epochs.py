"""Finds the epochs of records in a log on disk."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.damage import Damage, describe_os_error
from quorate.pipeline.source.splits import boundaries
from quorate.raft.messages import EpochStart
from quorate.records.ids import Epoch, Offset
from quorate.storage import layout
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem
from quorate.storage.log.batch_scanner import resync_batches
from quorate.storage.log.leader_epoch_checkpoint import read_epochs

if TYPE_CHECKING:
    from quorate.pipeline.source.directories import Directory, LogFile
    from quorate.records.batch import BatchHeader
    from quorate.storage.log.batch_scanner import FileBatch

_STEP_BYTES: Final = 1024 * 1024


class LogEpochs:
    """Reads the epochs of logs from the checkpoint, or from the batches if it is incomplete."""

    def __init__(self) -> None:
        self._of_segments: dict[str, dict[tuple[str, int], list[EpochStart]]] = {}

    def of(self, directory: Directory, last: int | None) -> tuple[EpochStart, ...]:
        """The epochs and their start offsets; `last` is the epoch of the log's last batch."""
        found = recorded_epochs(directory)
        # A copy may have a checkpoint that is older than the last epoch.
        if last is not None and (not found or found[-1].epoch < last):
            return self._of_batches(directory)
        return found

    def _of_batches(self, directory: Directory) -> tuple[EpochStart, ...]:
        found: list[EpochStart] = []
        before = self._of_segments.get(directory.path, {})
        seen: dict[tuple[str, int], list[EpochStart]] = {}
        for segment in directory.segments:
            key = segment.path, segment.size_bytes
            seen[key] = starts = before.get(key) or _epoch_starts(segment)
            for each in starts:
                if not found or each.epoch > found[-1].epoch:
                    found.append(each)
        self._of_segments[directory.path] = seen
        return tuple(found)


def recorded_epochs(directory: Directory, *, is_needed: bool = True) -> tuple[EpochStart, ...]:
    """The checkpoint's entries; empty if it is missing or unreadable, which is recorded as damage.

    With `is_needed`, another attempt may read it; for a single directory it is not needed.
    """
    path = f"{directory.path}/{layout.EPOCH_CHECKPOINT}"
    try:
        return read_epochs(OsFileSystem(), path) or ()
    except (OSError, StorageError) as error:
        reason = (
            "the log's epochs cannot be read, those of batches have to do: "
            f"{describe_os_error(error)}"
        )
        directory.damages.append(Damage(reason, path, 0, 0, is_unread=is_needed))
    return ()


def _epoch_starts(segment: LogFile) -> list[EpochStart]:
    """The epochs that start in a segment, and the epoch of its first batch.

    No CRC covers the epoch of a batch, so it counts only if the next batch has the same epoch or
    starts another one.
    """
    with suppress(OSError, StorageError), closing(OsFileSystem().open(segment.path)) as file:
        headers = [batch.header for batch in resync_batches(file, segment.size_bytes, 0)]
        return [
            EpochStart(Epoch(header.epoch), Offset(header.base_offset))
            for before, header, behind in zip(
                [None, *headers], headers, [*headers[1:], None], strict=False
            )
            if (before is None or (header.is_control and header.epoch > before.epoch))
            and (behind is None or behind.epoch == header.epoch or behind.is_control)
        ]
    return []


class RecordEpochs:
    """Reads epochs of records, and keeps the last batch, because the next one is mostly nearby.

    An epoch counts if neighbouring batches confirm it.
    """

    def __init__(self) -> None:
        self._last = ("", 0)

    def before(self, directory: Directory, offset: int) -> Epoch | None:
        """The epoch of the last record below `offset`; None if it is damaged or missing."""
        holding = [each for each in directory.segments if each.base_offset < offset]
        epoch = self._in_segment(holding[-1], offset - 1) if holding else None
        if epoch is None and offset > 0:
            ids = [each.snapshot_id for each in directory.snapshots]
            epoch = next((each.epoch for each in ids if each.offset == offset), None)
        return epoch

    def _in_segment(self, segment: LogFile, wanted: int) -> Epoch | None:
        path, position = self._last
        with suppress(OSError, StorageError):
            if path == segment.path:
                # If the file has been rewritten since, the search fails and starts over.
                epoch = self._from(segment, position, position + _STEP_BYTES, wanted)
                if epoch is not None:
                    return epoch
            places = boundaries(
                segment.path, segment.size_bytes, _STEP_BYTES, first=segment.base_offset, last=None
            )
            position = max(at for at, offset in places if offset <= wanted)
            return self._from(segment, position, segment.size_bytes, wanted)
        return None

    def _from(self, segment: LogFile, position: int, end: int, wanted: int) -> Epoch | None:
        with closing(OsFileSystem().open(segment.path)) as file:
            batches = resync_batches(file, min(end, segment.size_bytes), position)
            before = None
            for batch in batches:
                header = batch.header
                if header.base_offset > wanted:
                    break
                if header.last_offset >= wanted:
                    self._last = segment.path, (before or batch).position
                    behind = next(batches, None)
                    return Epoch(header.epoch) if _is_borne_out(header, before, behind) else None
                before = batch
        return None


def _is_borne_out(header: BatchHeader, before: FileBatch | None, behind: FileBatch | None) -> bool:
    """True if a neighbouring batch confirms the epoch, or no neighbour exists."""
    beside = [each.header for each in (before, behind) if each is not None]
    if not beside or header.epoch in {each.epoch for each in beside}:
        return True
    if behind is not None:
        return behind.header.is_control and behind.header.epoch > header.epoch
    return header.is_control and header.epoch > beside[0].epoch
