"""The controller: a committed image and, while active, a speculative image ahead of it.

Usage by a driver:
- Standby: `replay` every committed batch in order, control batches without records.
- Elected, once everything below the start of the epoch is committed and replayed: `activate`.
- Active: append the records that `decide` and `expire` return as (parts of) batches at exactly
  their base offsets, call `advance` for all other appends, and `commit` when the high watermark
  rises. A reply may be sent once its `end_offset` is committed. If batches hold many decisions
  (`gathers`), call `cut` at the end of each batch.
- Leadership lost, or an append at another offset: `deactivate`, answer pending requests with
  OUTCOME_UNKNOWN, and continue with `replay`.

Reads may use `image` at any time and keep it: images are immutable.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.authorizer import UNLIMITED, Caller
from quorate.controller.authorization.request_authorization import (
    FULLY_AUTHORIZED,
    authorize_write_in_slices,
    may_whole,
)
from quorate.controller.decision import Bulk, Context, Decision, Outcome, Proposal, VolatileState
from quorate.controller.errors import NotActiveError
from quorate.controller.features.levels import METADATA_VERSION, metadata_version
from quorate.controller.image import LogPosition, MetadataDelta, MetadataImage
from quorate.controller.metadata_kinds import METADATA_KINDS
from quorate.controller.overlay import Overlay
from quorate.controller.reads import answer_in_slices
from quorate.controller.replay import SLICE_RECORDS, Replayer, replay_record_in_slices
from quorate.controller.slices import run_to_end
from quorate.records.ids import Epoch, Offset
from quorate.records.metadata import (
    METADATA_VERSION_LATEST,
    AbortTransactionRecord,
    FeatureLevelRecord,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from quorate.controller.decision import ControllerSettings
    from quorate.controller.metadata_kind import WriteOperation
    from quorate.controller.record_runs import Item
    from quorate.controller.request_types import ReadReply, ReadRequest, Sender, WriteRequest
    from quorate.controller.slices import Slices
    from quorate.records.metadata import MetadataRecord


# Due immediately.
AT_ONCE_MS: Final = 0
_WRITES: Final[Mapping[type[WriteRequest], WriteOperation]] = {
    write.request: write for subject in METADATA_KINDS for write in subject.writes
}
_ARRIVALS: Final = {
    request: write.arrived for request, write in _WRITES.items() if write.arrived is not None
}
# Periodic tasks, in the order in which they are decided.
_TIMED: Final = tuple(
    subject.periodic_task for subject in METADATA_KINDS if subject.periodic_task is not None
)
_ITSELF = Caller("User:CONTROLLER")


class Controller:
    """The state machine of one replica. Not thread-safe: one task drives it."""

    def __init__(
        self,
        settings: ControllerSettings,
        bootstrap: Sequence[MetadataRecord] = (),
        image: MetadataImage | None = None,
        *,
        gathers: bool = False,
    ) -> None:
        """Start at `image`, or before the first record.

        With `gathers` there is one image for each batch that `end_batch` ends, not for each
        decision.

        `bootstrap` are the records that the first active controller of the cluster writes. If they
        have no metadata.version, because the data directory was not formatted for the first
        controller, this release's metadata.version is added.
        """
        levels = [
            record.feature_level
            for record in bootstrap
            if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION
        ]
        if not levels:
            levels = [METADATA_VERSION_LATEST]
            newest = FeatureLevelRecord(name=METADATA_VERSION, feature_level=levels[0])
            bootstrap = (newest, *bootstrap)
        self._settings = settings
        self._bootstrap = tuple(bootstrap)
        self._bootstrap_level = levels[-1]
        self._committed = Replayer(image or MetadataImage())
        self._gathers = gathers
        self._active: _Active | None = None
        # Counts of periodic decisions by metric name; they survive loss of leadership.
        self.counted = dict.fromkeys((name for timed in _TIMED for name in timed.counts), 0)

    @property
    def image(self) -> MetadataImage:
        """The committed metadata, complete transactions only."""
        return self._committed.image

    @property
    def end_offset(self) -> Offset:
        """The offset below which all records are committed and replayed.

        In a transaction it is above the end of `image`.
        """
        return self._committed.end_offset

    @property
    def is_in_transaction(self) -> bool:
        """True if a metadata transaction is open: no snapshot is taken then."""
        return self._committed.is_in_transaction

    @property
    def is_active(self) -> bool:
        return self._active is not None

    @property
    def is_deciding(self) -> bool:
        """True if a decision is in progress, so that none may begin."""
        return self._active is not None and self._active.is_deciding

    @property
    def epoch(self) -> Epoch | None:
        """The epoch in which this controller is active; None if it is not active."""
        return None if self._active is None else self._active.epoch

    def answer_in_slices(self, request: ReadRequest, caller: Caller) -> Slices[ReadReply]:
        """Answer a read from the current committed image, with pauses for other tasks.

        Raises RefusedError.
        """
        image, authorizer = self.image, self._settings.authorizer
        rights = UNLIMITED if authorizer is None else authorizer.rights(image, caller)
        return answer_in_slices(image, request, rights)

    # --- standby ------------------------------------------------------------------------------

    def replay(
        self,
        records: Iterable[Item],
        *,
        base_offset: Offset,
        end_offset: Offset,
        epoch: Epoch,
        timestamp_ms: int,
    ) -> None:
        """Replay a committed batch; a control batch has no records but offsets.

        Raises ReplayError if it contradicts what was replayed: the process must stop then.
        """
        position = LogPosition(end_offset, epoch, timestamp_ms)
        run_to_end(self.replay_in_slices(records, base_offset=base_offset, position=position))

    def replay_in_slices(
        self, records: Iterable[Item], *, base_offset: Offset, position: LogPosition
    ) -> Slices[None]:
        """The same with pauses; it takes effect at its end, and may be abandoned before that."""
        if self._active is not None:
            raise NotActiveError("an active controller commits what it decided, it replays nothing")
        return self._committed.replay_in_slices(records, base_offset=base_offset, position=position)

    def load(self, image: MetadataImage) -> None:
        """Continue from a snapshot's image."""
        self._active = None
        self._committed = Replayer(image)

    # --- active -------------------------------------------------------------------------------

    def activate(self, epoch: Epoch, next_offset: Offset, now_ms: int) -> Decision:
        """Become active; the returned records have to be appended first, at `next_offset`.

        They abort a transaction that a predecessor left open, and write the bootstrap metadata into
        a log that has none. Raises NotActiveError if the log below is not completely replayed.
        """
        if self.end_offset != next_offset:
            raise NotActiveError(
                f"replayed up to {self.end_offset}, and the log goes on at {next_offset}"
            )
        position = self._committed.image.position
        image = self._committed.image.at(replace(position, end_offset=next_offset, epoch=epoch))
        is_bootstrapped = METADATA_VERSION in image.features
        level = metadata_version(image.features) if is_bootstrapped else self._bootstrap_level
        proposal = Proposal(level)
        if self.is_in_transaction:
            proposal.add((AbortTransactionRecord(reason="a new controller became active"),))
        if not is_bootstrapped:
            proposal.add(self._bootstrap)
        soft = VolatileState(timed.begin(image, self._settings, now_ms) for timed in _TIMED)
        self._active = _Active(epoch, image, soft, gathers=self._gathers)
        return self._active.apply_outcome(Outcome(proposal, None))

    def deactivate(self) -> None:
        """Drop all uncommitted state, and continue as a standby."""
        self._active = None

    def decide(self, request: WriteRequest, caller: Caller, now_ms: int) -> Decision:
        """Decide a request that arrives now, and count its records as appended.

        Raises NotActiveError if this controller is not active, and RefusedError for a caller that
        is authorized for no part of it.
        """
        self.hear(request, caller, now_ms)
        return run_to_end(self.decide_in_slices(request, caller, now_ms))

    def decide_in_slices(
        self, request: WriteRequest, caller: Caller, now_ms: int
    ) -> Slices[Decision]:
        """The same with pauses, after `hear`; nothing else may be decided during the pauses.

        The decision takes effect at its end, and may be abandoned before that.
        """
        active = self._required()
        assert not active.is_deciding, "another decision is under way"
        active.is_deciding = True
        try:
            write = _WRITES[type(request)]
            context = self._context(caller, now_ms)
            judged = FULLY_AUTHORIZED
            if self._settings.authorizer is not None:
                judged = yield from authorize_write_in_slices(context, write, request)
                request = judged.request
            if write.in_slices is not None:
                outcome = yield from write.in_slices(context, request)
                if judged.refused:
                    outcome = judged.complete(outcome)
                if write.uses_overlay:
                    return (yield from active.take_written(outcome))
                return (yield from active.take_in_slices(outcome))
            assert write.decide is not None, "it is decided as a whole"
            return active.apply_outcome(write.decide(context, request))
        finally:
            active.is_deciding = False

    def hear(self, request: WriteRequest, caller: Caller, now_ms: int) -> Sender | None:
        """Record the arrival of a request that shows its sender is alive, and return the sender.

        A request that will be rejected does not count. The decision itself may come later, and
        another one may be in progress. Raises NotActiveError.
        """
        arrived = _ARRIVALS.get(type(request))
        if arrived is None:
            return None
        active, authorizer = self._required(), self._settings.authorizer
        if authorizer is not None:
            rights = authorizer.rights(active.overlay.view, caller)
            if not may_whole(rights, request.permission):
                return None
        return arrived(active.soft, active.overlay.view, request, now_ms)

    def expire(self, now_ms: int, waiting: Container[Sender] = ()) -> Decision | None:
        """Decide the periodic tasks that are due, one time slice at a time; None if none are.

        If several are due, the first that has something to decide is taken. A slice that changes
        nothing has no records, and others may follow. `waiting` are the brokers whose heartbeats
        wait to be decided. Raises NotActiveError if not active.
        """
        active = self._required()
        assert not active.is_deciding, "another decision is under way"
        context = self._context(_ITSELF, now_ms, waiting)
        for timed in _TIMED:
            outcome = timed.expire(context)
            if outcome is not None:
                decision = active.apply_outcome(outcome)
                for name, count in timed.counts.items():
                    self.counted[name] += count(outcome.proposal)
                return decision if decision.values or self.wake_at_ms == AT_ONCE_MS else None
        return None

    @property
    def wake_at_ms(self) -> int | None:
        """The next time at which `expire` has work: 0 for immediately, None for never."""
        active = self._active
        if active is None:
            return None
        soft, view = active.soft, active.overlay.view
        times = (timed.wake_at_ms(soft, view) for timed in _TIMED)
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    def reset_timers(self, now_ms: int) -> None:
        """Restart the timers after a pause of this process during which it received nothing."""
        active = self._required()
        for timed in _TIMED:
            timed.renew(active.soft, active.overlay.view, now_ms)

    def advance(self, end_offset: Offset) -> None:
        """Account for records of others (control records) that were appended up to `end_offset`."""
        self._required().advance(end_offset)

    def end_batch(self, end_offset: Offset) -> None:
        """End a batch of decisions at `end_offset`; its image becomes readable at commit."""
        self._required().end_batch(end_offset)

    def commit(self, end_offset: Offset, timestamp_ms: int) -> None:
        """Handle a high watermark of `end_offset`; the last batch below has that timestamp."""
        committed = self._required().commit(end_offset)
        if committed is not None:
            below, epoch = committed.position.end_offset, committed.position.epoch
            self._committed = Replayer(committed.at(LogPosition(below, epoch, timestamp_ms)))

    def _required(self) -> _Active:
        if self._active is None:
            raise NotActiveError("this controller is not active")
        return self._active

    def _context(self, caller: Caller, now_ms: int, waiting: Container[Sender] = ()) -> Context:
        active = self._required()
        # Positional arguments are faster, and each decision makes one.
        return Context(
            active.overlay,
            active.freeze,
            active.soft,
            self._settings,
            caller,
            now_ms,
            waiting,
        )


