"""Finds the offset of a time in a log, also if its times go back.

Each leader stamps records by its own clock, so times may go back when another leader takes over.
Within one epoch they are assumed to go forward: a search halves the log only if both ends of a part
are of one epoch and in order, and searches every other part completely.
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
    """The offsets between which a time lies; one and the same unless times go back there.

    `first` is that of the first batch with a record of the time or later. `behind` follows the last
    batch in which all are earlier.
    """

    first: int
    behind: int

    def of(self, option: str) -> int:
        """The offset that an option means: as much is read as may be of its times."""
        return self.first if option == START else self.behind

    def warning(self, option: str, time: object, log: str) -> str | None:
        """The sentence about times that go back at an option's time, if they do."""
        if self.first == self.behind:
            return None
        return (
            f"{option}: times go back in {log}: offset {self.first} is the first of {time} or "
            f"later, and offset {self.behind - 1} is earlier again; offset {self.of(option)} is "
            "taken for that time, name an offset to cut elsewhere"
        )

    def chosen(self, option: str, time: object, log: str) -> int:
        """The offset that an option means, with that sentence logged."""
        warning = self.warning(option, time, log)
        if warning is not None:
            _log.warning("%s", warning)
        return self.of(option)


@value_type
class Stretch:
    """Batches from offset `begin` up to, not including, `end`, all late or all early.

    A batch is late if one of its records is of the time that is looked for, or later. The first of
    the stretch begins at `at`; what lies between `begin` and that is damaged or missing.
    """

    begin: int
    end: int
    is_late: bool
    at: int


@value_type
class Sides:
    """The two sides of a time in a part of a log; None where it has no batch of one.

    The first late batch is at `late`, with `first` in front of it and of what is lost there, and
    the last one ends at `late_end`. The last early one ends at `behind`.
    """

    late: int | None = None
    first: int | None = None
    late_end: int | None = None
    behind: int | None = None


@value_type
class Mark:
    """A place in a log at which a batch begins, with the batch's offset, and with its header.

    `header` is None where no batch is known, as at the end of a log.
    """

    at: int
    offset: int | None
    header: BatchHeader | None


class TimedLog(Protocol):
    """A log, or a segment of one, in which a time is looked for."""

    def between(self, first: Mark, last: Mark) -> Mark | None:
        """A batch about halfway; None where the part is short enough to be read."""

    def read(self, first: Mark, last: Mark) -> Iterator[Stretch]:
        """All batches from one mark up to another, as they are."""


def stretches(log: TimedLog, first: Mark, last: Mark, timestamp_ms: int) -> Iterator[Stretch]:
    """The batches between two marks in order, as little of them as possible read."""
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
    """True if all between are early, or all are late, as the batches at both ends are."""
    one, other = first.header, last.header
    if one is None or other is None or one.epoch != other.epoch:
        return False
    early = other.max_timestamp_ms < timestamp_ms
    late = one.max_timestamp_ms >= timestamp_ms
    return one.max_timestamp_ms <= other.max_timestamp_ms and (early or late)


def sides_of(found: Iterable[Stretch], begin: int, end: int) -> Sides:
    """The sides of a time among stretches, of which only offsets from `begin` up to `end` count."""
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
    """The sides in a part of which there are several copies; each may have lost other batches."""
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
    """The place of a time in a log that ends at `end`, from its parts in order."""
    first = next((each.first for each in parts if each.first is not None), end)
    behind = _furthest(each.behind for each in parts)
    if behind is None:
        return TimePlace(first, first)
    if behind > (_furthest(each.late_end for each in parts) or 0):
        # All that may follow is as early, for all that is known.
        behind = end
    return TimePlace(first, max(first, behind))
