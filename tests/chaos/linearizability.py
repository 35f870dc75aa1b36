"""True if the operations on one key could have happened one at a time, in some order.

Wing and Gong's search ("Testing and verifying concurrent objects", 1993) with Lowe's memory of
configurations that have been tried ("Testing for linearizability", 2017), as Porcupine and Knossos
do it. Calls and returns lie in a doubly linked list in the order of time. Whatever was called
before the first return may come next; a dead end takes the last choice back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.chaos.history import ABSENT, Kind, Operation, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

State = int | None
MEMORY_MAX: Final = 2_000_000


class UndecidedError(Exception):
    """The search was given up: neither an order nor the proof that there is none."""


def apply(state: State, operation: Operation) -> tuple[bool, State]:
    """True if the operation, as it ended, may come next in this state, and the state after it.

    One of unknown outcome that changes nothing need not come at all, so it may not.
    """
    is_there = state is not ABSENT
    if operation.outcome is Outcome.REFUSED:
        return is_there == (operation.kind is Kind.CREATE), state
    match operation.kind:
        case Kind.READ:
            return state == operation.value, state
        case Kind.CREATE:
            return not is_there, operation.value
        case Kind.SET:
            return is_there, operation.value
        case Kind.DELETE:
            return is_there, ABSENT


class _Entry:
    """A call or a return in the list; `back` and `on` are its neighbours."""

    __slots__ = ("back", "is_call", "number", "on", "other")

    def __init__(self, number: int, *, is_call: bool) -> None:
        self.number = number
        self.is_call = is_call
        self.other: _Entry | None = None
        self.back: _Entry
        self.on: _Entry | None = None

    def lift(self) -> None:
        """Take a call and its return out of the list."""
        for entry in (self, self.other):
            if entry is not None:
                entry.back.on = entry.on
                if entry.on is not None:
                    entry.on.back = entry.back

    def unlift(self) -> None:
        """Put them back where they were; the opposite order of `lift`."""
        for entry in (self.other, self):
            if entry is not None:
                entry.back.on = entry
                if entry.on is not None:
                    entry.on.back = entry


@dataclass(frozen=True, slots=True)
class Verdict:
    """`stuck` is the operation whose end no order of what came before it could explain."""

    is_linearizable: bool
    stuck: Operation | None = None


def check(operations: Sequence[Operation]) -> Verdict:
    """Check the history of one key. Raises UndecidedError when it is too large to decide."""
    kept = _without_traceless(operations)
    head = _linked(kept)
    left = sum(operation.end is not None for operation in kept)
    state: State = ABSENT
    done = 0
    tried: set[tuple[int, State]] = set()
    choices: list[tuple[_Entry, State]] = []
    fewest_left, stuck = left + 1, None
    entry = head.on
    while left:
        # Open operations have no return, so one is ahead as long as any is left.
        assert entry is not None
        if entry.is_call:
            operation = kept[entry.number]
            fits, after = apply(state, operation)
            mark = (done | 1 << entry.number, after)
            if fits and mark not in tried:
                tried.add(mark)
                choices.append((entry, state))
                done, state = mark
                left -= operation.end is not None
                entry.lift()
                entry = head.on
                if len(tried) > MEMORY_MAX:
                    raise UndecidedError(f"{len(kept)} operations on {operation.key}")
            else:
                entry = entry.on
            continue
        if left < fewest_left:
            fewest_left, stuck = left, kept[entry.number]
        if not choices:
            return Verdict(is_linearizable=False, stuck=stuck)
        entry, state = choices.pop()
        entry.unlift()
        done ^= 1 << entry.number
        left += kept[entry.number].end is not None
        entry = entry.on
    return Verdict(is_linearizable=True)


def _without_traceless(operations: Sequence[Operation]) -> list[Operation]:
    """The operations without those that look the same as ones that never happened.

    That is a SET of unknown outcome whose value no read saw: values are never written twice, and
    to overwrite a value makes no topic come or go.
    """
    seen = {o.value for o in operations if o.kind is Kind.READ}
    return [
        o
        for o in operations
        if o.outcome is not Outcome.UNKNOWN or o.kind is not Kind.SET or o.value in seen
    ]


def _linked(operations: Sequence[Operation]) -> _Entry:
    """The head of the list; at one moment calls come before returns, which allows more orders."""
    timed: list[tuple[int, bool, _Entry]] = []
    for number, operation in enumerate(operations):
        call = _Entry(number, is_call=True)
        timed.append((operation.begin, False, call))
        if operation.end is not None:
            call.other = _Entry(number, is_call=False)
            timed.append((operation.end, True, call.other))
    timed.sort(key=lambda item: item[:2])
    head = last = _Entry(-1, is_call=False)
    for _, _, entry in timed:
        last.on, entry.back = entry, last
        last = entry
    return head
