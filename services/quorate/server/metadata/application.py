"""Connects the metadata controller to the driver: standby replay, activation, reads and writes.

Standby: the committed log is replayed in bounded slices. Leader: once all of the log is replayed
the controller becomes active. Its decisions are accumulated into batches, and their replies are
deferred until the high watermark has passed them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.raft.messages import ProposalResponse, ReadResponse
from quorate.server.memory.superseded_images import SupersededImages
from quorate.server.metadata.activation import Activation
from quorate.server.metadata.decision_executor import AHEAD_MAX
from quorate.server.metadata.deferred_replies import leader_to_ask
from quorate.server.metadata.leader_readiness import LeaderReadiness
from quorate.server.metadata.read_handler import ReadHandler
from quorate.server.metadata.standby import Standby
from quorate.server.metadata.write_handler import WriteHandler
from quorate.server.metrics.controller_gauges import applied_offset_gauges, image_gauges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quorate.controller.authorization.authorizer import Caller
    from quorate.controller.controller import Controller
    from quorate.controller.request_types import ReadReply, ReadRequest, WriteReply, WriteRequest
    from quorate.raft import api
    from quorate.raft.messages import SnapshotInfo
    from quorate.records.ids import OffsetAndEpoch, ReplyToken
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.server.snapshots.snapshotter import Snapshotter
    from quorate.telemetry.metrics import Value


class MetadataApplication:
    """The metadata state machine of one process. Everything happens on the event loop."""

    def __init__(
        self,
        driver: RaftDriver,
        controller: Controller,
        snapshotter: Snapshotter,
        *,
        linger_ms: int = 0,
        pause_ms: int = 3000,
        ahead_max: int = AHEAD_MAX,
    ) -> None:
        self.controller = controller
        self._driver = driver
        self._snapshotter = snapshotter
        self._loop = asyncio.get_running_loop()
        self._progress: api.PublishProgress | None = None
        self._images = SupersededImages(controller, driver.host)
        snapshotter.let_go = self._images.reclaim
        self._read_handler = ReadHandler(
            driver,
            controller,
            is_loaded=lambda: self.is_loaded,
            leader=lambda: leader_to_ask(driver),
            let_go=self._images.reclaim,
        )
        self._leader_readiness = LeaderReadiness(driver.deliver)
        self._standby = Standby(
            driver,
            controller,
            snapshotter,
            self._images,
            self._leader_readiness,
            progress=lambda: self._progress,
            advance=self.on_log_changed,
            moved=self._read_handler.on_image_advanced,
            caught_up=self._caught_up,
        )
        self._write_handler = WriteHandler(
            driver,
            controller,
            self._read_handler,
            linger_ms=linger_ms,
            pause_ms=pause_ms,
            ahead_max=ahead_max,
        )
        self._activation = Activation(
            driver, controller, self._write_handler, self._read_handler, self._images
        )

    @property
    def is_loaded(self) -> bool:
        """True if the image represents this replica's log, not a partially read snapshot."""
        return self._standby.is_loaded

    def begin(self, snapshot_id: OffsetAndEpoch | None) -> None:
        """Load the newest snapshot, or replay from the log's beginning; the core has started."""
        self._standby.begin(snapshot_id)

    def metrics(self) -> Mapping[str, Value]:
        """Values for a scrape."""
        image, driver, host = self.controller.image, self._driver, self._driver.host
        return {
            **image_gauges(image, self._standby.tally),
            **applied_offset_gauges(
                image.position,
                driver.high_watermark,
                driver.core.known_high_watermark,
                wall_ms=host.wall_ms(),
                silence_ms=driver.core.last_contact.silence_ms(host.monotonic_ms()),
            ),
            **self._snapshotter.metrics(),
            **self._write_handler.metrics(),
            "active_controller": float(self.controller.is_active),
            "replay_duration_seconds": self._standby.log_replay.durations,
        }

    def set_space(self, *, is_enough: bool) -> None:
        """Note whether the disk has free space for a leader's appends."""
        self._leader_readiness.set_space(is_enough=is_enough)

    # --- called by the driver ---------------------------------------------------------------------

    def on_appended(self, effect: api.AppendToLog, timestamp_ms: int) -> None:
        """Count the offsets that control records take."""
        self._activation.appended(effect, timestamp_ms)

    def on_progress(self, progress: api.PublishProgress) -> None:
        """Step down, commit, replay or become active, as the progress requires."""
        self._progress = progress
        self._activation.step_down_if_superseded(progress)
        self.on_log_changed()

    def on_log_changed(self) -> None:
        """Commit if active, otherwise continue the replay."""
        progress = self._progress
        if progress is None or progress.high_watermark is None:
            return
        if self.controller.is_active:
            self._activation.commit(progress.high_watermark)
            self._consider_snapshot()
        else:
            self._standby.replay_committed()

    def _caught_up(self, progress: api.PublishProgress) -> None:
        if self._activation.is_due(progress):
            self._standby.log_replay.discard_partial_batch()
            self._activation.begin(progress.epoch)
        self._consider_snapshot()

    def flushed(self) -> None:
        """Propose what accumulated during the flush, if the flush committed the last batch."""
        self._write_handler.proposer.propose_if_due()
        self._consider_snapshot()

    def drain(self) -> None:
        """Propose all accumulated decisions now."""
        self._write_handler.proposer.drain()

    def on_response(self, token: ReplyToken, response: ProposalResponse | ReadResponse) -> None:
        """Take the core's response to a proposal or to a linearizable read."""
        if isinstance(response, ReadResponse):
            self._read_handler.answered(token, response)
        elif (size_bytes := self._activation.proposed(token, response)) is not None:
            self._snapshotter.on_committed(size_bytes)
        else:
            # This response may be the last thing that delayed the next activation.
            self.on_log_changed()

    def on_disk_stalled(self) -> None:
        """Refuse requests: the core cannot report the leader or commits.

        See rule `disk_call_deadline`.
        """
        self._activation.deactivate_if_active()
        self._read_handler.reject_all()

    # --- requests of clients ----------------------------------------------------------------------

    def write_all(
        self, requests: Sequence[WriteRequest], caller: Caller
    ) -> list[asyncio.Future[WriteReply]]:
        """Decide on requests in their order; each future gives a reply or ControllerApiError."""
        return self._write_handler.write(requests, caller)

    def write(self, request: WriteRequest, caller: Caller) -> asyncio.Future[WriteReply]:
        """Decide on a request; the future gives its reply or ControllerApiError."""
        (reply,) = self._write_handler.write((request,), caller)
        return reply

    async def read(
        self,
        request: ReadRequest,
        caller: Caller,
        *,
        min_offset: int,
        current: bool,
        timeout_ms: int,
        even_if_behind: bool = False,
    ) -> ReadReply:
        """Answer from the committed image. Raises ControllerApiError (see `ReadHandler.read`)."""
        return await self._read_handler.read(
            request,
            caller,
            min_offset=min_offset,
            current=current,
            timeout_ms=timeout_ms,
            even_if_behind=even_if_behind,
        )

    # --- snapshots --------------------------------------------------------------------------------

    def tick(self) -> None:
        """Run once a second: start snapshots that are due by time, or verify them again.

        A leader that waited for another quorum to end becomes active.
        """
        if not self.controller.is_active:
            self.on_log_changed()
        self._snapshotter.reverify(self._consider_snapshot)
        self._consider_snapshot()

    def _consider_snapshot(self) -> None:
        if self.is_loaded and not self.controller.is_in_transaction:
            self._snapshotter.maybe_snapshot(self.controller.image)

    def check_snapshot(self, effect: api.CheckSnapshot) -> None:
        """Verify a snapshot that a peer wants to fetch; a corrupt one may need a successor."""
        self._snapshotter.verify(effect, self._consider_snapshot)

    async def save(self) -> SnapshotInfo | None:
        """Write a snapshot of the image after the core has ended; None without a complete image."""
        if not self.is_loaded or self.controller.is_in_transaction:
            return None
        return await self._snapshotter.save(self.controller.image)

    async def suspend_storage_access(self) -> None:
        """Stop work on the storage: a fetched snapshot is about to replace the log."""
        await self._standby.pause()

    def resume_storage_access(self, installed: api.SnapshotInstalled | api.SnapshotRefused) -> None:
        """Continue from the installed snapshot, or with the existing log."""
        self._standby.resume(installed)

    async def close(self) -> None:
        """End the background work."""
        await self._snapshotter.end_checks()
        await self.suspend_storage_access()
        await self._images.close()
        self._read_handler.close()
        self._activation.deactivate_if_active()
