"""Places of times, found by halves, are those that every batch together tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from quorate.pipeline.source.time_search import (
    Mark,
    Sides,
    Stretch,
    TimePlace,
    of_copies,
    place_of,
    sides_of,
    stretches,
)
from quorate.records.batch import encode_batch, read_header
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quorate.records.batch import BatchHeader


@value_type
class Listed:
    """A log of batches of one record each; marks are offsets."""

    headers: Sequence[BatchHeader]
    timestamp_ms: int
    read_offsets: list[int]

    def mark(self, offset: int) -> Mark:
        header = self.headers[offset] if offset < len(self.headers) else None
        return Mark(offset, offset, header)

    def between(self, first: Mark, last: Mark) -> Mark | None:
        return self.mark((first.at + last.at) // 2) if last.at - first.at > 2 else None

    def read(self, first: Mark, last: Mark) -> Iterator[Stretch]:
        for offset in range(first.at, last.at):
            self.read_offsets.append(offset)
            is_late = self.headers[offset].max_timestamp_ms >= self.timestamp_ms
            yield Stretch(offset, offset + 1, is_late, offset)

    def place(self) -> TimePlace:
        first, last = self.mark(0), self.mark(len(self.headers))
        found = stretches(self, first, last, self.timestamp_ms)
        return place_of([sides_of(found, 0, len(self.headers))], len(self.headers))


def headers_of(epochs: Sequence[Sequence[int]]) -> list[BatchHeader]:
    """Headers with these times, of one epoch after the other."""
    return [
        read_header(encode_batch([b"\0"], timestamp_ms=at_ms, base_offset=0, epoch=epoch))
        for epoch, times in enumerate(epochs)
        for at_ms in times
    ]


TIMES = st.integers(0, 30)
# Within an epoch times go forward.
EPOCHS = st.lists(st.lists(TIMES, max_size=12).map(sorted), max_size=6)


@given(EPOCHS, TIMES)
def test_the_place_of_a_time_is_where_all_batches_have_it(
    epochs: list[list[int]], timestamp_ms: int
) -> None:
    found = Listed(headers_of(epochs), timestamp_ms, []).place()
    times = [at_ms for of_epoch in epochs for at_ms in of_epoch]
    late = [offset for offset, at_ms in enumerate(times) if at_ms >= timestamp_ms]
    early = [offset for offset, at_ms in enumerate(times) if at_ms < timestamp_ms]
    first = late[0] if late else len(times)
    assert found == TimePlace(first, max(first, early[-1] + 1 if early else first))
    assert (found.first == found.behind) == (
        times[first:] == [at_ms for at_ms in times[first:] if at_ms >= timestamp_ms]
    )


def test_of_a_long_epoch_little_is_read() -> None:
    log = Listed(headers_of([[3], range(1000), [5000]]), 700, [])
    assert log.place() == TimePlace(701, 701)
    assert len(log.read_offsets) <= 8


def test_a_copy_that_lost_late_batches_leaves_the_place_to_one_that_has_them() -> None:
    whole = Sides(late=10, first=10, late_end=20, behind=25)
    damaged_in_front = Sides(late=10, first=7, late_end=20, behind=25)
    lost = Sides(late=25, first=10, late_end=30, behind=22)
    for copies in ([whole, damaged_in_front, lost], [lost, damaged_in_front, whole]):
        assert of_copies(copies) == Sides(late=10, first=10, late_end=30, behind=25)
    assert of_copies([Sides(), whole]) == whole
    assert of_copies([]) == Sides()


def test_only_offsets_of_the_part_count() -> None:
    found = [
        Stretch(0, 10, is_late=True, at=0),
        Stretch(10, 20, is_late=False, at=10),
        Stretch(20, 30, is_late=True, at=23),
    ]
    assert sides_of(found, 0, 30) == Sides(late=0, first=0, late_end=30, behind=20)
    assert sides_of(found, 5, 15) == Sides(late=5, first=5, late_end=10, behind=15)
    assert sides_of(found, 12, 22) == Sides(behind=20)
    assert sides_of(found, 12, 25) == Sides(late=23, first=20, late_end=25, behind=20)


def test_behind_the_last_early_batch_all_counts_as_early() -> None:
    assert place_of([Sides(late=3, first=3, late_end=5, behind=9)], 12) == TimePlace(3, 12)
    assert place_of([Sides(late=3, first=3, late_end=9, behind=5)], 12) == TimePlace(3, 5)
    assert place_of([Sides(behind=2), Sides()], 12) == TimePlace(12, 12)
    assert place_of([], 12) == TimePlace(12, 12)
