"""The epochs of records in a log on a disk."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.splits import boundaries
from quorate.records.ids import Epoch
from quorate.storage.errors import StorageError
from quorate.storage.files import OsFileSystem
from quorate.storage.scan import salvage_batches

if TYPE_CHECKING:
    from quorate.pipeline.source.directories import Directory, LogFile

_STEP_BYTES: Final = 1024 * 1024


class RecordEpochs:
    """Reads epochs of records, and remembers the last batch: the next one is mostly close by."""

    def __init__(self) -> None:
        self._last = ("", 0)

    def before(self, directory: Directory, offset: int) -> Epoch | None:
        """The epoch of the last record below `offset`; None if it is damaged or not there."""
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
                # Whether the file has been written again since is seen by what is found.
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
            for batch in salvage_batches(file, min(end, segment.size_bytes), position):
                header = batch.header
                if header.base_offset > wanted:
                    break
                if header.last_offset >= wanted:
                    self._last = segment.path, batch.position
                    return Epoch(header.epoch)
        return None
