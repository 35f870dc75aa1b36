"""Activates the controller on election, advances its commits, deactivates it on step-down."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft.trace_events import RoleChangeCause

if TYPE_CHECKING:
    from quorate.controller.brokers.image import Brokers
    from quorate.controller.controller import Controller
    from quorate.raft.messages import ProposalResponse
    from quorate.records.ids import Epoch, Offset, ReplyToken
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.server.memory.superseded_images import SupersededImages
    from quorate.server.metadata.read_handler import ReadHandler
    from quorate.server.metadata.write_handler import WriteHandler

log = logging.getLogger(__name__)


class Activation:
    """The leadership of one controller, and the commits in it."""

    def __init__(
        self,
        driver: RaftDriver,
        controller: Controller,
        write_handler: WriteHandler,
        read_handler: ReadHandler,
        images: SupersededImages,
    ) -> None:
        self._driver = driver
        self._controller = controller
        self._write_handler = write_handler
        self._read_handler = read_handler
        self._images = images
        # The end offset and the append time in milliseconds of each batch of this leader.
        self._timestamps: deque[tuple[Offset, int]] = deque()
        self._brokers: Brokers | None = None

    def is_due(self, progress: api.PublishProgress) -> bool:
        """True if everything in the log of this leader is committed and replayed.

        A batch that this controller proposed before a disk stall may still be in flight to the log:
        it would take the offsets of later decisions. While there is another quorum, acknowledged
        writes could be lost (rule `sole_voter_conflict`).
        """
        start, end = progress.epoch_start, self._driver.store.log.end.offset
        if (
            not progress.is_leader
            or start is None
            or self._write_handler.proposer.has_stale_proposals
        ):
            return False
        if self._driver.core.replica.second_quorum.is_met:
            return False
        return start < self._controller.end_offset == end

    def begin(self, epoch: Epoch) -> None:
        """Activate the controller; records that must come first are decided immediately."""
        controller, writing = self._controller, self._write_handler
        end, now_ms = controller.end_offset, self._driver.host.monotonic_ms()
        decision = controller.activate(epoch, end, now_ms)
        writing.begin(epoch)
        writing.decision_executor.begin(end, decision.end_offset)
        log.info("the controller is active", extra={"epoch": epoch, "offset": end})
        self._tell_brokers_support()
        if not controller.is_active:
            # Reporting brokers' support made the core resign: it had been out of contact for too
            # long.
            return
        writing.accept(decision)
        writing.periodic_tasks.begin(now_ms)

    def _tell_brokers_support(self) -> None:
        """Report the brokers' kraft.version support to the core.

        The core may not finalise a kraft.version that a registered broker cannot read.
        """
        brokers = self._controller.image.brokers
        if brokers is not self._brokers:
            self._brokers = brokers
            self._driver.deliver(api.BrokerKRaftVersions(brokers.kraft_version_max))

    # --- appends and commits ----------------------------------------------------------------------

    def appended(self, effect: api.AppendToLog, timestamp_ms: int) -> None:
        """Count the offsets that control records take."""
        if self._controller.is_active and isinstance(effect.payload, api.ControlBatch):
            self._controller.advance(effect.end.offset)
            self._timestamps.append((effect.end.offset, timestamp_ms))

    def proposed(self, token: ReplyToken, response: ProposalResponse) -> int | None:
        """Take the core's response for a batch; return how many bytes of it are in the log.

        None for a batch of an earlier leadership.
        """
        batch = self._write_handler.proposer.answered(token)
        if batch is None:
            return None
        if response.base_offset is None:
            self.step_down(batch.base_offset)
            return 0
        if response.base_offset != batch.base_offset:
            self.step_down(None)
            reason = f"a batch for {batch.base_offset} was appended at {response.base_offset}"
            self._driver.deliver(api.ResignRequested(reason, RoleChangeCause.STATE_MACHINE))
            return 0
        self._timestamps.append((batch.end_offset, batch.timestamp_ms))
        self._write_handler.appended(batch)
        return len(batch.data)

    def commit(self, high_watermark: Offset) -> None:
        """Publish what is committed by now, and complete the replies that wait for it."""
        controller, writing, image = self._controller, self._write_handler, self._controller.image
        timestamp_ms = image.position.timestamp_ms
        while self._timestamps and self._timestamps[0][0] <= high_watermark:
            timestamp_ms = self._timestamps.popleft()[1]
        controller.commit(high_watermark, timestamp_ms)
        self._images.on_successor(image)
        self._tell_brokers_support()
        writing.held.release(high_watermark)
        self._read_handler.on_image_advanced()
        writing.periodic_tasks.committed(high_watermark)
        writing.decision_executor.committed(high_watermark)
        writing.proposer.propose_if_due()

    # --- step-down --------------------------------------------------------------------------------

    def step_down_if_superseded(self, progress: api.PublishProgress) -> None:
        """Step down if this controller is active in another epoch, or no longer leads its epoch."""
        controller, writing = self._controller, self._write_handler
        led = progress.epoch if progress.is_leader else None
        if not controller.is_active or controller.epoch == led:
            return
        if controller.epoch == progress.epoch and progress.high_watermark is not None:
            # The last commit of a leader and its resignation are often one step.
            writing.held.release(progress.high_watermark)
        self.step_down(writing.proposer.base_offset)

    def deactivate_if_active(self) -> None:
        """Step down if active: the core cannot be stepped, or has ended."""
        if self._controller.is_active:
            self.step_down(self._write_handler.proposer.base_offset)

    def step_down(self, unsent_from: Offset | None) -> None:
        """Deactivate: decisions from `unsent_from` on have not happened; earlier ones may have."""
        log.info("the controller is no longer active", extra={"epoch": self._controller.epoch})
        self._write_handler.stop(unsent_from)
        self._timestamps.clear()
        self._controller.deactivate()
