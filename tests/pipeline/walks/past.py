"""The past of one log as the walks go through it: which rows count, and when they were."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.pipeline.log_frames import Row

Cells = tuple[object, ...]
# The row before offset 0: a quorum's founding is in a checkpoint that ends there.
FOUNDING = -1


class Event(NamedTuple):
    """A row with the time that it has in the log."""

    row: Row
    at_ms: int

    @property
    def kind(self) -> str:
        """The record's type."""
        return str(self.row.record_type)

    @property
    def data(self) -> dict[str, Any]:
        """The content of the record."""
        return self.row.data

    @property
    def bound(self) -> Bound:
        """The offset and the time at which something began or ended with it."""
        return Bound(self.row.offset, self.at_ms, from_snapshot=self.row.from_snapshot)


class Bound(NamedTuple):
    """A place in the log; what a snapshot begins with had begun before."""

    offset: int
    at_ms: int
    from_snapshot: bool = False


@dataclass(frozen=True)
class Past:
    """The records of one log in order, snapshot first."""

    rows: Sequence[Row]

    @cached_property
    def events(self) -> list[Event]:
        """All events except damage, and records of the tool that founded the quorum."""
        covered: dict[str, int] = {
            row.segment: row.data["lastContainedLogTimestamp"]
            for row in self.rows
            if row.record_type == "SnapshotHeaderRecord"
        }
        return [
            Event(row, covered[row.segment] if row.from_snapshot else row.at_ms)
            for row in self.rows
            if row.crc_valid and row.record_type is not None and row.offset != FOUNDING
        ]

    @cached_property
    def effective(self) -> list[Event]:
        """Without what a transaction took back, or holds back to the log's end."""
        kept: list[Event] = []
        held: list[Event] | None = None
        for event in self.events:
            if event.kind == "BeginTransactionRecord":
                held = []
            elif event.kind == "EndTransactionRecord":
                kept += held or []
                held = None
            elif event.kind == "AbortTransactionRecord":
                held = None
            elif held is None or event.row.is_control:
                kept.append(event)
            else:
                held.append(event)
        return kept

    @cached_property
    def first_ms(self) -> int:
        """The first time that the log tells."""
        return min(event.at_ms for event in self.events)

    @cached_property
    def last_ms(self) -> int:
        """The last one."""
        return max(event.at_ms for event in self.events)

    def interval(self, start: Bound, end: Bound | None) -> Cells:
        """start_offset, start, end_offset, end, open, duration_ms.

        What a snapshot begins with counts from the last record that the snapshot covers.
        """
        if end is None:
            return (*start[:2], None, None, True, self.last_ms - start.at_ms)
        return (*start[:2], *end[:2], False, end.at_ms - start.at_ms)

    def known_interval(self, start: Bound, end: Bound | None) -> Cells:
        """The same, with no start for what had begun before."""
        if not start.from_snapshot:
            return self.interval(start, end)
        return (None, None, *self.interval(start._replace(at_ms=self.first_ms), end)[2:])


def ordered(rows: Iterable[Cells]) -> list[Cells]:
    """In an order that follows from what is in them."""
    return sorted(rows, key=repr)


def ids(numbers: Sequence[int] | None) -> tuple[int, ...]:
    """A list of a record, which may be missing."""
    return tuple(numbers or ())
