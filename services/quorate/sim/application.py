"""The state machine's side of a simulated process: replay, answers to clients, snapshots.

It stands where the controller stands in production, and keeps its rules: answers are released when
the high watermark passes the last record, a step-down leaves what may still commit open, and no
snapshot goes beyond what is flushed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from quorate.raft.api import (
    LogCleaned,
    ProposedBatch,
    ReadRequested,
    RecordsProposed,
    SnapshotStored,
)
from quorate.raft.messages import LogRange, ProposalResponse, ReadResponse
from quorate.records.batch import encode_batch
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset, OffsetAndEpoch, ReplyToken
from quorate.sim.contents import header_at, records_of
from quorate.sim.machine import Machine, encode_operation

if TYPE_CHECKING:
    from quorate.raft.api import CheckSnapshot, PublishProgress, RecoveredState
    from quorate.records.voters import VoterSet
    from quorate.sim.node import SimulatedNode


@dataclass(frozen=True, slots=True)
class Read:
    """A current read: what it must reflect, and from which offset on it may be answered."""

    floor: Offset
    offset: Offset = Offset(-1)


class Application:
    """One process's replica of the state machine, and the clients that wait for it."""

    def __init__(self, node: SimulatedNode, recovered: RecoveredState) -> None:
        self.node = node
        self.oracle = node.world.oracle
        self.machine = Machine()
        self.snapshot_count = 0
        self.is_snapshot_wanted = False
        self.checked: set[OffsetAndEpoch] = set()
        self.proposals: dict[ReplyToken, tuple[int, ...]] = {}
        self.appended: dict[Offset, tuple[int, ...]] = {}
        self.reads: dict[ReplyToken, Read] = {}
        self.waiting_reads: list[Read] = []
        if recovered.snapshots:
            self.load_snapshot(recovered.snapshots[-1].snapshot_id)

    def load_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Start anew from a snapshot: at start-up, or when one was fetched."""
        self.machine, _ = self.read_snapshot(snapshot_id)
        self.snapshot_count = self.machine.count

    def read_snapshot(self, snapshot_id: OffsetAndEpoch) -> tuple[Machine, VoterSet | None]:
        content = self.node.store.read_snapshot(snapshot_id)
        return Machine.load(snapshot_id.offset, content.records), content.voters

    # --- clients ----------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Whether this process takes writes: it leads and has replayed all earlier epochs."""
        progress = self.node.progress
        if progress is None or not progress.is_leader or progress.epoch_start is None:
            return False
        return self.machine.applied >= progress.epoch_start

    def propose(self, operations: tuple[int, ...], size_bytes: int) -> bool:
        """Take a client's write; False when this process is not the active one."""
        progress = self.node.progress
        if progress is None or not self.is_active:
            return False
        token = self.node.world.next_token()
        self.proposals[token] = operations
        values = [encode_operation(number, size_bytes=size_bytes) for number in operations]
        data = encode_batch(values, timestamp_ms=self.node.world.now_ms)
        batch = ProposedBatch(data, len(values))
        self.node.deliver(RecordsProposed(token, progress.epoch, batch))
        return True

    def read_current(self) -> None:
        """Take a read that must reflect everything that any client knows by now."""
        token = self.node.world.next_token()
        self.reads[token] = Read(self.oracle.read_floor)
        self.node.deliver(ReadRequested(token))

    def read_any(self, seen: Offset) -> Offset:
        """Answer a read from what this process has, unless its client has seen more already."""
        if self.machine.applied < seen:
            return seen
        self.oracle.read_answered(self.machine, seen)
        return Offset(self.machine.applied)

    def answered(self, token: ReplyToken, response: ProposalResponse | ReadResponse) -> None:
        """The core's answer to a write or a read of a client."""
        if isinstance(response, ProposalResponse):
            self._proposal_answered(self.proposals.pop(token), response)
            return
        read = self.reads.pop(token)
        if response.error is ErrorCode.NONE and response.offset is not None:
            self.waiting_reads.append(Read(read.floor, response.offset))
            self._answer_reads()

    def _proposal_answered(self, operations: tuple[int, ...], response: ProposalResponse) -> None:
        if response.last_offset is None:
            for operation in operations:
                self.oracle.was_refused(operation)
        else:
            self.appended[response.last_offset] = operations

    def process_ended(self) -> None:
        """Connections break: clients learn nothing about what was under way."""
        for operations in [*self.proposals.values(), *self.appended.values()]:
            for operation in operations:
                self.oracle.was_left_open(operation)
        self.proposals.clear()
        self.appended.clear()

    # --- replay -----------------------------------------------------------------------------------

    def progressed(self, before: PublishProgress | None, progress: PublishProgress) -> None:
        """The core published progress: settle what leadership began, replay what is committed."""
        still_leads = progress.is_leader and before is not None and progress.epoch == before.epoch
        if before is not None and before.is_leader and not still_leads:
            self._step_down()
        if progress.high_watermark is not None:
            self._replay(progress.high_watermark)
            self.maybe_snapshot()

    def _step_down(self) -> None:
        for operations in self.appended.values():
            for operation in operations:
                self.oracle.was_left_open(operation)
        self.appended.clear()

    def _replay(self, end: Offset) -> None:
        start = self.machine.applied
        if end <= start:
            return
        data = self.node.store.read_range(LogRange(Offset(start), end, 1 << 30))
        position = 0
        while position < len(data):
            size_bytes = header_at(data, position).size_bytes
            for record in records_of(data[position : position + size_bytes]):
                self.machine.apply(record.offset, record.value or b"")
            position += size_bytes
        self.machine.applied = end
        for last in [last for last in self.appended if last < end]:
            self.node.world.watch.acknowledging(self.node, Offset(last + 1))
            for operation in self.appended.pop(last):
                self.oracle.was_acknowledged(operation)
        self._answer_reads()

    def _answer_reads(self) -> None:
        for read in self.waiting_reads:
            if read.offset <= self.machine.applied:
                self.oracle.current_read_answered(self.machine, read.floor)
        self.waiting_reads = [r for r in self.waiting_reads if r.offset > self.machine.applied]

    # --- snapshots --------------------------------------------------------------------------------

    def maybe_snapshot(self) -> None:
        """Write a snapshot when enough has been applied, then clean what it replaces."""
        every = self.node.world.options.snapshot_every_records
        is_due = every > 0 and self.machine.count - self.snapshot_count >= every
        if (is_due or self.is_snapshot_wanted) and self.may_snapshot():
            self.snapshot_count = self.machine.count
            self.is_snapshot_wanted = False
            self._snapshot()

    def check_snapshot(self, effect: CheckSnapshot) -> None:
        """Read a snapshot beside everything else, before somebody fetches it (rule 30)."""
        node = self.node
        delay = node.world.draw_fsync_us()
        node.world.schedule(delay, partial(self._check, effect, node.incarnation))

    def _check(self, effect: CheckSnapshot, incarnation: int) -> None:
        node = self.node
        if node.incarnation == incarnation and node in node.world.running():
            node.guarded(partial(self._tell_check, effect))

    def _tell_check(self, effect: CheckSnapshot) -> None:
        *_, checked = self.node.store.check_snapshot(effect)
        assert checked is not None, "what was found comes last"
        self.checked.add(checked.snapshot_id)
        if checked.damage is not None:
            self.node.store.mark_unsound(checked.snapshot_id)
            self.is_snapshot_wanted = True
        self.node.deliver(checked)
        self.maybe_snapshot()

    def may_snapshot(self) -> bool:
        """Rule 15: no snapshot beyond the own flushed end."""
        return self.machine.applied <= self.node.store.log.flushed_end.offset

    def records(self) -> list[bytes]:
        return self.machine.records()

    def _snapshot(self) -> None:
        node = self.node
        offset = Offset(self.machine.applied)
        epoch = node.log.epoch_before(offset)
        assert epoch is not None, "the state machine stands at the end of a batch"
        snapshot_id = OffsetAndEpoch(epoch=epoch, offset=offset)
        info = node.store.write_snapshot(
            snapshot_id, self.records(), timestamp_ms=node.world.now_ms
        )
        node.world.watch.snapshot(node, snapshot_id)
        node.deliver(SnapshotStored(info))
        self.clean()

    def clean(self) -> None:
        """Let the storage drop what its retention no longer keeps.

        In the turn of its event, as in production: the core may name a range of the log at any
        moment before.
        """

        def work() -> LogCleaned | None:
            node = self.node
            pinned = node.core.pinned_snapshots()
            cleaned = node.store.clean(Offset(self.machine.applied), pinned=pinned)
            if cleaned is not None:
                node.world.watch.cleaned(node, cleaned)
                node.log.drop_before(cleaned.log_start)
            return cleaned

        self.node.deliver(work)
