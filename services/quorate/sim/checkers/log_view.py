"""The simulator's own view of each replica's log, built from disk writes.

Batches are chained. A chain value represents a complete prefix: two logs with equal chain values at
an offset are equal below it. The view is built from what the storage code writes, never from the
state of the core.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.records.voters import VoterSet
from quorate.sim.checkers.batch_contents import Controls, controls_of, header_at


class Entry(NamedTuple):
    """One batch; `sequence` is the disk's write count after it was written."""

    base: Offset
    end: Offset
    epoch: Epoch
    chain: int
    sequence: int
    data: bytes
    voters: VoterSet | None = None
    kraft_version: int | None = None


_NO_CONTROLS: Final = Controls()


@dataclass(slots=True)
class LogView:
    """The batches of one log, from the log start offset."""

    start: OffsetAndEpoch = OffsetAndEpoch(epoch=Epoch(0), offset=Offset(0))
    start_chain: int = 0
    start_voters: VoterSet = VoterSet()
    entries: list[Entry] = field(default_factory=list)

    @property
    def end(self) -> OffsetAndEpoch:
        if not self.entries:
            return self.start
        last = self.entries[-1]
        return OffsetAndEpoch(epoch=last.epoch, offset=last.end)

    @property
    def chain(self) -> int:
        return self.entries[-1].chain if self.entries else self.start_chain

    @property
    def voters(self) -> VoterSet:
        """The latest voter set in this log."""
        for entry in reversed(self.entries):
            if entry.voters is not None:
                return entry.voters
        return self.start_voters

    def append(self, data: bytes, sequence: int) -> list[Entry]:
        """Add complete batches, written up to disk write `sequence`; returns their entries."""
        added = []
        position = 0
        chain = self.chain
        while position < len(data):
            header = header_at(data, position)
            batch = data[position : position + header.size_bytes]
            chain = zlib.crc32(batch, chain)
            controls = controls_of(batch) if header.is_control else _NO_CONTROLS
            entry = Entry(
                Offset(header.base_offset),
                Offset(header.last_offset + 1),
                Epoch(header.epoch),
                chain,
                sequence,
                batch,
                controls.voters,
                controls.kraft_version,
            )
            added.append(entry)
            position += header.size_bytes
        self.entries += added
        return added

    def cut(self, to: Offset) -> None:
        """Drop every batch that does not end at or below `to`."""
        del self.entries[bisect_right(self.entries, to, key=_end) :]

    def drop_before(self, start: Offset) -> None:
        """Drop the batches below a new log start, but keep their chain value and voters."""
        index = bisect_right(self.entries, start, key=_end)
        if index:
            last = self.entries[index - 1]
            self.start_voters = self._voters_below(index)
            self.start = OffsetAndEpoch(epoch=last.epoch, offset=last.end)
            self.start_chain = last.chain
            del self.entries[:index]

    def chain_up_to(self, end: OffsetAndEpoch) -> int | None:
        """The chain value of everything below `end`; None if no batch of that epoch ends there.

        An uncommitted record and the end of a snapshot may be at the same offset.
        """
        return self.chain_at(end.offset) if self.epoch_before(end.offset) == end.epoch else None

    def chain_at(self, offset: Offset) -> int | None:
        """The chain value of everything below `offset`; None if no batch ends there."""
        if offset == self.start.offset:
            return self.start_chain
        index = bisect_left(self.entries, offset, key=_end)
        if index < len(self.entries) and self.entries[index].end == offset:
            return self.entries[index].chain
        return None

    def between(self, start: Offset, end: Offset) -> list[Entry]:
        """The batches that begin at or after `start` and end at or below `end`."""
        first = bisect_left(self.entries, start, key=_base)
        return self.entries[first : bisect_right(self.entries, end, key=_end)]

    def epoch_before(self, offset: Offset) -> Epoch | None:
        """The epoch of the batch that ends at `offset`."""
        if offset == self.start.offset:
            return self.start.epoch
        index = bisect_left(self.entries, offset, key=_end)
        if index < len(self.entries) and self.entries[index].end == offset:
            return self.entries[index].epoch
        return None

    def voters_below(self, offset: Offset) -> VoterSet:
        """The voter set in effect just below `offset`."""
        return self._voters_below(bisect_right(self.entries, offset, key=_end))

    def _voters_below(self, index: int) -> VoterSet:
        for entry in reversed(self.entries[:index]):
            if entry.voters is not None:
                return entry.voters
        return self.start_voters

    def safe_end(self, first_unsafe: int | None) -> Offset:
        """The log end after a power loss now."""
        if first_unsafe is None:
            return self.end.offset
        index = bisect_left(self.entries, first_unsafe, key=_sequence)
        return self.entries[index - 1].end if index else self.start.offset


def _base(entry: Entry) -> Offset:
    return entry.base


def _end(entry: Entry) -> Offset:
    return entry.end


def _sequence(entry: Entry) -> int:
    return entry.sequence
