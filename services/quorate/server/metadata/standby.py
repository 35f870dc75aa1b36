"""Keeps the image of a standby controller current: loads snapshots, replays the log.

The committed log is replayed in bounded slices; the votes of a replica that replays must not wait.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.server.metadata.log_replay import LogReplay
from quorate.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.controller import Controller
    from quorate.controller.partitions.partition import PartitionCounts
    from quorate.records.ids import OffsetAndEpoch
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.server.memory.superseded_images import SupersededImages
    from quorate.server.metadata.leader_readiness import LeaderReadiness
    from quorate.server.snapshots.snapshotter import Snapshotter


class Standby:
    """The standby side of one controller: its image follows the committed log."""

    def __init__(
        self,
        driver: RaftDriver,
        controller: Controller,
        snapshotter: Snapshotter,
        images: SupersededImages,
        leader_readiness: LeaderReadiness,
        *,
        progress: Callable[[], api.PublishProgress | None],
        advance: Callable[[], None],
        moved: Callable[[], None],
        caught_up: Callable[[api.PublishProgress], None],
    ) -> None:
        """`progress` gives the core's last report; `advance` continues what had to wait.

        `moved` is called after each change of the image, `caught_up` when it contains all that is
        committed.
        """
        self._driver = driver
        self._controller = controller
        self._snapshotter = snapshotter
        self._images = images
        self._leader_readiness = leader_readiness
        self._progress = progress
        self._advance = advance
        self._moved = moved
        self._caught_up = caught_up
        self._loop = asyncio.get_running_loop()
        self.log_replay = LogReplay(driver, controller, snapshotter.on_committed, advance)
        self._handle: asyncio.Handle | None = None
        self._loading: asyncio.Task[None] | None = None
        self._is_paused = True
        # The partition tally at the time when the image had caught up; None before that.
        self.tally: PartitionCounts | None = None
        self._recovered_end = 0

    @property
    def is_loaded(self) -> bool:
        """True if the image represents this replica's log, not a partially read snapshot."""
        return self._loading is None and not self._is_paused

    def begin(self, snapshot_id: OffsetAndEpoch | None) -> None:
        """Load the newest snapshot, or replay from the log's beginning."""
        self._is_paused = False
        self._recovered_end = self._driver.store.log.end.offset
        if snapshot_id is not None:
            self.load(snapshot_id)
        else:
            self._advance()

    # --- replay -----------------------------------------------------------------------------------

    def replay_committed(self) -> None:
        """Schedule the replay of what is committed by now, unless it is scheduled already.

        The report of a commit mostly comes with records that the leader waits for. Those are
        flushed and acknowledged in this event-loop iteration, before anything is replayed. A new
        leader replays immediately: it has no fetches to answer, and clients wait for its image.
        """
        progress = self._progress()
        if self._handle is not None or progress is None:
            return
        if progress.is_leader:
            self._replay()
        else:
            self._handle = self._loop.call_soon(self._replay)

    def _replay(self) -> None:
        """Replay one slice of the committed log, then yield."""
        self._handle = None
        progress = self._progress()
        if progress is None or progress.high_watermark is None or not self.is_loaded:
            return
        driver, controller, image = self._driver, self._controller, self._controller.image
        if controller.is_active or driver.exit_reason is not None or driver.has_exclusive_log:
            return
        try:
            self.log_replay.replay_slice(progress.high_watermark)
        except StorageError as error:
            driver.on_damage(str(error))
            return
        except Exception as error:
            driver.fail(error)
            return
        end = controller.end_offset
        self._images.on_successor(image)
        self._moved()
        self._leader_readiness.set_lag(progress.high_watermark - end)
        if end >= progress.high_watermark:
            if self.tally is None and end >= self._history_end():
                self.tally = controller.image.topics.tally
            self._caught_up(progress)
        elif not self.log_replay.is_waiting:
            self._handle = self._loop.call_soon(self._replay)

    def _history_end(self) -> int:
        """The offset below which records predate the start of this process.

        It is the end of the recovered log, or a higher high watermark that a leader reported.
        """
        recovered = min(self._recovered_end, self._driver.store.log.end.offset)
        return max(recovered, self._driver.core.known_high_watermark or 0)

    # --- snapshots --------------------------------------------------------------------------------

    def load(self, snapshot_id: OffsetAndEpoch) -> None:
        """Start over from a stored snapshot, in slices.

        Until it is loaded, this replica is not ready to lead (rule `unready_voter_waits`).
        """
        self._leader_readiness.set_caught_up(has_caught_up=False)
        self.log_replay.discard_partial_batch()
        self._loading = self._loop.create_task(self._load(snapshot_id))

    async def _load(self, snapshot_id: OffsetAndEpoch) -> None:
        try:
            image = await self._snapshotter.load(snapshot_id)
        except StorageError as error:
            self._driver.on_damage(str(error))
            return
        except Exception as error:
            self._driver.fail(error)
            return
        self._loading = None
        self._images.on_discarded(self._controller.image)
        self._controller.load(image)
        self.tally = None
        self._moved()
        self._leader_readiness.set_caught_up(has_caught_up=True)
        self._advance()

    async def pause(self) -> None:
        """Stop work on the storage: a fetched snapshot is about to replace the log."""
        self._is_paused = True
        self.log_replay.discard_partial_batch()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
            self._loading = None
        await self._snapshotter.abandon()

    def resume(self, installed: api.SnapshotInstalled | api.SnapshotRefused) -> None:
        """Continue from the installed snapshot, or with the existing log."""
        self._is_paused = False
        if isinstance(installed, api.SnapshotInstalled):
            self.load(installed.snapshot.snapshot_id)
            return
        newest = self._snapshotter.newest
        if newest is not None and self._controller.end_offset < newest.offset:
            self.load(newest)
        else:
            self._advance()
