"""Places of times, found by halves, are those that every batch together tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from quorate.pipeline.source.time_search import Mark, Stretch, TimePlace, place_among, stretches
from quorate.records.batch import encode_batch, read_header
from quorate.records.value import value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quorate.records.batch import BatchHeader


@value
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
            yield Stretch(offset, offset + 1, is_late)

    def place(self) -> TimePlace:
        first, last = self.mark(0), self.mark(len(self.headers))
        return place_among(stretches(self, first, last, self.timestamp_ms), len(self.headers))


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
