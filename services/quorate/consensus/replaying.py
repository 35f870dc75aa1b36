"""The committed log read back into the controller, in slices of time.

Replay takes turns with everything else: the votes of a replica that replays must not wait. A batch
may hold ten thousand records, so a slice may end inside one; readers see it when all of it is
replayed. What is dropped half-way is replayed anew, from the beginning of its batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.consensus.driver import monotonic_ms
from quorate.controller.image import LogPosition
from quorate.raft.messages import LogRange
from quorate.records.batch import read_header, read_runs
from quorate.records.ids import Epoch, Offset
from quorate.records.metadata import decode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.consensus.driver import RaftDriver
    from quorate.controller.controller import Controller
    from quorate.controller.slices import Slices
    from quorate.records.metadata import MetadataRecord

SLICE_BYTES: Final = 64 * 1024
# Another slice may follow in the same turn of the loop as what else there is to do.
SLICE_MS: Final = 8


class LogReplay:
    """Where a standby's replay stands, between two slices."""

    def __init__(
        self, driver: RaftDriver, controller: Controller, note: Callable[[int], None]
    ) -> None:
        """`note` is told how many bytes were replayed."""
        self._driver = driver
        self._controller = controller
        self._note = note
        self._under_way: Slices[None] | None = None

    def drop(self) -> None:
        """Forget the batch under way; the next slice begins where the controller stands."""
        self._under_way = None

    def go_on(self, high_watermark: Offset) -> None:
        """Replay one slice of what is committed. Raises StorageError, ReplayError."""
        if self._under_way is None:
            start = self._controller.end_offset
            if start >= high_watermark:
                return
            span = LogRange(start, high_watermark, SLICE_BYTES)
            self._under_way = self._batches(self._driver.store.read_range(span))
        deadline_ms = monotonic_ms() + SLICE_MS
        for _ in self._under_way:
            if monotonic_ms() >= deadline_ms:
                return
        self._under_way = None

    def _batches(self, data: bytes) -> Slices[None]:
        position = 0
        while position < len(data):
            header = read_header(data, position)
            epoch, end = Epoch(header.epoch), Offset(header.last_offset + 1)
            yield from self._controller.replay_in_slices(
                () if header.is_control else _records(data, position),
                base_offset=Offset(header.base_offset),
                position=LogPosition(end, epoch, header.max_timestamp_ms),
            )
            self._note(header.size_bytes)
            position += header.size_bytes
            yield


def _records(data: bytes, position: int) -> Iterator[MetadataRecord]:
    """Decoded one by one, as they are asked for: to decode takes longer than to replay."""
    for run in read_runs(data, position, read_header(data, position)):
        for record in run:
            yield decode_record(record.value or b"")[0]
