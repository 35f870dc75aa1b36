"""The place of a time in a log, also where its times go back.

Each leader stamps records by its own clock, so times may go back where another leader takes over.
Within one epoch they are taken to go forward: a search halves the log only where both ends of a
part are of one epoch and in order, and looks into every other part.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from quorate.pipeline.source.options import START
from quorate.records.value import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.records.batch import BatchHeader

_log: Final = logging.getLogger(__name__)


@value
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
        where = "begins at" if option == START else "ends before"
        return (
            f"{option}: times go back in {log}: offset {self.first} is the first of {time} or "
            f"later, and offset {self.behind - 1} is earlier again; what is read {where} offset "
            f"{self.of(option)}, name an offset to cut elsewhere"
        )

    def chosen(self, option: str, time: object, log: str) -> int:
        """The offset that an option means, with that sentence logged."""
        warning = self.warning(option, time, log)
        if warning is not None:
            _log.warning("%s", warning)
        return self.of(option)


@value
class Stretch:
    """Batches from offset `begin` up to, not including, `end`, all late or all early.

    A batch is late if one of its records is of the time that is looked for, or later.
    """

    begin: int
    end: int
    is_late: bool


@value
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
        yield Stretch(first.offset, last.offset, is_late)
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


def place_among(found: Iterable[Stretch], end: int) -> TimePlace:
    """The place of a time among all stretches of a log that ends at `end`."""
    first: int | None = None
    behind: int | None = None
    is_late = False
    for stretch in found:
        is_late = stretch.is_late
        if not is_late:
            behind = stretch.end
        elif first is None:
            first = stretch.begin
    if first is None:
        return TimePlace(end, end)
    if not is_late:
        # All that may follow is as early, for all that is known.
        behind = end
    return TimePlace(first, first if behind is None else max(first, behind))
