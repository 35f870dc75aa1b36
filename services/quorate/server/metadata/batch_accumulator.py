"""Accumulates decided records until the next batch is cut (Kafka's BatchAccumulator)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.request_types import RECORDS_MAX
from quorate.records.batch import BATCH_BYTES_MAX, HEADER_BYTES, encode_batch
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.controller.decision import Decision
    from quorate.records.ids import Offset

# Length, attributes, deltas and sizes around a value, at most.
_RECORD_OVERHEAD_BYTES: Final = 24


@value_type
class CutBatch:
    """One encoded batch and the offsets that its decisions assumed."""

    data: bytes
    base_offset: Offset
    end_offset: Offset
    timestamp_ms: int


class Accumulator:
    """The values of decisions that are not proposed yet, in order and without a gap."""

    def __init__(self, bytes_max: int = BATCH_BYTES_MAX) -> None:
        self._bytes_max = bytes_max - HEADER_BYTES
        self._values: list[bytes] = []
        self._bytes = 0
        self._base_offset: Offset | None = None
        self._end_offset: Offset | None = None

    @property
    def base_offset(self) -> Offset | None:
        """The base offset of the batch; None if it is empty."""
        return self._base_offset

    def add(self, decision: Decision) -> bool:
        """Add a decision with records; it must follow directly on the last one.

        Returns False if the decision does not fit into the same batch; the first always fits. A
        batch holds up to 200,000 small decisions, which take 0.2 s to encode.
        """
        values = decision.values
        size = sum(map(len, values)) + _RECORD_OVERHEAD_BYTES * len(values)
        if self._base_offset is None:
            self._base_offset = decision.base_offset
        else:
            assert self._end_offset == decision.base_offset, "decisions leave no gap"
            is_too_many = len(self._values) + len(values) > RECORDS_MAX
            if is_too_many or self._bytes + size > self._bytes_max:
                return False
        self._end_offset = decision.end_offset
        self._values += values
        self._bytes += size
        return True

    def cut(self, timestamp_ms: int) -> CutBatch:
        """Encode everything accumulated as one batch."""
        assert self._base_offset is not None, "there is something to cut"
        assert self._end_offset is not None, "there is something to cut"
        data = encode_batch(self._values, timestamp_ms=timestamp_ms)
        batch = CutBatch(data, self._base_offset, self._end_offset, timestamp_ms)
        self.clear()
        return batch

    def clear(self) -> None:
        """Drop everything accumulated."""
        self._values, self._bytes = [], 0
        self._base_offset = self._end_offset = None
