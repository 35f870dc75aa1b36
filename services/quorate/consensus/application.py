"""The metadata controller on top of the driver: replay, activation, writes, reads, snapshots.

Standby: the committed log is read back in bounded slices. Leader: once all of it is replayed the
controller becomes active; its decisions are gathered into batches and their replies held back
until the high watermark has passed them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from quorate.api.handlers import ControllerApiError
from quorate.consensus.deciding import Asked, Deciding
from quorate.consensus.expiry import Expiry
from quorate.consensus.garbage import PassesByReplaced
from quorate.consensus.gauges import applied_numbers, image_numbers
from quorate.consensus.letting_go import LettingGo
from quorate.consensus.proposing import Proposer
from quorate.consensus.reading import Reading
from quorate.consensus.replaying import LogReplay
from quorate.consensus.replies import HeldReplies, not_controller, refuse
from quorate.raft import api
from quorate.raft.messages import LeaderInfo, ProposalResponse, ReadResponse
from quorate.raft.notes import Cause
from quorate.records.errors import ErrorCode
from quorate.storage.errors import StorageError
from quorate.telemetry import tracing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.consensus.driver import RaftDriver
    from quorate.consensus.snapshotting import Snapshotter
    from quorate.consensus.write_spans import WriteSpans
    from quorate.controller.brokers.image import Brokers
    from quorate.controller.controller import Controller
    from quorate.controller.decision import Decision
    from quorate.controller.image import MetadataImage
    from quorate.controller.replies import ReadReply, WriteReply
    from quorate.controller.requests import Caller, ReadRequest, WriteRequest
    from quorate.records.ids import Epoch, Offset, OffsetAndEpoch, ReplyToken
    from quorate.telemetry.metrics import Value

log = logging.getLogger(__name__)

# Rule 11: a replay that is further behind makes this voter wait before it campaigns.
READY_LAG_MAX: Final = 10_000


class MetadataApplication:
    """The controller's side of one process. Everything happens on the event loop."""

    def __init__(
        self,
        driver: RaftDriver,
        controller: Controller,
        snapshotter: Snapshotter,
        *,
        linger_ms: int = 0,
        pause_ms: int = 3000,
    ) -> None:
        self.controller = controller
        self._driver = driver
        self._snapshotter = snapshotter
        self._loop = asyncio.get_running_loop()
        self._progress: api.PublishProgress | None = None
        self._log_replay = LogReplay(driver, controller, snapshotter.note, self.advance)
        self._proposer = Proposer(driver, linger_ms=linger_ms, on_cut=controller.cut)
        self._timestamps: deque[tuple[Offset, int]] = deque()
        self._held = HeldReplies()
        self._letting_go = LettingGo(lambda: controller.image, driver.host.work_s)
        self._passes = PassesByReplaced(driver.host.collect_garbage)
        snapshotter.let_go = self._letting_go.take
        self._reading = Reading(
            driver,
            controller,
            is_loaded=lambda: self.is_loaded,
            leader=lambda: self._leader,
            let_go=self._letting_go.take,
        )
        self._replay_handle: asyncio.Handle | None = None
        self._loading: asyncio.Task[None] | None = None
        self._is_paused = True
        self._brokers: Brokers | None = None
        self._has_space = True
        self._has_caught_up = True
        self._is_ready = True
        self._errors = 0
        self._deciding = Deciding(
            controller,
            driver.host,
            decides=lambda: self._decides,
            decided=self._decided,
            failed=self._undecided,
            rested=lambda: self._expiry.arm(),
            broke=driver.fail,
        )
        self._expiry = Expiry(driver, controller, self._accept, pause_ms=pause_ms)
        self._spans = _make_spans()

    @property
    def is_loaded(self) -> bool:
        """Whether the image stands for this replica's log, not for a snapshot half read."""
        return self._loading is None and not self._is_paused

    @property
    def _leader(self) -> LeaderInfo:
        known = self._driver.core.replica.leader_info
        return LeaderInfo(None, known.epoch) if self._driver.is_stopping else known

    @property
    def _decides(self) -> bool:
        driver = self._driver
        return self.controller.is_active and driver.ending is None and not driver.is_stopping

    def begin(self, snapshot_id: OffsetAndEpoch | None) -> None:
        """The core has started: load the newest snapshot, or replay from the log's beginning."""
        self._is_paused = False
        if snapshot_id is not None:
            self.load(snapshot_id)
        else:
            self.advance()

    def metrics(self) -> Mapping[str, Value]:
        """Numbers for a scrape."""
        image, deciding, host = self.controller.image, self._deciding, self._driver.host
        return {
            **image_numbers(image),
            **applied_numbers(image.position, self._driver.high_watermark, host.wall_ms()),
            **self._snapshotter.metrics(),
            "active_controller_count": float(self.controller.is_active),
            "event_queue_size": deciding.queue_size,
            "event_queue_operations_started_total": deciding.asked,
            "event_queue_processing_time_seconds": deciding.durations,
            "event_queue_time_seconds": deciding.waits,
            "metadata_errors_total": self._errors + self._expiry.errors,
            "timed_out_broker_heartbeats_total": self._expiry.fenced,
            "replay_duration_seconds": self._log_replay.durations,
        }

    # --- what the driver tells --------------------------------------------------------------------

    def appended(self, effect: api.AppendToLog, timestamp_ms: int) -> None:
        """Control records take offsets too."""
        if self.controller.is_active and isinstance(effect.payload, api.ControlBatch):
            self.controller.advance(effect.end.offset)
            self._timestamps.append((effect.end.offset, timestamp_ms))

    def progressed(self, progress: api.PublishProgress) -> None:
        """Step down, commit, replay or become active, as the progress says."""
        self._progress = progress
        if self.controller.is_active and self.controller.epoch != self._led_epoch():
            if self.controller.epoch == progress.epoch and progress.high_watermark is not None:
                # The last commit of a leader and its resignation are often one step.
                self._held.release(progress.high_watermark)
            self._step_down(self._proposer.base_offset)
        self.advance()

    def _led_epoch(self) -> Epoch | None:
        progress = self._progress
        return progress.epoch if progress is not None and progress.is_leader else None

    def advance(self) -> None:
        """Commit, or replay on."""
        progress = self._progress
        if progress is None or progress.high_watermark is None:
            return
        if self.controller.is_active:
            self._commit(progress.high_watermark)
        elif self._replay_handle is None:
            self._replay()

    def flushed(self) -> None:
        """A flush is over: where that was a commit, what gathered meanwhile is the next batch."""
        self._proposer.consider()
        self._consider_snapshot()

    def tick(self) -> None:
        """Once a second: snapshots that are due by time, or to be read again."""
        self._snapshotter.recheck(self._consider_snapshot)
        self._consider_snapshot()

    # --- replay -----------------------------------------------------------------------------------

    def _replay(self) -> None:
        """One slice of the committed log, then others may run."""
        self._replay_handle = None
        progress = self._progress
        if progress is None or progress.high_watermark is None or not self.is_loaded:
            return
        driver, image = self._driver, self.controller.image
        if self.controller.is_active or driver.ending is not None or driver.has_log_alone:
            return
        try:
            self._log_replay.go_on(progress.high_watermark)
        except StorageError as error:
            self._driver.damaged(str(error))
            return
        except Exception as error:
            self._driver.fail(error)
            return
        end = self.controller.end_offset
        self._moved_on_from(image)
        self._reading.reached()
        self._set_caught_up(has_caught_up=progress.high_watermark - end <= READY_LAG_MAX)
        if end < progress.high_watermark:
            if not self._log_replay.is_waiting:
                self._replay_handle = self._loop.call_soon(self._replay)
        else:
            self._maybe_activate(progress)
            self._consider_snapshot()

    def _moved_on_from(self, image: MetadataImage) -> None:
        """What only that one holds is freed, and what took its place is looked at."""
        self._letting_go.take(image)
        self._passes.note(self.controller.image.replaced)

    def _tell_brokers_support(self) -> None:
        """The core may not finalise a kraft.version that a registered broker cannot read."""
        brokers = self.controller.image.brokers
        if brokers is not self._brokers:
            self._brokers = brokers
            self._driver.deliver(api.BrokersSupport(brokers.kraft_version_max))

    def set_space(self, *, is_enough: bool) -> None:
        """Whether the disk has room for what a leader appends."""
        self._has_space = is_enough
        self._tell_ready()

    def _set_caught_up(self, *, has_caught_up: bool) -> None:
        self._has_caught_up = has_caught_up
        self._tell_ready()

    def _tell_ready(self) -> None:
        is_ready = self._has_space and self._has_caught_up
        if is_ready != self._is_ready:
            self._is_ready = is_ready
            self._driver.deliver(api.StateMachineProgress(is_ready))

    # --- leadership -------------------------------------------------------------------------------

    def _maybe_activate(self, progress: api.PublishProgress) -> None:
        """Become active once everything in the log is committed and replayed."""
        start, end = progress.epoch_start, self._driver.store.log.end.offset
        if not progress.is_leader or start is None or self.controller.end_offset <= start:
            return
        if self.controller.end_offset != end:
            return
        self._log_replay.drop()
        now_ms = self._driver.host.monotonic_ms()
        decision = self.controller.activate(progress.epoch, end, now_ms)
        self._proposer.epoch = progress.epoch
        log.info("the controller is active", extra={"epoch": progress.epoch, "offset": end})
        self._tell_brokers_support()
        self._accept(decision)
        self._expiry.begin()

    def _commit(self, high_watermark: Offset) -> None:
        image = self.controller.image
        timestamp_ms = image.position.timestamp_ms
        while self._timestamps and self._timestamps[0][0] <= high_watermark:
            timestamp_ms = self._timestamps.popleft()[1]
        self.controller.commit(high_watermark, timestamp_ms)
        self._moved_on_from(image)
        self._tell_brokers_support()
        self._held.release(high_watermark)
        self._reading.reached()
        self._expiry.committed(high_watermark)
        self._proposer.consider()
        self._consider_snapshot()

    def _step_down(self, unsent_from: Offset | None) -> None:
        log.info("the controller is no longer active", extra={"epoch": self.controller.epoch})
        self._held.fail(self._leader, unsent_from=unsent_from)
        self._proposer.stop()
        for asked in self._deciding.stop():
            refuse(asked.future, not_controller(self._leader, "this controller stopped leading"))
        self._timestamps.clear()
        self.controller.deactivate()
        self._expiry.stop()

    # --- writes -----------------------------------------------------------------------------------

    def write(self, request: WriteRequest, caller: Caller) -> asyncio.Future[WriteReply]:
        """Decide on a request; the future is its reply, or ControllerApiError."""
        future: asyncio.Future[WriteReply] = self._loop.create_future()
        if not self._decides:
            refuse(future, not_controller(self._leader, "this controller is not active"))
            return future
        if self._spans is not None:
            self._spans.asked(future)
        self._deciding.take(Asked(request, caller, future))
        return future

    def _decided(self, asked: Asked, decision: Decision) -> None:
        request = asked.request
        if self._spans is not None:
            self._spans.decided(asked, decision)
        if not (request.has_to_be_true and self._is_settled(decision)):
            self._accept(decision, asked.future)
        elif decision.reply is not None:
            self._confirm(decision.reply, asked.future)
        if decision.changes_soft:
            self._expiry.arm()

    def _undecided(self, asked: Asked, error: Exception) -> None:
        """Nothing was counted as appended, so that it ends this request only (rule 28)."""
        self._errors += 1
        kind = type(asked.request).__name__
        about = {"repeats": (kind, type(error))}
        log.error("no decision on %s", kind, exc_info=error, extra=about)
        message = f"the controller could not decide on this {kind}: {type(error).__name__}"
        refuse(asked.future, ControllerApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message))

    def _is_settled(self, decision: Decision) -> bool:
        """Whether all that the decision rests on is committed, so that no commit vouches for it."""
        high_watermark = self._driver.high_watermark
        return high_watermark is not None and decision.end_offset <= high_watermark

    def _confirm(self, reply: WriteReply, future: asyncio.Future[WriteReply]) -> None:
        """Answer without records, once a majority has said that this controller still leads.

        A refusal, or a change to what is set already, tells how the metadata is: a leader that was
        cut off may not know any more. A heartbeat tells nothing that somebody could miss.
        """
        token, read = self._reading.begin()

        def confirmed(read: asyncio.Future[ReadResponse]) -> None:
            self._reading.forget(token)
            if future.done():
                return
            if read.cancelled():
                refuse(future, not_controller(self._leader, "this controller stopped"))
            elif (response := read.result()).offset is None:
                message = "this controller may not lead any more"
                refuse(future, not_controller(response.leader, message))
            else:
                future.set_result(reply)

        read.add_done_callback(confirmed)

    def _accept(self, decision: Decision, future: asyncio.Future[WriteReply] | None = None) -> None:
        if decision.values:
            self._proposer.gather(decision)
        if future is not None and decision.reply is not None:
            self._held.hold(decision.end_offset, decision.reply, future)
            if self._driver.high_watermark is not None:
                self._held.release(self._driver.high_watermark)
        self._proposer.consider()

    def drain(self) -> None:
        """Propose what has gathered."""
        self._proposer.drain()

    def answered(self, token: ReplyToken, response: ProposalResponse | ReadResponse) -> None:
        """The core's answer to a proposal or to a current read."""
        if isinstance(response, ReadResponse):
            self._reading.answered(token, response)
            return
        batch = self._proposer.answered(token)
        if batch is None:
            return
        if response.base_offset is None:
            self._step_down(batch.base_offset)
        elif response.base_offset != batch.base_offset:
            self._step_down(None)
            reason = f"a batch for {batch.base_offset} was appended at {response.base_offset}"
            self._driver.deliver(api.ResignRequested(reason, Cause.STATE_MACHINE))
        else:
            self._timestamps.append((batch.end_offset, batch.timestamp_ms))
            self._snapshotter.note(len(batch.data))
            if self._spans is not None:
                self._spans.appended(batch)

    # --- reads ------------------------------------------------------------------------------------

    async def read(
        self,
        request: ReadRequest,
        *,
        min_offset: int,
        current: bool,
        timeout_ms: int,
        even_if_behind: bool = False,
    ) -> ReadReply:
        """Answer from the committed image. Raises ControllerApiError (see `Reading.read`)."""
        return await self._reading.read(
            request,
            min_offset=min_offset,
            current=current,
            timeout_ms=timeout_ms,
            even_if_behind=even_if_behind,
        )

    # --- snapshots --------------------------------------------------------------------------------

    def _consider_snapshot(self) -> None:
        if self.is_loaded and not self.controller.is_in_transaction:
            self._snapshotter.consider(self.controller.image)

    def check_snapshot(self, effect: api.CheckSnapshot) -> None:
        """Somebody wants to fetch a snapshot: is it sound? A successor may be due at once."""
        self._snapshotter.check(effect, self._consider_snapshot)

    def load(self, snapshot_id: OffsetAndEpoch) -> None:
        """Start over from a stored snapshot, in slices; not ready to lead meanwhile (rule 11)."""
        self._set_caught_up(has_caught_up=False)
        self._log_replay.drop()
        self._loading = self._loop.create_task(self._load(snapshot_id))

    async def _load(self, snapshot_id: OffsetAndEpoch) -> None:
        try:
            image = await self._snapshotter.load(snapshot_id)
        except StorageError as error:
            self._driver.damaged(str(error))
            return
        except Exception as error:
            self._driver.fail(error)
            return
        self._loading = None
        self._letting_go.take(self.controller.image, is_other=True)
        self.controller.load(image)
        self._reading.reached()
        self._set_caught_up(has_caught_up=True)
        self.advance()

    async def pause(self) -> None:
        """A fetched snapshot is about to replace the log."""
        self._is_paused = True
        self._log_replay.drop()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
            self._loading = None
        await self._snapshotter.abandon()

    def resume(self, installed: api.SnapshotInstalled | api.SnapshotRefused) -> None:
        """Go on from the installed snapshot, or with what there was."""
        self._is_paused = False
        if isinstance(installed, api.SnapshotInstalled):
            self.load(installed.snapshot.snapshot_id)
        else:
            newest = self._snapshotter.newest
            if newest is not None and self.controller.end_offset < newest.offset:
                self.load(newest)
            else:
                self.advance()

    def disk_hangs(self) -> None:
        """The core cannot tell who leads or what is committed: refuse what is asked (rule 24)."""
        self._give_up()
        self._reading.refuse_all()

    def _give_up(self) -> None:
        if self.controller.is_active:
            self._step_down(self._proposer.base_offset)

    async def close(self) -> None:
        """End what runs in the background."""
        await self._snapshotter.end_checks()
        await self.pause()
        await self._letting_go.close()
        self._reading.close()
        self._give_up()


def _make_spans() -> WriteSpans | None:
    """What makes spans of changes; None where tracing is off."""
    active = tracing.active()
    if active is None:
        return None
    from quorate.consensus.write_spans import WriteSpans

    return WriteSpans(active)
