"""Oracle for the answers to clients, checked against the one committed history.

Anything that a replica reports as committed becomes history, and every other replica is checked
against it. Sources: the Raft paper, section 8 (linearizable semantics); rules `linearizable_reads`
and `stream_responses`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.records.ids import Epoch, Offset
from quorate.records.voters import VoterSet
from quorate.sim.checkers.batch_contents import records_of
from quorate.sim.workload.kv_model import KvModel, operation_of

if TYPE_CHECKING:
    from quorate.sim.checkers.log_view import Entry


class Violation(AssertionError):
    """A property does not hold; the message names it."""


@dataclass(slots=True)
class Oracle:
    """The committed history and the responses that clients got."""

    chains: dict[Offset, int] = field(default_factory=lambda: {Offset(0): 0})
    end: Offset = Offset(0)
    ends: dict[Epoch, Offset] = field(default_factory=dict)
    voter_sets: list[tuple[Offset, VoterSet]] = field(default_factory=list)
    values: list[tuple[Offset, bytes]] = field(default_factory=list)
    decided_for: dict[int, Offset] = field(default_factory=dict)
    committed_at: dict[int, Offset] = field(default_factory=dict)
    acknowledged: dict[int, Offset] = field(default_factory=dict)
    refused: dict[int, None] = field(default_factory=dict)
    unknown: dict[int, None] = field(default_factory=dict)
    read_floor: Offset = Offset(0)
    reads: int = 0
    _states: list[KvModel] = field(default_factory=lambda: [KvModel()])

    # --- history ----------------------------------------------------------------------------------

    def commit(self, entry: Entry, epoch: Epoch) -> None:
        """Add the next committed batch, as the first replica that reports it has it.

        `epoch` is the epoch of that replica: the batch was committed in that epoch or before.
        """
        self.end = entry.end
        self.ends[epoch] = max(entry.end, self.ends.get(epoch, entry.end))
        self.chains[entry.end] = entry.chain
        if entry.voters is not None:
            self.voter_sets.append((entry.end, entry.voters))
        for record in records_of(entry.data):
            value = record.value or b""
            operation = operation_of(value)
            if operation is None:
                continue
            offset = Offset(record.offset)
            if operation in self.committed_at:
                first = self.committed_at[operation]
                raise Violation(
                    f"operation {operation} is committed twice, at {first} and {offset}"
                )
            if operation in self.refused:
                raise Violation(f"operation {operation} was refused, yet is committed at {offset}")
            if self.decided_for.get(operation) != offset:
                raise Violation(
                    f"operation {operation} was decided for offset "
                    f"{self.decided_for.get(operation)}, and is committed at {offset}"
                )
            self.committed_at[operation] = offset
            self.values.append((offset, value))

    def state_at(self, offset: Offset) -> KvModel:
        """The state machine after everything below `offset`."""
        index = bisect_right(self._states, offset, key=_applied)
        nearest = self._states[index - 1]
        if nearest.applied == offset:
            return nearest
        state = nearest.copy()
        for at, value in self.values[bisect_left(self.values, nearest.applied, key=_offset) :]:
            if at >= offset:
                break
            state.apply(value)
        state.applied = offset
        self._states.insert(index, state)
        return state

    def end_before(self, epoch: Epoch) -> Offset:
        """The end of the records that were certainly committed in epochs below `epoch`."""
        return max((end for e, end in self.ends.items() if e < epoch), default=Offset(0))

    def voters_at(self, offset: Offset) -> VoterSet:
        """The committed voter set in effect below `offset`."""
        index = bisect_right(self.voter_sets, offset, key=_offset_of_set)
        return self.voter_sets[index - 1][1] if index else VoterSet()

    # --- writes -----------------------------------------------------------------------------------

    def was_decided(self, operation: int, offset: Offset) -> None:
        """A controller has decided on a write and assigned `offset` to its record."""
        self.decided_for[operation] = offset

    def was_acknowledged(self, operation: int) -> None:
        """A client got the response that its write is committed."""
        offset = self.committed_at.get(operation)
        if offset is None:
            raise Violation(f"operation {operation} was acknowledged, but is not committed")
        self.acknowledged[operation] = offset
        self.read_floor = max(self.read_floor, Offset(offset + 1))

    def was_refused(self, operation: int) -> None:
        """A client got the response that its write did not and will not take effect."""
        if operation in self.committed_at:
            raise Violation(f"operation {operation} is committed, yet was refused")
        self.refused[operation] = None

    def was_left_open(self, operation: int) -> None:
        """A client got the response that the outcome of its write is unknown."""
        self.unknown[operation] = None

    # --- reads ------------------------------------------------------------------------------------

    def current_read_answered(self, kv_model: KvModel, floor: Offset) -> None:
        """A linearizable read was answered; it began when clients knew of offsets below `floor`."""
        if kv_model.applied < floor:
            raise Violation(
                f"a current read reflects offset {kv_model.applied}, "
                f"but {floor - 1} was acknowledged or read before it began"
            )
        self._check_state(kv_model)
        self.read_floor = max(self.read_floor, Offset(kv_model.applied))
        self.reads += 1

    def read_answered(self, kv_model: KvModel, seen: Offset) -> None:
        """A stale read was answered; it must reflect every offset below `seen`, read before."""
        if kv_model.applied < seen:
            raise Violation(f"a read reflects offset {kv_model.applied} after one reflected {seen}")
        self._check_state(kv_model)

    def _check_state(self, kv_model: KvModel) -> None:
        expected = self.state_at(Offset(kv_model.applied))
        if kv_model != expected:
            raise Violation(
                f"a read at offset {kv_model.applied} shows {kv_model}, history has {expected}"
            )


def _applied(kv_model: KvModel) -> Offset:
    return Offset(kv_model.applied)


def _offset(value: tuple[Offset, bytes]) -> Offset:
    return value[0]


def _offset_of_set(entry: tuple[Offset, VoterSet]) -> Offset:
    return entry[0]
