"""Scans the whole log at startup and finds the first inconsistency.

A CRC covers the content of a batch, not its base offset and epoch, which precede it. Offsets must
be contiguous, from the segment's name on. The epoch must rise at a LeaderChange and nowhere else,
must never fall, must agree with the epoch history and with the flushed end, and must not exceed the
epoch of quorum-state (rules `flushed_end_file` and `log_generation`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.raft.messages import EpochStart
from quorate.raft.replication.batch_validation import begins_epoch, epoch_problem
from quorate.records.batch import CorruptBatchError
from quorate.records.codec.schema import SchemaError
from quorate.records.control import control_records
from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.records.value_types import value_type
from quorate.storage.errors import StorageError
from quorate.storage.log.batch_scanner import resync_batches, scan_batches

if TYPE_CHECKING:
    from quorate.records.control import ControlRecord
    from quorate.storage.flushed_end import FlushedEnd
    from quorate.storage.log.batch_scanner import FileBatch
    from quorate.storage.log.segment import Segment

# Bytes: length, attributes, both deltas, key, value and headers take at least one each.
RECORD_BYTES_MIN: Final = 7
# An epoch that only one batch shows may be a flipped bit: it is accepted up to this far above what
# else is known. A quorum recovery raises the epoch by as much.
EPOCHS_AHEAD_MAX: Final = 1000


@value_type
class Problem:
    """The first inconsistency of the log.

    `segment` indexes the segments that were scanned. `may_be_torn` is False if every byte is valid
    and yet the batch does not belong here: an interrupted write does not leave that.
    """

    segment: int
    position: int
    reason: str
    may_be_torn: bool


@dataclass(slots=True)
class KnownEpochs:
    """Sources other than the log for the epochs of its offsets.

    `base_epoch` is the epoch below the first segment, None if unknown; `epochs` the epoch history;
    `quorum_epoch` that of quorum-state.
    """

    base_epoch: Epoch | None
    quorum_epoch: Epoch
    flushed: FlushedEnd | None = None
    epochs: tuple[EpochStart, ...] = ()

    @property
    def epoch_max(self) -> Epoch:
        """The highest epoch in any of the sources."""
        known = [self.quorum_epoch, *(entry.epoch for entry in self.epochs)]
        return max(known if self.flushed is None else [*known, self.flushed.end.epoch])


class Boundary(NamedTuple):
    """The log up to the end of one batch."""

    end: OffsetAndEpoch
    crc: int | None
    segment: int
    position: int
    epochs: int
    controls: int


class _Disputed(NamedTuple):
    """A batch that begins an epoch for which the epoch history has another number."""

    epoch: int
    before: Boundary
    problem: Problem


@dataclass(slots=True)
class ScannedLog:
    """The consistent part: everything below `end`, which is `position` in segment `segment`.

    `doubted` is the end of the log including a last batch whose epoch no other source confirms.
    """

    segments: list[Segment]
    first: Offset
    end: OffsetAndEpoch
    last_crc: int | None = None
    segment: int = 0
    position: int = 0
    epochs: list[EpochStart] = field(default_factory=list)
    controls: list[tuple[Offset, ControlRecord]] = field(default_factory=list)
    problem: Problem | None = None
    doubted: OffsetAndEpoch | None = None

    @property
    def has_batches(self) -> bool:
        return self.end.offset > self.first

    def epoch_before(self, offset: int) -> Epoch | None:
        """The epoch of the record just below `offset`; None if it was not scanned."""
        if not self.first < offset <= self.end.offset:
            return None
        return next(e.epoch for e in reversed(self.epochs) if e.start_offset < offset)


def scan_log(segments: list[Segment], known_epochs: KnownEpochs) -> ScannedLog:
    """Scan `segments`, lowest offset first, up to the first problem."""
    return _Scanner(segments, known_epochs).run()


class _Misplaced(Exception):
    """A batch that is valid, but does not belong where it is."""


class _WrongEpoch(_Misplaced):
    """Its epoch contradicts the previous batch; either of the two may be wrong."""


class _Scanner:
    def __init__(self, segments: list[Segment], known_epochs: KnownEpochs) -> None:
        first = segments[0].base_offset if segments else Offset(0)
        base_epoch = known_epochs.base_epoch
        self.log = ScannedLog(
            segments, first, OffsetAndEpoch(epoch=base_epoch or Epoch(0), offset=first)
        )
        if first > 0 and base_epoch is not None:
            self.log.epochs.append(EpochStart(base_epoch, Offset(first - 1)))
        self.flushed, self.epoch_max = known_epochs.flushed, known_epochs.epoch_max
        self.recorded = {entry.start_offset: entry.epoch for entry in known_epochs.epochs}
        self.is_epoch_known = base_epoch is not None
        self.may_be_wrong = False
        self.last_position = 0
        self.disputed: _Disputed | None = None
        self.before = self._boundary()

    def run(self) -> ScannedLog:
        for index, segment in enumerate(self.log.segments):
            position = 0
            try:
                if segment.base_offset != self.log.end.offset and segment.size_bytes:
                    raise _Misplaced(f"begins at offset {segment.base_offset}")  # noqa: TRY301
                for batch in scan_batches(segment.file, segment.size_bytes):
                    position = batch.position
                    self._take(index, batch)
            except CorruptBatchError as error:
                self.log.problem = Problem(index, error.position, error.reason, may_be_torn=True)
            except _Misplaced as error:
                reason = f"{error}, where the log goes on at {self.log.end}"
                if isinstance(error, _WrongEpoch) and self.may_be_wrong:
                    self._cut(self.before)
                self.log.problem = Problem(index, position, reason, may_be_torn=False)
            if self.log.problem is not None:
                break
        self._give_up_disputed()
        self._doubt_last()
        return self.log

    def _give_up_disputed(self) -> None:
        """End the log before a batch that alone shows another epoch than the epoch history.

        One of the two has flipped, and a log with a wrong epoch would win elections.
        """
        if self.disputed is not None:
            self._cut(self.disputed.before)
            self.log.problem = self.disputed.problem

    def _doubt_last(self) -> None:
        """Drop a last epoch that begins with the last batch and that no other source knows.

        A log with such an epoch would win elections, and it may be a flipped bit.
        """
        log, known = self.log, self.epoch_max
        if not self.may_be_wrong or log.end.epoch <= known:
            return
        if log.end.epoch - known <= EPOCHS_AHEAD_MAX:
            log.doubted = log.end
        else:
            log.doubted = OffsetAndEpoch(epoch=known, offset=log.end.offset)
        segment, end = log.segment, log.end
        self._cut(self.before)
        if log.problem is None:
            reason = f"a batch of epoch {end.epoch}, above {known}: nothing else knows that epoch"
            log.problem = Problem(segment, self.last_position, reason, may_be_torn=False)

    def _take(self, index: int, batch: FileBatch) -> None:
        log, header = self.log, batch.header
        if header.base_offset != log.end.offset:
            raise _Misplaced(f"offset {header.base_offset}")
        try:
            controls = control_records(batch.buffer, batch.at, header)
        except SchemaError as error:
            path = log.segments[index].path
            raise StorageError(
                f"{path}: a control record at byte {batch.position} cannot be read ({error}). It "
                "checks, so a newer release may have written it: start that release here"
            ) from error
        starts_epoch = begins_epoch(controls)
        self._settle_dispute(header.epoch, starts_epoch=starts_epoch)
        self._check_epoch(header.epoch, starts_epoch=starts_epoch)
        self.before = self._boundary()
        recorded = self.recorded.get(Offset(header.base_offset), header.epoch)
        if starts_epoch and header.epoch != recorded:
            reason = (
                f"epoch {header.epoch}, but {recorded} in the epoch history, where the log goes on "
                f"at {log.end}"
            )
            problem = Problem(index, batch.position, reason, may_be_torn=False)
            self.disputed = _Disputed(header.epoch, self.before, problem)
        self.may_be_wrong = not log.epochs or header.epoch != log.epochs[-1].epoch
        if self.may_be_wrong:
            log.epochs.append(EpochStart(Epoch(header.epoch), Offset(header.base_offset)))
            self.may_be_wrong = Offset(header.base_offset) not in self.recorded
        self.is_epoch_known = True
        log.controls += [
            (Offset(offset), record) for offset, record in enumerate(controls, header.base_offset)
        ]
        log.end = OffsetAndEpoch(epoch=Epoch(header.epoch), offset=Offset(header.last_offset + 1))
        log.last_crc, log.segment = header.crc, index
        self.last_position = batch.position
        log.position = batch.position + header.size_bytes
        log.segments[index].index(header.base_offset, batch.position)
        self._check_flushed(header.base_offset)

    def _check_epoch(self, epoch: int, *, starts_epoch: bool) -> None:
        last = self.log.end.epoch
        known = self.epoch_max
        if epoch > max(known, last) and not starts_epoch:
            raise _Misplaced(f"epoch {epoch}, above {known}, without a LeaderChange")
        problem = epoch_problem(last, epoch, begins_epoch=starts_epoch)
        if self.is_epoch_known and problem is not None:
            raise _WrongEpoch(problem)

    def _settle_dispute(self, epoch: int, *, starts_epoch: bool) -> None:
        """Settle a dispute at the next batch: if it has the same epoch, the epoch history is wrong.

        The caller then compares the two histories as a whole, and refuses the directory.
        """
        if self.disputed is not None:
            if starts_epoch or epoch != self.disputed.epoch:
                raise _Misplaced(f"epoch {epoch}")
            self.disputed = None

    def _check_flushed(self, base_offset: int) -> None:
        """Verify that the batch below the flushed end is the one that was flushed."""
        flushed, end = self.flushed, self.log.end
        if flushed is None or not base_offset < flushed.end.offset <= end.offset:
            return
        is_same = end == flushed.end and self.log.last_crc == flushed.last_crc
        if flushed.last_crc is not None and not is_same:
            self._cut(self.before)
            raise _Misplaced(f"a batch that ends at {end}, but {flushed.end} was flushed")
        # The flushed end has confirmed this batch: a source that contradicts it is wrong.
        self.may_be_wrong = False
        self.disputed = None

    def _cut(self, to: Boundary) -> None:
        log = self.log
        log.end, log.last_crc, log.segment, log.position = to.end, to.crc, to.segment, to.position
        del log.epochs[to.epochs :], log.controls[to.controls :]
        self.may_be_wrong = False

    def _boundary(self) -> Boundary:
        log = self.log
        return Boundary(
            log.end, log.last_crc, log.segment, log.position, len(log.epochs), len(log.controls)
        )


def find_resync_end(log: ScannedLog, epoch_max: Epoch) -> OffsetAndEpoch | None:
    """Return the end of the valid batches behind the problem; None if there are none.

    The CRC does not cover offsets and epochs, so impossible ones are rejected: an epoch that
    neither `epoch_max` covers nor two consecutive batches show, or more offsets than records fit
    into the bytes.
    """
    problem = log.problem
    if problem is None:
        return None
    found: OffsetAndEpoch | None = None
    end, epoch = int(log.end.offset), int(log.end.epoch)
    passed_bytes, epoch_of_last = 0, epoch
    for index in range(problem.segment, len(log.segments)):
        segment = log.segments[index]
        start = problem.position if index == problem.segment else 0
        for batch in resync_batches(segment.file, segment.size_bytes, start):
            header = batch.header
            bytes_before = passed_bytes + batch.position - start
            highest = log.end.offset + bytes_before // RECORD_BYTES_MIN
            is_known = header.epoch <= epoch_max or header.epoch == epoch_of_last
            epoch_of_last = header.epoch
            if end <= header.base_offset <= highest and is_known:
                end, epoch = header.last_offset + 1, max(epoch, header.epoch)
                found = OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(end))
        passed_bytes += segment.size_bytes - start
    return found
