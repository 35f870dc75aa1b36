"""Handles metadata writes: decide, batch, reply after commit."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from quorate.api.handlers import ControllerApiError
from quorate.controller.errors import RefusedError
from quorate.records.errors import ErrorCode
from quorate.server.metadata.decision_executor import DecisionExecutor
from quorate.server.metadata.decision_queue import QueuedRequest
from quorate.server.metadata.deferred_replies import (
    DeferredReplies,
    Refusals,
    fail_request,
    leader_to_ask,
    not_controller,
)
from quorate.server.metadata.periodic_tasks import PeriodicTasks
from quorate.server.metadata.proposer import Proposer
from quorate.telemetry import tracing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quorate.controller.authorization.authorizer import Caller
    from quorate.controller.controller import Controller
    from quorate.controller.decision import Decision
    from quorate.controller.request_types import WriteReply, WriteRequest
    from quorate.raft.messages import ReadResponse
    from quorate.records.ids import Epoch, Offset
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.server.metadata.batch_accumulator import CutBatch
    from quorate.server.metadata.read_handler import ReadHandler
    from quorate.server.tracing.write_spans import WriteSpans
    from quorate.telemetry.metrics import Value

log = logging.getLogger(__name__)


class WriteHandler:
    """The writes of one controller while it is active, periodic decisions included."""

    def __init__(
        self,
        driver: RaftDriver,
        controller: Controller,
        read_handler: ReadHandler,
        *,
        linger_ms: int,
        pause_ms: int,
        ahead_max: int,
    ) -> None:
        self._driver = driver
        self._controller = controller
        self._read_handler = read_handler
        self._loop = asyncio.get_running_loop()
        self.proposer = Proposer(driver, linger_ms=linger_ms, on_cut=controller.end_batch)
        self.held = DeferredReplies()
        self._refusals = Refusals()
        self.decision_executor = DecisionExecutor(
            controller,
            driver.host,
            decides=lambda: self.accepts_writes,
            decided=self._decided,
            failed=self._undecided,
            rested=lambda: self.periodic_tasks.catch_up(),
            broke=driver.fail,
            ahead_max=ahead_max,
        )
        self.periodic_tasks = PeriodicTasks(
            driver, controller, self.decision_executor.queue, self.accept, pause_ms=pause_ms
        )
        self._spans = _make_spans(driver)
        self._errors = 0

    @property
    def accepts_writes(self) -> bool:
        """True if this controller accepts writes now."""
        driver = self._driver
        return self._controller.is_active and driver.exit_reason is None and not driver.is_stopping

    def metrics(self) -> Mapping[str, Value]:
        """Values for a scrape."""
        deciding = self.decision_executor
        return {
            "event_queue_size": deciding.queue_size,
            "event_queue_operations_started_total": deciding.asked,
            "event_queue_processing_time_seconds": deciding.durations,
            "event_queue_time_seconds": deciding.waits,
            "metadata_errors_total": self._errors + self.periodic_tasks.errors,
            **self._controller.counted,
        }

    # --- decisions --------------------------------------------------------------------------------

    def write(
        self, requests: Sequence[WriteRequest], caller: Caller
    ) -> list[asyncio.Future[WriteReply]]:
        """Decide on requests in their order; heartbeats may be decided earlier.

        Each future gives a reply or ControllerApiError.
        """
        make = self._loop.create_future
        futures: list[asyncio.Future[WriteReply]] = [make() for _ in requests]
        if not self.accepts_writes:
            info = leader_to_ask(self._driver)
            second_quorum = self._driver.core.replica.second_quorum.remark()
            why = second_quorum or "this controller is not active"
            for future in futures:
                fail_request(future, not_controller(info, why))
            return futures
        if self._spans is not None:
            for future in futures:
                self._spans.asked(future)
        # After a pause, sessions restart before a request is decided by them.
        now_ms, now_s = self.periodic_tasks.look(), self._driver.host.work_s()
        hear = self._controller.hear
        asked = [
            QueuedRequest(each, caller, future, now_s, sender=hear(each, caller, now_ms))
            for each, future in zip(requests, futures, strict=True)
        ]
        self.decision_executor.enqueue(asked)
        return futures

    def _decided(self, asked: QueuedRequest, decision: Decision) -> None:
        if self._spans is not None:
            self._spans.decided(asked, decision)
        reply, future = decision.reply, asked.future
        if not self._is_settled(decision):
            self.accept(decision, future)
        elif reply is not None and asked.request.has_to_be_true:
            self._confirm(reply, future)
        elif reply is not None and not future.done():
            future.set_result(reply)
        if decision.changes_soft:
            self.periodic_tasks.arm()

    def _undecided(self, asked: QueuedRequest, error: Exception) -> None:
        """Reject the request, or report its failed decision; nothing was counted as appended.

        A defect therefore ends this request only (rule `input_bounds`).
        """
        if isinstance(error, RefusedError):
            fail_request(asked.future, ControllerApiError(error.error, error.message))
            return
        self._errors += 1
        kind = type(asked.request).__name__
        about = {"repeats": (kind, type(error))}
        log.error("no decision on %s", kind, exc_info=error, extra=about)
        message = f"the controller could not decide on this {kind}: {type(error).__name__}"
        fail_request(asked.future, ControllerApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message))

    def _is_settled(self, decision: Decision) -> bool:
        """True if all that the decision rests on is committed; no later commit confirms it."""
        high_watermark = self._driver.high_watermark
        return high_watermark is not None and decision.end_offset <= high_watermark

    def _confirm(self, reply: WriteReply, future: asyncio.Future[WriteReply]) -> None:
        """Answer without records, after a majority has confirmed that this controller still leads.

        A rejection, or a change to a value that is set already, reports the state of the metadata:
        a leader that was cut off may not know it any more. The reply to a heartbeat reports nothing
        of that kind.
        """
        token, read = self._read_handler.begin()

        def confirmed(read: asyncio.Future[ReadResponse]) -> None:
            self._read_handler.cancel(token)
            if future.done():
                return
            if read.cancelled():
                info = leader_to_ask(self._driver)
                fail_request(future, not_controller(info, "this controller stopped"))
            elif (response := read.result()).offset is None:
                message = "this controller may not lead any more"
                fail_request(future, not_controller(response.leader, message))
            else:
                future.set_result(reply)

        read.add_done_callback(confirmed)

    # --- into the log -----------------------------------------------------------------------------

    def accept(self, decision: Decision, future: asyncio.Future[WriteReply] | None = None) -> None:
        """Accumulate a decision for the next batch, and complete `future` when it is committed."""
        if decision.values:
            self.proposer.add(decision)
        if future is not None and decision.reply is not None:
            self.held.defer(decision.end_offset, decision.reply, future)
        self.proposer.propose_if_due()

    def appended(self, batch: CutBatch) -> None:
        """Note that the core has appended a batch."""
        if self._spans is not None:
            self._spans.appended(batch)

    def begin(self, epoch: Epoch) -> None:
        """Propose the decisions accumulated from here on in `epoch`."""
        self.proposer.epoch = epoch

    def stop(self, unsent_from: Offset | None) -> None:
        """Stop when no longer active: the outcome of what was proposed is unknown.

        See rule `stream_responses`.
        """
        sent, unsent = self.held.clear(unsent_from=unsent_from)
        self.proposer.stop()
        unsent += [asked.future for asked in self.decision_executor.stop()]
        self.periodic_tasks.stop()
        self._refusals.begin(leader_to_ask(self._driver), sent, unsent)


def _make_spans(driver: RaftDriver) -> WriteSpans | None:
    """Create the observer for spans of writes; None if tracing is off."""
    active = tracing.active()
    if active is None:
        return None
    from quorate.server.tracing.write_spans import WriteSpans

    spans = WriteSpans(active, driver.core.replica)
    driver.observers.add(spans)
    return spans
