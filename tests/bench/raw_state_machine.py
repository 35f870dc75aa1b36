"""A state machine for opaque records, for measurements of consensus without metadata.

Nothing is replayed and nothing is snapshotted, so a directory of this kind keeps its whole log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from quorate.controller.decision import Decision
from quorate.raft import api
from quorate.raft.messages import ProposalResponse
from quorate.raft.trace_events import RoleChangeCause
from quorate.records.batch import BATCH_BYTES_MAX
from quorate.records.ids import Offset
from quorate.server.metadata.proposer import Proposer
from quorate.server.snapshots.verifier import SnapshotVerifier
from tests.bench.raw_servicer import RawLogError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.raft.messages import ReadResponse, SnapshotInfo
    from quorate.records.ids import OffsetAndEpoch, ReplyToken
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.telemetry.metrics import Value
    from tests.bench.raw_servicer import Waiter

log = logging.getLogger(__name__)
# Leaves room for what a batch holds in addition to the values.
APPEND_BYTES_MAX = BATCH_BYTES_MAX // 2


class RawApplication:
    """The state machine that has no state. Everything happens on the event loop."""

    def __init__(self, driver: RaftDriver, *, linger_ms: int = 0) -> None:
        self._driver = driver
        self._proposer = Proposer(driver, linger_ms=linger_ms)
        self._end = Offset(0)
        self._waiters: dict[Waiter, None] = {}
        self._checks = SnapshotVerifier(driver, driver.deliver)

    @property
    def is_loaded(self) -> bool:
        """There is nothing to load."""
        return True

    def begin(self, snapshot_id: OffsetAndEpoch | None) -> None:
        """Nothing to do: what the log holds is not read."""

    def tick(self) -> None:
        """Nothing is due by time."""

    def set_space(self, *, is_enough: bool) -> None:
        """A full disk ends a measurement by itself."""

    async def save(self) -> SnapshotInfo | None:
        """No image, so that nothing can be saved."""
        return None

    def metrics(self) -> Mapping[str, Value]:
        """Numbers for a scrape."""
        return {"active_controller": float(self._proposer.epoch is not None)}

    # --- what clients ask -------------------------------------------------------------------------

    def append(self, values: tuple[bytes, ...]) -> int:
        """Append records in one batch.

        Returns their end offset: they are committed once the high watermark has reached it. Raises
        RawLogError if this replica does not lead, or if they have too many bytes.
        """
        if self._proposer.epoch is None or self._driver.is_stopping:
            raise RawLogError("this replica does not lead: ask another", is_here=False)
        if not values or sum(map(len, values)) > APPEND_BYTES_MAX:
            raise RawLogError(f"records: send 1 or more, of {APPEND_BYTES_MAX} bytes at most")
        base = self._end
        self._end = end = Offset(base + len(values))
        self._proposer.add(Decision(values, None, base, end))
        self._proposer.propose_if_due()
        return end

    def watch(self, waiter: Waiter) -> None:
        """Notify a waiter of every commit from now on."""
        self._waiters[waiter] = None

    def unwatch(self, waiter: Waiter) -> None:
        """Stop notifying a waiter."""
        self._waiters.pop(waiter, None)

    # --- calls of the driver ----------------------------------------------------------------------

    def on_appended(self, effect: api.AppendToLog, timestamp_ms: int) -> None:
        """Control records take offsets too."""
        del timestamp_ms
        if self._proposer.epoch is not None and isinstance(effect.payload, api.ControlBatch):
            self._end = effect.end.offset

    def on_progress(self, progress: api.PublishProgress) -> None:
        """Step down, commit, or begin to take records."""
        epoch = progress.epoch if progress.is_leader else None
        if self._proposer.epoch is not None and self._proposer.epoch != epoch:
            self._step_down()
        start, high_watermark = progress.epoch_start, progress.high_watermark
        if epoch is None or start is None or high_watermark is None or high_watermark <= start:
            return
        if self._proposer.epoch is None:
            self._end = self._driver.store.log.end.offset
            self._proposer.epoch = epoch
            log.info("takes records", extra={"epoch": epoch, "offset": self._end})
        for waiter in tuple(self._waiters):
            waiter.committed(high_watermark)
        self._proposer.propose_if_due()

    def on_response(self, token: ReplyToken, response: ProposalResponse | ReadResponse) -> None:
        """Step down if the batch was rejected or appended at another offset than expected."""
        assert isinstance(response, ProposalResponse)
        batch = self._proposer.answered(token)
        if batch is not None and response.base_offset != batch.base_offset:
            self._step_down()
            if response.base_offset is not None:
                reason = f"a batch for {batch.base_offset} lies at {response.base_offset}"
                self._driver.deliver(api.ResignRequested(reason, RoleChangeCause.STATE_MACHINE))

    def flushed(self) -> None:
        """Propose what has gathered since as the next batch."""
        self._proposer.propose_if_due()

    def drain(self) -> None:
        """Propose what has gathered."""
        self._proposer.drain()

    def check_snapshot(self, effect: api.CheckSnapshot) -> None:
        """Verify a snapshot; a directory has one only if a controller with metadata has used it."""
        self._checks.begin(effect)

    async def suspend_storage_access(self) -> None:
        """Nothing here reads the storage."""

    def resume_storage_access(self, installed: api.SnapshotInstalled | api.SnapshotRefused) -> None:
        """Nothing to load again."""

    def on_disk_stalled(self) -> None:
        """Ignore it: commits cannot be reported."""
        self._step_down()

    def on_log_changed(self) -> None:
        """Ignore it: the content of the log does not matter here."""

    async def close(self) -> None:
        """End what clients wait for."""
        await self._checks.end()
        self._step_down()

    def _step_down(self) -> None:
        self._proposer.stop()
        for waiter in tuple(self._waiters):
            waiter.lost()
