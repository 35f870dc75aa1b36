"""Proposes batches of decisions to the core (group commit).

Decisions accumulate while a batch is in flight, and then become the next batch.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from quorate.raft import api
from quorate.server.metadata.batch_accumulator import Accumulator, CutBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.decision import Decision
    from quorate.records.ids import Epoch, Offset, ReplyToken
    from quorate.server.driver.raft_driver import RaftDriver

# Seconds. Clients whose writes a commit has just acknowledged send their next ones about now, and
# reading a message takes some tens of microseconds.
QUIET_S: Final = 0.0001


class Proposer:
    """The batches of one leader. `epoch` is the one that it leads, None while it does not lead."""

    def __init__(
        self,
        driver: RaftDriver,
        *,
        linger_ms: int = 0,
        on_cut: Callable[[Offset], None] = lambda _: None,
    ) -> None:
        """Call `on_cut` with the end offset of each batch, before it is proposed."""
        self.epoch: Epoch | None = None
        self._driver = driver
        self._on_cut = on_cut
        self._linger_s = linger_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._accumulator = Accumulator()
        self._sent: dict[ReplyToken, CutBatch] = {}
        # Batches of earlier leaderships that are in flight to the log, unless the core rejects
        # them.
        self._left_behind: set[ReplyToken] = set()
        self._cut_handle: asyncio.Handle | None = None
        self._patience: asyncio.Handle | None = None
        # Counts of decisions: accumulated, in the last batch, expected, and seen at `_seen_s`.
        self._gathered = self._sent_last = self._expected = self._seen = 0
        self._seen_s = 0.0

    @property
    def base_offset(self) -> Offset | None:
        """The base offset of the accumulated decisions; None if there are none."""
        return self._accumulator.base_offset

    @property
    def has_stale_proposals(self) -> bool:
        """True if the core has yet to respond to a batch of an earlier leadership."""
        return bool(self._left_behind)

    def add(self, decision: Decision) -> None:
        """Accumulate the records of a decision that follows directly on the last one."""
        if not self._accumulator.add(decision):
            self.drain()
            is_taken = self._accumulator.add(decision)
            assert is_taken, "a batch that is empty takes any decision"
        self._gathered += 1

    def propose_if_due(self) -> None:
        """Propose the accumulated decisions as soon as a batch should be cut."""
        if self._accumulator.base_offset is None or self._cut_handle is not None:
            return
        if self._linger_s:
            self._cut_handle = self._loop.call_later(self._linger_s, self._cut_due)
        elif self._may_cut():
            # Requests that arrived in the same event-loop iteration share the batch.
            self._cut_handle = self._loop.call_soon(self._cut_due)
            self._expected = self._sent_last + self._gathered
            self._seen = 0

    def _may_cut(self) -> bool:
        """True if no batch is in flight; decisions made while one is become the next batch.

        A disk that flushes faster than followers respond would otherwise cut many small batches,
        each with its own messages and flushes on every replica. The same holds if the followers are
        faster than this disk. But what they have committed waits only briefly for this disk: it may
        be the slowest of all, or stalled (rule `disk_call_deadline`).
        """
        high_watermark = self._driver.high_watermark
        has_open = high_watermark is None or high_watermark < self._driver.store.log.end.offset
        if has_open or self._sent:
            return False
        patience_s = self._driver.access.flushing.max_wait_s
        if patience_s <= 0.0:
            return True
        if self._patience is None:
            # The end of the flush mostly comes first, and also calls `propose_if_due`.
            self._patience = self._loop.call_later(patience_s, self._lose_patience)
        return False

    def _lose_patience(self) -> None:
        self._patience = None
        self.propose_if_due()

    def _cut_due(self) -> None:
        if not self._linger_s and self._awaits_more():
            self._cut_handle = self._loop.call_soon(self._cut_due)
            return
        self._cut_handle = None
        if self._linger_s or self._may_cut():
            self.drain()

    def _awaits_more(self) -> bool:
        """True if the clients of the last batch are still sending their next requests.

        Cutting what had arrived at each commit would settle, under load, into many small batches,
        each as expensive as a large one. A single write in the last batch does not cause a wait.
        """
        if self._sent_last <= 1 or self._gathered >= self._expected:
            return False
        now_s = self._driver.host.work_s()
        if self._gathered != self._seen:
            self._seen, self._seen_s = self._gathered, now_s
        return now_s - self._seen_s < QUIET_S

    def drain(self) -> None:
        """Propose the accumulated decisions now."""
        if self._accumulator.base_offset is None or self.epoch is None:
            return
        batch = self._accumulator.cut(self._driver.host.wall_ms())
        self._on_cut(batch.end_offset)
        self._sent_last, self._gathered = self._gathered, 0
        token = self._driver.next_token()
        self._sent[token] = batch
        proposed = api.ProposedBatch(batch.data, batch.end_offset - batch.base_offset)
        self._driver.deliver(api.RecordsProposed(token, self.epoch, proposed))

    def answered(self, token: ReplyToken) -> CutBatch | None:
        """Return the batch of a response of the core; None for one of an earlier leadership."""
        self._left_behind.discard(token)
        return self._sent.pop(token, None)

    def stop(self) -> None:
        """Stop after loss of leadership: drop accumulated decisions and the batches in flight."""
        self.epoch = None
        self._accumulator.clear()
        self._gathered = self._sent_last = 0
        self._left_behind.update(self._sent)
        self._sent.clear()
        for handle in (self._cut_handle, self._patience):
            if handle is not None:
                handle.cancel()
        self._cut_handle = self._patience = None
