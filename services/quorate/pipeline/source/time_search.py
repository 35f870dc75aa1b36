"""Finds the offset of a time in a log, also if its times go back.

Each leader sets timestamps by its own clock, so times may go back when another leader takes over.
Within one epoch they are assumed to ascend. So a search halves a part of the log only if the
records at both of its ends have the same epoch and ascending times. It reads every other part
completely.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from quorate.pipeline.source.options import START
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from quorate.records.batch import BatchHeader

_log: Final = logging.getLogger(__name__)


@value_type
class TimePlace:
    """The range of offsets for a time; both are equal unless times go back there.

    `first` is the offset of the first batch with a record of that time or later. `behind` follows
    the last batch in which all records are earlier.
    """

    first: int
    behind: int

    def of(self, option: str) -> int:
        """The offset for an option: it includes all records that may be in the option's range."""
        return self.first if option == START else self.behind

    def warning(self, option: str, time: object, log: str) -> str | None:
        """The warning if times go back at an option's time, else None."""
        if self.first == self.behind:
            return None
        return (
            f"{option}: times go back in {log}: offset {self.first} is the first of {time} or "
            f"later, and offset {self.behind - 1} is earlier again; offset {self.of(option)} is "
            "taken for that time, name an offset to cut elsewhere"
        )

    def chosen(self, option: str, time: object, log: str) -> int:
        """The offset for an option; logs the warning."""
        warning = self.warning(option, time, log)
        if warning is not None:
            _log.warning("%s", warning)
        return self.of(option)


@value_type
class Stretch:
    """Batches from offset `begin` up to, not including, `end`, all late or all early.

    A batch is late if one of its records has the searched time or a later one. The first batch of
    the stretch starts at `at`; records between `begin` and `at` are damaged or missing.
    """

    begin: int
    end: int
    is_late: bool
    at: int


@value_type
class Sides:
    """The early and late side of a time in a part of a log; None for a side without a batch.

    The first late batch is at `late`; `first` is the start of records lost before it. The last late
    batch ends at `late_end`, the last early one at `behind`.
    """

    late: int | None = None
    first: int | None = None
    late_end: int | None = None
    behind: int | None = None


@value_type
class Mark:
    """A position in a log at which a batch starts, with the batch's offset and header.

    `header` is None if no batch is known, as at the end of a log.
    """

    at: int
    offset: int | None
    header: BatchHeader | None


class TimedLog(Protocol):
    """A log, or a segment of one, as the input of a time search."""

    def between(self, first: Mark, last: Mark) -> Mark | None:
        """A batch about halfway; None if the part is short enough to be read."""

    def read(self, first: Mark, last: Mark) -> Iterator[Stretch]:
        """Yield all batches from one mark up to another."""


def stretches(log: TimedLog, first: Mark, last: Mark, timestamp_ms: int) -> Iterator[Stretch]:
    """Yield the stretches between two marks in order, reading as few batches as possible."""
    if _is_one_stretch(first, last, timestamp_ms):
        assert first.offset is not None
        assert last.offset is not None
        assert first.header is not None
        is_late = first.header.max_timestamp_ms >= timestamp_ms
        yield Stretch(first.offset, last.offset, is_late, first.offset)
        return
    middle = log.between(first, last)
    if middle is None:
        yield from log.read(first, last)
    else:
        yield from stretches(log, first, middle, timestamp_ms)
        yield from stretches(log, middle, last, timestamp_ms)


def _is_one_stretch(first: Mark, last: Mark, timestamp_ms: int) -> bool:
    """True if the batches at both ends show that all between are early, or all late."""
    one, other = first.header, last.header
    if one is None or other is None or one.epoch != other.epoch:
        return False
    early = other.max_timestamp_ms < timestamp_ms
    late = one.max_timestamp_ms >= timestamp_ms
    return one.max_timestamp_ms <= other.max_timestamp_ms and (early or late)


def sides_of(found: Iterable[Stretch], begin: int, end: int) -> Sides:
    """The sides of a time among stretches, within the offsets from `begin` up to `end`."""
    sides = Sides()
    for stretch in found:
        if stretch.end <= begin or stretch.at >= end:
            continue
        until = min(stretch.end, end)
        if not stretch.is_late:
            sides = replace(sides, behind=until)
        elif sides.late is None:
            late, first = max(stretch.at, begin), max(stretch.begin, begin)
            sides = replace(sides, late=late, first=first, late_end=until)
        else:
            sides = replace(sides, late_end=until)
    return sides


def of_copies(copies: Sequence[Sides]) -> Sides:
    """The sides in a part with several copies, each of which may have lost other batches."""
    late = min((each.late for each in copies if each.late is not None), default=None)
    return Sides(
        late,
        _furthest(each.first for each in copies if each.late == late),
        _furthest(each.late_end for each in copies),
        _furthest(each.behind for each in copies),
    )


def _furthest(offsets: Iterable[int | None]) -> int | None:
    return max((offset for offset in offsets if offset is not None), default=None)


def place_of(parts: Sequence[Sides], end: int) -> TimePlace:
    """The position of a time in a log that ends at `end`, from its parts in order."""
    first = next((each.first for each in parts if each.first is not None), end)
    behind = _furthest(each.behind for each in parts)
    if behind is None:
        return TimePlace(first, first)
    if behind > (_furthest(each.late_end for each in parts) or 0):
        # The last known batch is early, so records after it may be early as well.
        behind = end
    return TimePlace(first, max(first, behind))
