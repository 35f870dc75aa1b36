"""Snapshots of the controller's image: when to take one, taken and loaded in short slices.

All members replay the same bytes, and would take their snapshots at the same moment: each draws how
far below its bounds of bytes and time it begins.
"""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.consensus.disk_calls import DiskCalls, DiskThread
from quorate.consensus.driver import monotonic_ms, wall_ms
from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.snapshot import SnapshotLoader, snapshot_slices
from quorate.raft.api import Event, SnapshotStored
from quorate.records.batch import read_records
from quorate.records.ids import Offset, OffsetAndEpoch
from quorate.records.metadata import decode_record
from quorate.rpc.pace import LOADING_SHARE, SERVING_SHARE, Pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.consensus.config import LogSettings
    from quorate.consensus.driver import RaftDriver
    from quorate.raft.api import CheckSnapshot, SnapshotChecked

log = logging.getLogger(__name__)
# The bounds are maxima: a snapshot begins up to this part of them earlier.
_SPREAD: Final = 0.3
# A few milliseconds.
_LOADED_TOGETHER_MAX: Final = 64


class Snapshotter:
    """Takes snapshots by bytes and by time, and lets the storage clean what they replace."""

    def __init__(
        self,
        driver: RaftDriver,
        settings: LogSettings,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`draw` gives numbers in [0, 1)."""
        self._draw = draw
        self._part = self._draw_part()
        self._driver = driver
        self._store = driver.store
        self._settings = settings
        self._bytes = 0
        self._since_ms = monotonic_ms()
        stored = self._store.snapshots.stored()
        self.newest: OffsetAndEpoch | None = stored[-1].snapshot_id if stored else None
        self._task: asyncio.Task[None] | None = None
        self._is_freezing = False
        # A flush of so many bytes may take its time on a disk that is sound: nobody judges it.
        self._thread = DiskThread("snapshot", DiskCalls())
        self._is_wanted = False
        self._waiting: MetadataImage | None = None
        self._checks: set[asyncio.Task[None]] = set()

    def _draw_part(self) -> float:
        return 1 - _SPREAD * self._draw()

    def note(self, size_bytes: int) -> None:
        """So many bytes of records were committed."""
        self._bytes += size_bytes

    def consider(self, image: MetadataImage) -> None:
        """Begin a snapshot of `image` when it is due; nothing when one is under way.

        A majority may have flushed what the own disk has not (rule 15). With writes going on that
        would be so each time, and no snapshot would ever be taken: the image of the moment when one
        fell due is kept until the disk has come that far.
        """
        if self._task is not None or not self._is_due() or not image.features:
            return
        if self._driver.has_log_alone:
            return
        image = self._waiting or image
        flushed, end = self._store.log.flushed_end.offset, image.position.end_offset
        if not self._is_new(end):
            self._waiting = None
            return
        if end > flushed:
            self._waiting = image
            return
        self._waiting, self._is_wanted = None, False
        self._bytes, self._since_ms, self._part = 0, monotonic_ms(), self._draw_part()
        self._task = asyncio.get_running_loop().create_task(self._take(image))
        self._task.add_done_callback(self._over)

    def _is_new(self, end: Offset) -> bool:
        """Whether a snapshot up to `end` would replace the newest one, a damaged one included."""
        taken = self.newest.offset if self.newest is not None else 0
        return end >= taken if self._is_wanted else end > taken

    def _is_due(self) -> bool:
        if self._is_wanted:
            return True
        if self._bytes >= self._settings.snapshot_bytes * self._part:
            return True
        interval_ms = self._settings.snapshot_interval_ms * self._part
        is_late = monotonic_ms() - self._since_ms >= interval_ms > 0
        return is_late and self._bytes > 0

    async def _take(self, image: MetadataImage) -> None:
        position = image.position
        snapshot_id = OffsetAndEpoch(epoch=position.epoch, offset=position.end_offset)
        writer = self._store.begin_snapshot(snapshot_id, timestamp_ms=wall_ms())
        is_finished = False
        pace = Pace(SERVING_SHARE)
        try:
            for values in snapshot_slices(image):
                writer.append(values)
                await pace.breathe()
            self._is_freezing = is_finished = True
            info = await self._thread.run("the flush of a snapshot", writer.freeze)
        finally:
            if not is_finished:
                writer.abandon()
        self._store.snapshot_stored(info)
        self.newest = snapshot_id
        log.info("snapshot %s has %d bytes", snapshot_id, info.size_bytes)
        self._driver.deliver(SnapshotStored(info))
        self.clean(position.end_offset)

    def clean(self, replayed: Offset) -> None:
        """Let the storage drop what its retention no longer keeps; the core hears at once."""

        def work() -> Event | None:
            pinned = self._driver.core.pinned_snapshots()
            cleaned = self._store.clean(
                replayed, now_ms=wall_ms(), pinned=pinned, report=_tell_damage
            )
            if cleaned is not None:
                log.info("the log begins at %d now", cleaned.log_start)
            return cleaned

        self._driver.deliver(work)

    # --- those that others fetch ------------------------------------------------------------------

    def check(self, effect: CheckSnapshot, then: Callable[[], None]) -> None:
        """Read a snapshot beside everything else, tell the core what it is like, go on."""
        task = asyncio.get_running_loop().create_task(self._check(effect, then))
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)

    async def _check(self, effect: CheckSnapshot, then: Callable[[], None]) -> None:
        try:
            checked = await self._read_to_its_end(effect)
        except Exception as error:
            self._driver.fail(error)
            return
        self._driver.deliver(checked)
        then()

    async def _read_to_its_end(self, effect: CheckSnapshot) -> SnapshotChecked:
        """What is served later; a successor of a damaged one is due at once."""
        work = partial(self._store.check_snapshot, effect)
        checked = await asyncio.get_running_loop().run_in_executor(None, work)
        if checked.damage is not None:
            log.error("%s: not served to anybody, another one is written", checked.damage)
            self._store.mark_unsound(checked.snapshot_id)
            self._is_wanted = True
        return checked

    async def end_checks(self) -> None:
        """Nobody waits for them any more."""
        for check in self._checks:
            check.cancel()
        if self._checks:
            await asyncio.wait(self._checks)

    # --- what is under way ------------------------------------------------------------------------

    def _over(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._is_freezing = False
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Exception):
            self._driver.fail(error)

    async def abandon(self) -> None:
        """Give up the snapshot under way, or wait until it is durable."""
        self._waiting = None
        if self._task is not None:
            if not self._is_freezing:
                self._task.cancel()
            await asyncio.wait([self._task])

    async def load(self, snapshot_id: OffsetAndEpoch) -> MetadataImage:
        """The image that a stored snapshot holds. Raises DamagedSnapshotError, ReplayError."""
        snapshots = self._store.snapshots
        timestamp_ms = snapshots.last_contained_log_timestamp_ms(snapshot_id)
        loader = SnapshotLoader(LogPosition(snapshot_id.offset, snapshot_id.epoch, timestamp_ms))
        # Nothing is served meanwhile, but votes are asked for, and wait for a few turns each.
        pace = Pace(LOADING_SHARE)
        for batch in snapshots.data_batches(snapshot_id):
            values = read_records(batch.buffer, batch.at, batch.header)
            for start in range(0, len(values), _LOADED_TOGETHER_MAX):
                part = values[start : start + _LOADED_TOGETHER_MAX]
                loader.add([decode_record(record.value or b"")[0] for record in part])
                await pace.breathe()
        self.newest = snapshot_id
        self._bytes = 0
        return loader.finish()


def _tell_damage(what: str) -> None:
    log.warning("%s: it was only to be deleted, and is set aside", what)
