"""Options: what they mean, and the sentence with which a bad one ends."""

from __future__ import annotations

import pytest

from quorate.pipeline.source.options import (
    AtOffset,
    AtTime,
    OptionError,
    SnapshotAt,
    check_reached,
    parse_options,
    table_options,
)


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


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"kafka.bootstrap.servers": "h:1"}, "it is bootstrap.servers here"),
        ({"kafka.security.protocol": "SSL"}, "commandConfig names a file with the properties"),
        ({"startingTimestamp": "1767600000000"}, "startingOffsets takes a time, too, such as 2"),
        ({"minPartitions": "8"}, "splitBytes says how much one task reads"),
        ({"subscribe": "__cluster_metadata"}, "the metadata log is read, and no other topic"),
        ({"paths": '["/a","/b"]'}, "path takes several directories, separated by commas"),
        ({"startingOffset": "1"}, "startingOffsets is meant?"),
        ({"qqq": "1"}, "there are path, bootstrap.servers, startingOffsets, endingOffsets, max"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_names_of_other_sources_have_a_hint(given: dict[str, str], hint: str) -> None:
    (name,) = given
    with pytest.raises(OptionError) as caught:
        parse_options({"path": "x", **given})
    assert str(caught.value).startswith(f"{name}: there is no such option; {hint}")


def test_words_of_other_sources_have_a_hint() -> None:
    with pytest.raises(OptionError, match=r"^isolation: write committed for read_committed, "):
        parse_options({"path": "x", "isolation": "Read_Committed"})


@pytest.mark.parametrize(
    "path",
    ["/a b/c", "file:/a b/c", "file:///a b/c", "FILE:///a b/c", "file://localhost/a b/c"],
)
def test_a_path_may_be_the_url_of_a_file(path: str) -> None:
    assert parse_options({"path": f"/x, {path}"}).paths == ("/x", "/a b/c")


@pytest.mark.parametrize("path", ["hdfs://nn/x", "s3a://b/x", "hdfs:/x", "file://other/x"])
def test_what_is_on_another_machine_is_refused_by_name(path: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_options({"path": f"/x,{path}"})
    assert str(caught.value) == (
        f"path: {path} is in no directory of this machine: only those are read; mount it, or name "
        "a copy"
    )


def test_no_record_type_is_no_choice_of_them() -> None:
    for types in ({}, {"recordTypes": " , "}):
        with pytest.raises(OptionError, match=r"^recordTypesOnly: .* name the types to keep in re"):
            parse_options({"path": "x", "recordTypesOnly": "true", **types})
    assert not parse_options({"path": "x", "recordTypesOnly": "false"}).is_typed_only


def test_what_spark_says_of_a_table_is_no_option() -> None:
    said = {"Owner": "me", "provider": "kraft", "location": "file:/a", "path": "file:/a"}
    assert table_options(said) == {"path": "file:/a"}
    # What a user writes into TBLPROPERTIES comes, too.
    given = {**said, "team": "x", "columns": "offset", "option.columns": "offset"}
    assert table_options(given) == {"path": "file:/a", "columns": "offset"}
    for frame in ({"path": "/a", "columns": "offset"}, {"path": "/a", "owner": "me"}):
        assert table_options(frame) is None
    with pytest.raises(OptionError, match=r"^owner: there is no such option"):
        parse_options({"path": "/a", "owner": "me"})


def test_tasks_are_counted_for_a_live_quorum() -> None:
    assert parse_options({"bootstrap.servers": "h:1", "maxTasks": "2"}).tasks_max == 2
    assert parse_options({"bootstrap.servers": "h:1"}).tasks_max is None
    with pytest.raises(OptionError, match=r"^maxTasks: it spares a live quorum; splitBytes "):
        parse_options({"path": "x", "maxTasks": "2"})


def test_an_offset_behind_the_end_is_refused_with_the_end() -> None:
    options = parse_options({"path": "x", "startingOffsets": "21"})
    check_reached(options, "the log in x", 21)
    with pytest.raises(OptionError) as caught:
        check_reached(options, "the log in x", 20)
    words = "lies behind the end of the log in x, which is at offset 20; give that or a lower one"
    assert str(caught.value) == f"startingOffsets: 21 {words}, or latest"
    options = parse_options({"path": "x", "endingOffsets": "1767600000000"})
    with pytest.raises(OptionError) as caught:
        check_reached(options, "the log in x", 20)
    time = "if that is a time in milliseconds, write 2026-01-05T08:00:00Z"
    assert str(caught.value) == f"endingOffsets: 1767600000000 {words}, or latest; {time}"
    options = parse_options({"path": "x", "endingOffsets": str(2**63 - 1)})
    with pytest.raises(OptionError, match=r"or latest$"):
        check_reached(options, "the log in x", 20)
