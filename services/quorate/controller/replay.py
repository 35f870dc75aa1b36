"""Applies records to images, on leader and standby alike, honouring transactions (KIP-868).

State changes only by replay. Records between Begin and End become visible atomically at the End, or
never if an Abort follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.errors import ReplayError
from quorate.controller.image import LogPosition, MetadataDelta, MetadataImage
from quorate.controller.metadata_kinds import METADATA_KINDS
from quorate.controller.record_runs import RecordRun
from quorate.controller.slices import run_to_end
from quorate.records.ids import Offset
from quorate.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quorate.controller.metadata_kind import Replay, ReplayAt, ReplayInSlices
    from quorate.controller.record_runs import Item
    from quorate.controller.slices import Slices


# Number of records that are replayed between two pauses: about a millisecond.
SLICE_RECORDS: Final = 32


def _ignore(_delta: MetadataDelta, _record: NoOpRecord) -> None:
    """Ignore a NoOpRecord."""


def _refuse(_delta: MetadataDelta, _record: MetadataRecord) -> None:
    """Reject a transaction marker: `Replayer` handles them, and snapshots contain none."""
    raise ReplayError("a snapshot holds no part of a transaction")


_REPLAY: Final[Mapping[type, Replay]] = {
    NoOpRecord: _ignore,
    **{kind: replay for subject in METADATA_KINDS for kind, replay in subject.replay.items()},
}
_AT: Final[Mapping[type, ReplayAt]] = {
    kind: replay for subject in METADATA_KINDS for kind, replay in subject.replay_at.items()
}
_IN_SLICES: Final[Mapping[type, ReplayInSlices]] = {
    kind: replay for subject in METADATA_KINDS for kind, replay in subject.replay_in_slices.items()
}


# Record types that are replayed individually: they may pause, or are transaction markers.
_BY_ITSELF: Final = frozenset(
    (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord, *_IN_SLICES)
)


def replay_record(delta: MetadataDelta, record: MetadataRecord, offset: Offset) -> None:
    """Apply one record to a delta; `Replayer` handles transactions.

    Raises ReplayError, with offset and type, for a record that contradicts the state, and for a
    transaction marker.
    """
    kind = type(record)
    try:
        if kind in _AT:
            _AT[kind](delta, record, offset)
        else:
            _REPLAY.get(kind, _refuse)(delta, record)
    except ReplayError as error:
        raise _named(error, record, offset) from error


def _named(error: ReplayError, record: MetadataRecord, offset: Offset) -> ReplayError:
    return type(error)(f"{type(record).__name__} at offset {offset}: {error}")


def replay_record_in_slices(
    delta: MetadataDelta, record: MetadataRecord, offset: Offset
) -> Slices[None]:
    """`replay_record` with pauses for a record that may change very much."""
    in_slices = _IN_SLICES.get(type(record))
    if in_slices is None:
        replay_record(delta, record, offset)
        return
    try:
        yield from in_slices(delta, record)
    except ReplayError as error:
        raise _named(error, record, offset) from error


def replay_run(delta: MetadataDelta, run: RecordRun, base_offset: Offset) -> bool:
    """Apply all records of a run and return True, or none: replay them one by one then."""

    def replay_one(record: MetadataRecord, place: int) -> None:
        replay_record(delta, record, Offset(base_offset + place))

    return run.replay(delta, replay_one)


class Replayer:
    """Replays a log from an image on, batch by batch.

    `image` is what readers may see: everything replayed, except for an open transaction.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self._newest = image
        self._is_in_transaction = False

    @property
    def is_in_transaction(self) -> bool:
        """True if a transaction is open; no snapshot can be taken then."""
        return self._is_in_transaction

    @property
    def end_offset(self) -> Offset:
        """Everything below this offset has been replayed."""
        return self._newest.position.end_offset

    def replay(
        self, records: Iterable[Item], *, base_offset: Offset, position: LogPosition
    ) -> None:
        """Replay a batch; `position` is the log position after it.

        A control batch has no records and only advances the position. Raises ReplayError, and
        changes nothing, if the batch is not the next one or contradicts the state.
        """
        run_to_end(self.replay_in_slices(records, base_offset=base_offset, position=position))

    def replay_in_slices(
        self, records: Iterable[Item], *, base_offset: Offset, position: LogPosition
    ) -> Slices[None]:
        """The same with pauses; it takes effect at its end, and may be abandoned before that."""
        if base_offset != self.end_offset:
            raise ReplayError(f"a batch at offset {base_offset} cannot follow on {self.end_offset}")
        state = _Following(self.image, self._newest, is_open=self._is_in_transaction)
        offset = base_offset
        for item in records:
            if isinstance(item, RecordRun):
                yield
                if replay_run(state.delta, item, offset):
                    offset = Offset(offset + len(item))
                    continue
            for record in item.records() if isinstance(item, RecordRun) else (item,):
                if (offset - base_offset) % SLICE_RECORDS == SLICE_RECORDS - 1:
                    yield
                if type(record) in _BY_ITSELF:
                    yield from state.replay(record, offset, position)
                else:
                    replay_record(state.delta, record, offset)
                offset = Offset(offset + 1)
        self._newest = state.delta.apply(position)
        self.image = state.image if state.is_open else self._newest
        self._is_in_transaction = state.is_open


class _Following:
    """The working state of a replayer within one batch, which it adopts only at the end."""

    def __init__(self, image: MetadataImage, newest: MetadataImage, *, is_open: bool) -> None:
        """`image` is what readers may see; `is_open` is set if `newest` has an open transaction."""
        self.image = image
        self.is_open = is_open
        self.delta = MetadataDelta(newest)

    def replay(self, record: MetadataRecord, offset: Offset, position: LogPosition) -> Slices[None]:
        """Replay one record of a batch that ends at `position`."""
        if isinstance(record, BeginTransactionRecord):
            if self.is_open:
                raise ReplayError(f"a transaction begins at {offset} while one is open")
            at = LogPosition(offset, position.epoch, position.timestamp_ms)
            self.image = self.delta.apply(at)
            self.delta = MetadataDelta(self.image)
            self.is_open = True
        elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            if not self.is_open:
                raise ReplayError(f"a transaction ends at {offset} while none is open")
            if isinstance(record, AbortTransactionRecord):
                self.delta = MetadataDelta(self.image)
            self.is_open = False
        else:
            yield from replay_record_in_slices(self.delta, record, offset)
