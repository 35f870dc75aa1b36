"""Options: what they mean, and the sentence with which a bad one ends."""

from __future__ import annotations

import pytest

from quorate.pipeline.source.options import AtOffset, AtTime, OptionError, parse_options


def test_names_may_be_in_any_case_as_spark_hands_them_over() -> None:
    options = parse_options({"PATH": "/a, /b", "startingoffsets": "17", "payload": "False"})
    assert options.paths == ("/a", "/b")
    assert options.start == AtOffset(17)
    assert not options.has_payload


def test_a_time_without_a_zone_is_utc() -> None:
    options = parse_options({"path": "x", "endingOffsets": "2026-01-05T00:00:00"})
    assert options.end == AtTime(1_767_571_200_000)
    zoned = parse_options({"path": "x", "endingOffsets": "2026-01-05T01:00:00+01:00"})
    assert zoned.end == options.end


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "path"),
        ({"path": " , "}, "path"),
        ({"path": "x", "bootstrap.servers": "h:1"}, "path"),
        ({"path": "x", "startingOffsets": "begin"}, "startingOffsets"),
        ({"path": "x", "startingOffsets": "-1"}, "startingOffsets"),
        ({"path": "x", "endingOffsets": str(2**63)}, "endingOffsets"),
        ({"path": "x", "endingOffsets": "snapshot"}, "endingOffsets"),
        ({"path": "x", "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger"),
        ({"path": "x", "failOnDataLoss": "maybe"}, "failOnDataLoss"),
        ({"path": "x", "isolation": "serializable"}, "isolation"),
        ({"path": "x", "recordTypes": "PartitionRecord,Partition"}, "recordTypes"),
        ({"path": "x", "columns": "offset,of"}, "columns"),
        ({"path": "x", "onDamage": "ignore"}, "onDamage"),
        ({"path": "x", "splitBytes": "1"}, "splitBytes"),
        ({"path": "x", "startingOffset": "1"}, "startingOffset"),
    ],
)
def test_a_bad_option_is_named_in_one_sentence(given: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=f"^{named}: ") as caught:
        parse_options(given)
    assert "\n" not in str(caught.value)