class _Active:
    """State that only an active controller has: the speculative images and the volatile state."""

    def __init__(
        self, epoch: Epoch, image: MetadataImage, soft: VolatileState, *, gathers: bool
    ) -> None:
        self.epoch = epoch
        self.overlay = Overlay(image)
        self.soft = soft
        self._gathers = gathers
        self.is_deciding = False
        self._pending: deque[MetadataImage] = deque()

    def freeze(self) -> MetadataImage:
        """An image of everything decided so far."""
        self.end_batch(self.overlay.end_offset)
        return self.overlay.image

    @property
    def end_offset(self) -> Offset:
        """The offset of the next record."""
        return self.overlay.end_offset

    def end_batch(self, end_offset: Offset) -> None:
        """Make an image of everything below `end_offset`, for `commit`."""
        before = self.overlay.image
        image = self.overlay.freeze(end_offset, self.epoch)
        if image is not before:
            self._pending.append(image)

    def apply_outcome(self, outcome: Outcome) -> Decision:
        """Treat an outcome's records as appended, and apply its changes of volatile state."""
        return run_to_end(self.take_in_slices(outcome))

    def take_written(self, outcome: Outcome) -> Slices[Decision]:
        """The same for records that the overlay accepts; a few of them do not make an image."""
        if not self._gathers or len(outcome.proposal.values) >= SLICE_RECORDS:
            return (yield from self.take_in_slices(outcome))
        records = outcome.proposal.records
        if not self.overlay.has_room(len(records)):
            self.end_batch(self.end_offset)
        base_offset = self.end_offset
        if records:
            self.overlay.write(records)
        return self._decision(outcome, base_offset)

    def take_in_slices(self, outcome: Outcome) -> Slices[Decision]:
        """The same with pauses, in which other appends may take offsets."""
        offset = base_offset = self.end_offset
        proposal = outcome.proposal
        if proposal.values:
            delta = MetadataDelta(self.freeze())
            for item in proposal.items:
                if isinstance(item, Bulk):
                    yield
                    item.replay(delta)
                    offset = Offset(offset + len(item.values))
                    continue
                if (offset - base_offset) % SLICE_RECORDS == SLICE_RECORDS - 1:
                    yield
                # The image precedes the open transaction, so that an abort has nothing to undo.
                if not isinstance(item, AbortTransactionRecord):
                    yield from replay_record_in_slices(delta, item, offset)
                offset = Offset(offset + 1)
            base_offset = self.end_offset
            end_offset = Offset(base_offset + len(proposal.values))
            self._append(delta.apply(self._position(end_offset)))
        return self._decision(outcome, base_offset)

    def _decision(self, outcome: Outcome, base_offset: Offset) -> Decision:
        for change in outcome.soft:
            change.apply(self.soft)
        # Positional arguments, as for a context.
        return Decision(
            tuple(outcome.proposal.values),
            outcome.reply,
            base_offset,
            self.overlay.end_offset,
            bool(outcome.soft),
        )

    def advance(self, end_offset: Offset) -> None:
        self._append(self.freeze().at(self._position(end_offset)))

    def commit(self, end_offset: Offset) -> MetadataImage | None:
        """The newest image entirely below `end_offset`, if there is a new one."""
        # Otherwise decisions would reuse offsets, and would count as committed immediately.
        assert end_offset <= self.end_offset, "all that is committed was decided here or advanced"
        if end_offset == self.end_offset:
            self.end_batch(end_offset)
        newest = None
        while self._pending and self._pending[0].position.end_offset <= end_offset:
            newest = self._pending.popleft()
        return newest

    def _append(self, image: MetadataImage) -> None:
        self.overlay.reset(image)
        self._pending.append(image)

    def _position(self, end_offset: Offset) -> LogPosition:
        return LogPosition(end_offset, self.epoch, self.overlay.image.position.timestamp_ms)
