"""Decides when to take a snapshot, and writes and loads snapshots in time slices.

All members replay the same bytes, and would take their snapshots at the same moment. So each starts
at a random distance below its limits of bytes and time.
"""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.record_runs import batch_items
from quorate.controller.snapshot import SnapshotLoader, snapshot_slices
from quorate.raft.api import CheckSnapshot, Event, SnapshotStored
from quorate.records.ids import Offset, OffsetAndEpoch
from quorate.rpc.time_slicer import BACKGROUND_SHARE, LOADING_SHARE, TimeSlicer
from quorate.server.disk.executor import DiskCallTracker
from quorate.server.snapshots.verifier import SnapshotVerifier, read_in_chunks
from quorate.storage.errors import StorageError
from quorate.storage.reserved_descriptors import is_resource_shortage
from quorate.telemetry.histograms import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from quorate.raft.api import SnapshotChecked
    from quorate.raft.messages import SnapshotInfo
    from quorate.server.config import LogSettings
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.server.host import Host
    from quorate.storage.snapshots.writer import SnapshotWriter
    from quorate.telemetry.metrics import Value

log = logging.getLogger(__name__)
# The limits are maxima: a snapshot starts up to this fraction of them earlier.
_SPREAD: Final = 0.3
# Milliseconds between verifications of the newest snapshot: peers may never fetch it, and the next
# start may depend on it alone.
RECHECK_MS: Final = 3_600_000
# Bytes handed to the disk thread in one call: half a batch of the file, to keep switches few.
_WRITTEN_TOGETHER_BYTES: Final = 64 * 1024
_LOADING: Final = "a read of a snapshot"
# Seconds: from an empty image to millions of partitions under full load.
SNAPSHOT_BOUNDS_S: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Snapshotter:
    """Takes snapshots by bytes and by time, and lets the storage clean what they replace."""

    def __init__(
        self,
        driver: RaftDriver,
        settings: LogSettings,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`draw` returns random numbers in [0, 1)."""
        self._draw = draw
        self._part = self._draw_part()
        self._host = host = driver.host
        self._recheck_ms = host.monotonic_ms() + RECHECK_MS * self._draw_part()
        self._driver = driver
        self._store = driver.store
        self._settings = settings
        self._bytes = 0
        self._since_ms = host.monotonic_ms()
        self.newest: OffsetAndEpoch | None = self._store.log.state.newest_snapshot
        self._task: asyncio.Task[None] | None = None
        self._is_given_up = False
        # A snapshot's bytes may take long on a healthy disk, so these calls are not tracked for
        # lateness.
        self._thread = host.disk_queue("snapshot", DiskCallTracker())
        self._is_wanted = False
        self._waiting: MetadataImage | None = None
        self._checks = SnapshotVerifier(driver, self._checked)
        self._after_check: Callable[[], None] = lambda: None
        # Called with the image when its snapshot has ended: frees what only this image references.
        self.let_go: Callable[[MetadataImage], None] = lambda _image: None
        self._taken: MetadataImage | None = None
        self._meters = _SnapshotMeters(host)

    def metrics(self) -> Mapping[str, Value]:
        """Values for a scrape, of the snapshots generated and loaded since the node started."""
        return self._meters.read()

    def _draw_part(self) -> float:
        return 1 - _SPREAD * self._draw()

    def on_committed(self, size_bytes: int) -> None:
        """Count the bytes of committed records."""
        self._bytes += size_bytes

    def maybe_snapshot(self, image: MetadataImage) -> None:
        """Start a snapshot of `image` when one is due, unless one is in progress.

        A majority may have flushed what this disk has not (rule `snapshot_within_flush`). Under
        continuous writes that is so each time, and no snapshot would ever be taken. So the image
        with which a snapshot fell due is kept until this disk has flushed the log up to its end.
        """
        if self._task is not None or not self._is_due() or not image.features:
            return
        if self._driver.has_exclusive_log:
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
        self._bytes, self._part = 0, self._draw_part()
        self._since_ms = self._host.monotonic_ms()
        self._is_given_up = False
        # Requested without yielding: the log must not be truncated between the checks above and the
        # first batch.
        begin = self._beginning(image)
        writer = self._driver.access.read("the beginning of a snapshot", begin)
        self._taken = image
        self._task = asyncio.get_running_loop().create_task(self._take(image, writer))
        self._task.add_done_callback(self._over)

    def _beginning(self, image: MetadataImage) -> Callable[[], SnapshotWriter]:
        return partial(
            self._store.begin_snapshot,
            _id_of(image),
            timestamp_ms=self._host.wall_ms(),
            contained_ms=image.position.timestamp_ms,
        )

    def _is_new(self, end: Offset) -> bool:
        """True if a snapshot up to `end` would replace the newest one.

        A damaged one (`_is_wanted`) may be replaced by a snapshot with the same end.
        """
        taken = self.newest.offset if self.newest is not None else 0
        return end >= taken if self._is_wanted else end > taken

    def _is_due(self) -> bool:
        if self._is_wanted:
            return True
        if self._bytes >= self._settings.snapshot_bytes * self._part:
            return True
        interval_ms = self._settings.snapshot_interval_ms * self._part
        is_late = self._host.monotonic_ms() - self._since_ms >= interval_ms > 0
        return is_late and self._bytes > 0

    async def _take(self, image: MetadataImage, begun: asyncio.Future[SnapshotWriter]) -> None:
        writer, begun_s = await begun, self._host.work_s()
        info = await self._write_whole(image, writer)
        if info is None:
            return
        self.newest = info.snapshot_id
        self._meters.generated(self._host.work_s() - begun_s, info.size_bytes)
        log.info("snapshot %s has %d bytes", info.snapshot_id, info.size_bytes)

        def store() -> Event | None:
            # Damaged snapshots are quarantined now.
            self._store.snapshot_stored(info)
            return SnapshotStored(info)

        self._driver.deliver(store)
        self.clean(info.snapshot_id.offset)

    async def save(self, image: MetadataImage) -> SnapshotInfo | None:
        """Write a snapshot of an image that may be the only copy; None if it is empty.

        Called after the core has ended. Raises OSError, and ValueError if the log does not contain
        the image's end.
        """
        await self.abandon()
        if not image.features:
            return None
        self._is_given_up = False
        begin = self._beginning(image)
        writer = await self._thread.run("the beginning of a snapshot", begin)
        return await self._write_whole(image, writer)

    async def _write_whole(
        self, image: MetadataImage, writer: SnapshotWriter
    ) -> SnapshotInfo | None:
        """Write a durable snapshot; None if it was abandoned."""
        info = None
        try:
            if await self._write(image, writer):
                info = await self._thread.run("the flush of a snapshot", writer.freeze)
        finally:
            if info is None:
                await self._thread.run("the end of a snapshot", writer.abandon)
        return info

    async def _write(self, image: MetadataImage, writer: SnapshotWriter) -> bool:
        """Write the whole image, waiting for the disk as needed; False if it was abandoned."""
        pace = TimeSlicer(BACKGROUND_SHARE, clock=self._host.cpu_s)
        gathered: list[bytes] = []
        size = 0
        for values in snapshot_slices(image):
            gathered += values
            size += sum(map(len, values))
            if size >= _WRITTEN_TOGETHER_BYTES:
                await self._thread.run("a part of a snapshot", partial(writer.append, gathered))
                gathered, size = [], 0
            await pace.yield_if_due()
            if self._is_given_up:
                return False
        await self._thread.run("a part of a snapshot", partial(writer.append, gathered))
        return not self._is_given_up

    def clean(self, replayed: Offset) -> None:
        """Let the storage delete what its retention no longer keeps; the core is notified.

        An error of the disk ends the process. A defect of this program is logged if it has changed
        nothing.
        """

        def work() -> Event | None:
            pinned = self._driver.core.pinned_snapshots()
            before = self._kept()
            try:
                cleaned = self._store.clean(
                    replayed, now_ms=self._host.wall_ms(), pinned=pinned, report=_tell_damage
                )
            except (OSError, StorageError):
                raise
            except Exception as error:
                # A partial change has to end the process: the core does not know of it.
                if is_resource_shortage(error) or self._kept() != before:
                    raise
                # The same defect would end all replicas within a minute, although cleaning only
                # saves disk space: so the process continues.
                repeats = ("cleaning", type(error))
                text = "the log is not cleaned, and is tried again after the next snapshot"
                log.exception(text, extra={"repeats": repeats})
                return None
            if cleaned is not None:
                log.info("the log begins at %d now", cleaned.log_start)
            return cleaned

        self._driver.deliver(work)

    def _kept(self) -> tuple[Offset, tuple[SnapshotInfo, ...]]:
        state = self._store.log.state
        return state.log_start, tuple(state.snapshots)

    # --- verification -----------------------------------------------------------------------------

    def verify(self, effect: CheckSnapshot, then: Callable[[], None]) -> None:
        """Verify a snapshot concurrently, report the result to the core, then call `then`."""
        self._after_check = then
        self._checks.begin(effect)

    def reverify(self, then: Callable[[], None]) -> None:
        """Verify the newest snapshot when that is due, as `verify` does.

        Peers of a single voter never fetch its snapshots. Without this it would learn of bit rot
        only at its next start, when the image in memory is gone.
        """
        now_ms, newest = self._host.monotonic_ms(), self._store.log.state.newest_snapshot
        if now_ms < self._recheck_ms:
            return
        self._recheck_ms = now_ms + RECHECK_MS * self._draw_part()
        if newest is not None:
            self.verify(CheckSnapshot(newest), then)

    def _checked(self, found: SnapshotChecked) -> None:
        """Take the result of a verification; a damaged snapshot is replaced immediately."""
        if found.damage is not None:
            log.error("%s: not served to anybody, another one is written", found.damage)
            self._store.mark_damaged(found.snapshot_id)
            self._is_wanted = True
        self._driver.deliver(found)
        self._after_check()

    async def end_checks(self) -> None:
        """Cancel the verifications in progress."""
        await self._checks.end()

    # --- the snapshot in progress -----------------------------------------------------------------

    def _over(self, task: asyncio.Task[None]) -> None:
        self._task = None
        taken, self._taken = self._taken, None
        if taken is not None:
            self.let_go(taken)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Exception):
            self._driver.fail(error)

    async def abandon(self) -> None:
        """Abandon the snapshot in progress, or wait until it is durable."""
        self._waiting = None
        self._is_given_up = True
        if self._task is not None:
            await asyncio.wait([self._task])

    async def load(self, snapshot_id: OffsetAndEpoch) -> MetadataImage:
        """Load the image of a stored snapshot. Raises DamagedSnapshotError, ReplayError."""
        snapshots, driver = self._store.snapshots, self._driver
        header = partial(snapshots.last_contained_log_timestamp_ms, snapshot_id)
        timestamp_ms = await driver.access.read_detached(_LOADING, header)
        loader = SnapshotLoader(LogPosition(snapshot_id.offset, snapshot_id.epoch, timestamp_ms))
        # Nothing is served during a load, but vote requests arrive and wait for a few iterations
        # each.
        pace = TimeSlicer(LOADING_SHARE, clock=self._host.cpu_s)
        async for batch in read_in_chunks(driver, _LOADING, snapshots.data_batches(snapshot_id)):
            # A batch of a foreign snapshot may hold a hundred thousand records.
            items = batch_items(batch.buffer, batch.at, batch.header)
            for _ in loader.add_in_slices(items):
                await pace.yield_if_due()
        self.newest = snapshot_id
        self._bytes = 0
        self._meters.loads += 1
        return loader.finish()


class _SnapshotMeters:
    """Metrics of one node's snapshots (Kafka: SnapshotEmitter, MetadataLoader)."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.durations = Histogram(SNAPSHOT_BOUNDS_S)
        self.loads = 0
        self._newest: tuple[int, int] | None = None

    def generated(self, duration_s: float, size_bytes: int) -> None:
        self.durations.observe(duration_s)
        self._newest = (self._host.monotonic_ms(), size_bytes)

    def read(self) -> Mapping[str, Value]:
        values: dict[str, Value] = {
            "snapshot_generation_duration_seconds": self.durations,
            "handle_load_snapshot_total": self.loads,
        }
        if self._newest is not None:
            at_ms, size_bytes = self._newest
            age_ms = self._host.monotonic_ms() - at_ms
            values["latest_snapshot_generated_age_seconds"] = age_ms / 1000
            values["latest_snapshot_generated_bytes"] = size_bytes
        return values


def _id_of(image: MetadataImage) -> OffsetAndEpoch:
    return OffsetAndEpoch(epoch=image.position.epoch, offset=image.position.end_offset)


def _tell_damage(what: str) -> None:
    log.warning("%s: quarantined instead of deleted", what)
