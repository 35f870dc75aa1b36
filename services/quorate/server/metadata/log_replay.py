"""Replays committed batches into the image in time slices.

Replay yields to other tasks: the votes of a replica that replays must not wait. A batch may hold
ten thousand records, so a slice may end inside a batch; readers see the batch when all of it is
replayed. A batch that is dropped half-way is replayed again from its beginning.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.controller.image import LogPosition
from quorate.controller.record_runs import batch_items
from quorate.raft.messages import LogRange
from quorate.records.batch import read_header
from quorate.records.ids import Epoch, Offset
from quorate.telemetry.histograms import Histogram

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from quorate.controller.controller import Controller
    from quorate.controller.slices import Slices
    from quorate.server.driver.raft_driver import RaftDriver

SLICE_BYTES: Final = 64 * 1024
# Milliseconds; another slice may follow in the same event-loop iteration as other work.
SLICE_MS: Final = 8
# Seconds: from one small commit to a batch of ten thousand records, replayed in several slices.
REPLAY_BOUNDS_S: Final = (
    *(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01),
    *(0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)


class LogReplay:
    """The state of a standby's replay between two slices."""

    def __init__(
        self,
        driver: RaftDriver,
        controller: Controller,
        note: Callable[[int], None],
        wake: Callable[[], None],
    ) -> None:
        """`note` takes the bytes replayed; `wake` is called when `replay_slice` can continue.

        A batch that is not in memory is read in a thread, so a stalled disk blocks only the replay.
        """
        self._driver = driver
        self._controller = controller
        self._note = note
        self._wake = wake
        self._under_way: Slices[None] | None = None
        self._read: asyncio.Future[bytes] | None = None
        self._begun_s = 0.0
        self.durations = Histogram(REPLAY_BOUNDS_S)

    @property
    def is_waiting(self) -> bool:
        """True if the next data is still being read; it never comes if this node ends."""
        read = self._read
        return read is not None and (not read.done() or read.cancelled())

    def discard_partial_batch(self) -> None:
        """Drop the batch in progress; the next slice begins at the controller's end offset."""
        self._under_way = None
        if self._read is not None:
            self._read.cancel()
            self._read = None

    def replay_slice(self, high_watermark: Offset) -> None:
        """Replay one slice of the committed log. Raises StorageError, ReplayError."""
        host = self._driver.host
        if self._under_way is None:
            data = self._next(high_watermark)
            if data is None:
                return
            self._begun_s = host.work_s()
            self._under_way = self._batches(data)
        deadline_ms = host.monotonic_ms() + SLICE_MS
        for _ in self._under_way:
            if host.monotonic_ms() >= deadline_ms:
                return
        self._under_way = None
        self.durations.observe(host.work_s() - self._begun_s)

    def _next(self, high_watermark: Offset) -> bytes | None:
        """Return the next committed data; None if there is none or it is still being read."""
        if self._read is not None:
            if self.is_waiting:
                return None
            read, self._read = self._read, None
            return read.result()
        start = self._controller.end_offset
        if start >= high_watermark:
            return None
        store = self._driver.store
        span = LogRange(start=start, end=high_watermark, bytes_max=SLICE_BYTES)
        data = store.cached_range(span)
        if data is None:
            self._read = self._driver.access.read("a replay", partial(store.read_range, span))
            self._read.add_done_callback(self._was_read)
        return data

    def _was_read(self, read: asyncio.Future[bytes]) -> None:
        # The read is cancelled if it was dropped, or if this node ends.
        if read is self._read and not read.cancelled():
            self._wake()

    def _batches(self, data: bytes) -> Slices[None]:
        position = 0
        while position < len(data):
            header = read_header(data, position)
            epoch, end = Epoch(header.epoch), Offset(header.last_offset + 1)
            yield from self._controller.replay_in_slices(
                () if header.is_control else batch_items(data, position, header),
                base_offset=Offset(header.base_offset),
                position=LogPosition(end, epoch, header.max_timestamp_ms),
            )
            self._note(header.size_bytes)
            position += header.size_bytes
            yield
