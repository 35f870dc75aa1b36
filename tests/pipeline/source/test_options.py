"""Options: what they mean, and the sentence with which a bad one ends."""

from __future__ import annotations

import pytest

from quorate.pipeline.source.options import AtOffset, AtTime, OptionError, SnapshotAt, parse_options


def test_names_may_be_in_any_case_as_spark_hands_them_over() -> None:
    options = parse_options({"PATH": "/a, /b", "startingoffsets": "17", "payload": "False"})
    assert options.paths == ("/a", "/b")
    assert options.start == AtOffset(17)
    assert options.payload_types == ()
    assert not options.has_control_payload


def test_json_may_be_wanted_of_what_the_quorum_wrote_only() -> None:
    options = parse_options({"path": "x", "payload": "control"})
    assert (options.payload_types, options.has_control_payload) == ((), True)
    options = parse_options({"path": "x", "payload": "TopicRecord,NoOpRecord"})
    assert options.payload_types == ("TopicRecord", "NoOpRecord")
    assert options.has_control_payload
    assert parse_options({"path": "x"}).payload_types is None


def test_parts_are_smaller_where_records_become_json() -> None:
    sizes = [
        parse_options({"path": "x", "payload": word}).split_bytes for word in ("true", "false")
    ]
    assert sizes[0] < sizes[1]
    assert parse_options({"path": "x", "splitBytes": "5000"}).split_bytes == 5000


def test_a_snapshot_may_be_wanted_that_is_not_after_a_place() -> None:
    options = parse_options({"path": "x", "startingOffsets": "snapshot@17"})
    assert options.start == SnapshotAt(AtOffset(17))
    options = parse_options({"path": "x", "startingOffsets": "Snapshot@2026-01-05T00:00:00Z"})
    assert options.start == SnapshotAt(AtTime(1_767_571_200_000))


def test_a_time_without_a_zone_is_utc() -> None:
    options = parse_options({"path": "x", "endingOffsets": "2026-01-05T00:00:00"})
    assert options.end == AtTime(1_767_571_200_000)
    zoned = parse_options({"path": "x", "endingOffsets": "2026-01-05T01:00:00+01:00"})
    assert zoned.end == options.end


def test_an_end_may_be_the_start_and_an_offset_is_not_compared_with_a_time() -> None:
    for start, end in (("20", "20"), ("50", "2026-01-05"), ("2026-01-05", "0"), ("earliest", "0")):
        parse_options({"path": "x", "startingOffsets": start, "endingOffsets": end})


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "path"),
        ({"path": " , "}, "path"),
        ({"path": "x", "bootstrap.servers": "h:1"}, "path"),
        ({"path": "x", "startingOffsets": "begin"}, "startingOffsets"),
        ({"path": "x", "startingOffsets": "-1"}, "startingOffsets"),
        ({"path": "x", "startingOffsets": "snapshot@"}, "startingOffsets"),
        ({"path": "x", "startingOffsets": "snapshot@latest"}, "startingOffsets"),
        ({"path": "x", "startingOffsets": "earliest@3"}, "startingOffsets"),
        ({"path": "x", "endingOffsets": "snapshot@3"}, "endingOffsets"),
        ({"path": "x", "payload": "some"}, "payload"),
        ({"path": "x", "endingOffsets": str(2**63)}, "endingOffsets"),
        ({"path": "x", "endingOffsets": "snapshot"}, "endingOffsets"),
        ({"path": "x", "startingOffsets": "9" * 5000}, "startingOffsets"),
        ({"path": "x", "startingOffsets": "50", "endingOffsets": "20"}, "endingOffsets"),
        (
            {"path": "x", "startingOffsets": "2026-01-06", "endingOffsets": "2026-01-05"},
            "endingOffsets",
        ),
        ({"path": "x", "splitBytes": "9" * 5000}, "splitBytes"),
        ({"path": "x", "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger"),
        ({"path": "x", "failOnDataLoss": "maybe"}, "failOnDataLoss"),
        ({"path": "x", "isolation": "serializable"}, "isolation"),
        ({"path": "x", "recordTypes": "PartitionRecord,Partition"}, "recordTypes"),
        ({"path": "x", "columns": "offset,of"}, "columns"),
        ({"path": "x", "onDamage": "ignore"}, "onDamage"),
        ({"path": "x", "pushdown": "offset"}, "pushdown"),
        ({"path": "x", "splitBytes": "1"}, "splitBytes"),
        ({"path": "x", "startingOffset": "1"}, "startingOffset"),
    ],
)
def test_a_bad_option_is_named_in_one_sentence(given: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=f"^{named}: ") as caught:
        parse_options(given)
    assert "\n" not in str(caught.value)
