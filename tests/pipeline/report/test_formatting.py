"""Words of the page."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from quorate.pipeline.report.formatting import (
    CELL_CHARACTERS_MAX,
    duration,
    escaped,
    format_value,
    ids_listed,
    ids_named,
    share,
    size,
)


def test_nothing_from_a_log_can_be_markup_or_hide() -> None:
    assert escaped("<script>'\"&") == "&lt;script&gt;&#x27;&quot;&amp;"
    assert escaped("a\x00\x1b\u202eb\u200b") == r"a\x00\x1b\u202eb\u200b"
    assert len(escaped("x" * 10_000)) == CELL_CHARACTERS_MAX


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1500, "1.5 s"),
        (61_000, "1 min 1 s"),
        (3_660_000, "1 h 1 min"),
        (90_000_000, "1 d 1 h"),
        (-1500, "-1.5 s"),
    ],
)
def test_durations(milliseconds: int, words: str) -> None:
    assert duration(milliseconds).replace("\xa0", " ") == words


def test_values() -> None:
    assert [size(count) for count in (12, 2048, 3 << 20, 5 << 30)] == [
        "12\xa0B",
        "2.0\xa0KiB",
        "3.0\xa0MiB",
        "5.0\xa0GiB",
    ]
    assert [share(part).replace("\xa0", " ") for part in (0, 1e-9, 0.001, 0.734, 1)] == [
        "0.0 %",
        "< 0.1 %",
        "0.1 %",
        "73.4 %",
        "100.0 %",
    ]
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    values: tuple[object, ...] = (None, True, 1234, [1, 2], [], at, "x")
    assert [format_value(value) for value in values] == [
        "-",
        "yes",
        "1\u202f234",
        "1, 2",
        "none",
        "2026-01-02 03:04:05",
        "x",
    ]


def test_few_of_many_ids_are_named() -> None:
    assert ids_named([]) == ids_listed([]) == ""
    assert ids_named([3, 1]) == ": 3, 1"
    assert ids_listed(range(20)) == "0, 1, 2, 3, 4, 5, 6, 7, ..."
