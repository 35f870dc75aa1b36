"""Moments of a log as flags name them."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

import pytest

from quorate.pipeline.jobs.log_position import comes_before, format_position, parse_position


def test_an_offset_or_a_time() -> None:
    assert parse_position("17") == 17
    assert parse_position("2026-01-31T12:00:00Z") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert parse_position("2026-01-31 14:00:00+02:00") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert parse_position("2026-01-31T12:00") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert format_position(17) == "offset 17"
    assert format_position(datetime(2026, 1, 31, tzinfo=UTC)) == "2026-01-31T00:00:00+00:00"


@pytest.mark.parametrize(
    "text",
    ["", "-1", "yesterday", "1.5", "٣", "9" * 20, "9" * 5000, "9999-12-31T23:59:59-14:00"],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="give an offset, or a time as 2026"):
        parse_position(text)


def test_an_offset_and_a_time_are_not_compared() -> None:
    early, late = parse_position("2026-01-31T12:00"), parse_position("2026-01-31T12:00:01")
    assert comes_before(early, late)
    assert not comes_before(late, early)
    assert comes_before(3, 4)
    assert not comes_before(4, 4)
    assert not comes_before(3, early)
    assert not comes_before(early, 3)
