"""Decisions that become one batch."""

from __future__ import annotations

from quorate.controller.decision import Decision
from quorate.controller.request_types import RECORDS_MAX
from quorate.records.batch import encode_batch
from quorate.records.ids import Offset
from quorate.server.metadata.batch_accumulator import Accumulator, CutBatch


def decision(base: int, *values: bytes) -> Decision:
    return Decision(values, None, Offset(base), Offset(base + len(values)))


def test_decisions_in_a_row_share_a_batch() -> None:
    accumulator = Accumulator()
    accumulator.add(decision(5, b"a", b"b"))
    accumulator.add(decision(7, b"c"))
    assert accumulator.base_offset == 5
    data = encode_batch([b"a", b"b", b"c"], timestamp_ms=9)
    assert accumulator.cut(9) == CutBatch(data, Offset(5), Offset(8), 9)
    assert accumulator.base_offset is None


def test_a_batch_is_full_at_its_limit() -> None:
    accumulator = Accumulator(bytes_max=61 + 60)
    assert accumulator.add(decision(0, b"x"))
    assert not accumulator.add(decision(1, b"y" * 20))
    assert accumulator.add(decision(1, b"y"))
    assert accumulator.cut(0).end_offset == 2
    assert accumulator.add(decision(2, b"x" * 1000))


def test_a_batch_has_no_more_records_than_one_decision_may_have() -> None:
    """Bytes alone would let hundreds of thousands of small ones be encoded in one turn."""
    accumulator = Accumulator()
    assert accumulator.add(decision(0, *[b"x"] * (RECORDS_MAX - 1)))
    assert not accumulator.add(decision(RECORDS_MAX - 1, b"y", b"z"))
    assert accumulator.add(decision(RECORDS_MAX - 1, b"y"))


def test_what_is_cleared_is_gone() -> None:
    accumulator = Accumulator()
    accumulator.add(decision(5, b"a"))
    accumulator.clear()
    assert accumulator.base_offset is None
    accumulator.add(decision(9, b"z"))
    assert accumulator.cut(0).base_offset == 9
