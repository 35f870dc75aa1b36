"""Batches as rows: the value of each column, and the number of rows in memory."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source import frame_builder
from quorate.pipeline.source.damage import DamageError
from quorate.pipeline.source.frame_schema import TIME_MAX_MS, TIME_MIN_MS
from quorate.records.batch import encode_batch
from quorate.records.codec.varint import encode_uvarint
from quorate.records.control import SnapshotFooter, encode_control_batch
from tests.pipeline.source.logs import (
    START_MS,
    LogWriter,
    offsets,
    partition,
    rows,
    small_log,
    topic,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_row_says_all_that_the_file_does(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    row = rows(log.root)[1]
    assert row["timestamp"].timestamp() * 1000 == START_MS + 1000
    del row["timestamp"]
    assert row == {
        "offset": 1,
        "leader_epoch": 1,
        "is_control": False,
        "record_type": "TopicRecord",
        "record_version": 0,
        "key": None,
        "value": topic(0),
        "payload": '{"name":"topic-0","topicId":"AAAAAAAAAAAAAAAAAAAAAA"}',
        "batch_base_offset": 1,
        "segment": "00000000000000000000.log",
        "crc_valid": True,
        "source_node": 1,
    }


def test_control_records_have_their_messages_names_or_are_left_out(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    row = rows(log.root)[0]
    assert (row["is_control"], row["record_type"]) == (True, "LeaderChangeMessage")
    assert json.loads(row["payload"])["leaderId"] == 1
    without = rows(log.root, includeControlRecords="false")
    assert offsets(without) == [n for n in range(21) if n not in (0, 10)]


def test_a_type_of_a_newer_release_keeps_its_number_and_its_bytes(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    log.write([b"\x01" + encode_uvarint(200) + b"\x02" + b"body"])
    (row,) = rows(log.root)
    assert (row["record_type"], row["record_version"]) == ("Unknown(200)", 2)
    assert base64.b64decode(json.loads(row["payload"])) == b"body"


@pytest.mark.parametrize("options", [{}, {"recordTypes": "TopicRecord", "payload": "control"}])
def test_a_version_of_a_newer_release_is_told_and_the_records_beside_it_are_read(
    tmp_path: Path, options: dict[str, str]
) -> None:
    """With its type alone it would pass for a topic without a name."""
    log = LogWriter(tmp_path / "c")
    newer = b"\x01\x02\x63" + topic(7)[3:]
    log.write([topic(1), newer, partition(3)])
    found = rows(log.root, **options)
    assert [row["record_type"] for row in found] == ["TopicRecord", None, "PartitionRecord"]
    assert (found[1]["value"], found[1]["crc_valid"]) == (newer, True)
    said = json.loads(found[1]["payload"])["error"]
    assert "a TopicRecord of version 99, and this release knows versions 0 to 0" in said
    with pytest.raises(DamageError, match="version 99"):
        rows(log.root, onDamage="fail", **options)


@pytest.mark.parametrize("at_ms", [-(2**63), -62_135_596_800_001, 253_402_300_800_000, 2**63 - 1])
def test_a_time_that_no_calendar_has_is_the_first_or_last_that_can_be_shown(
    tmp_path: Path, at_ms: int
) -> None:
    log = LogWriter(tmp_path / "c")
    control = encode_control_batch([SnapshotFooter()], timestamp_ms=at_ms, base_offset=1, epoch=1)
    log.file.write_bytes(encode_batch([topic(1)], timestamp_ms=at_ms, epoch=1) + control)
    shown = {row["timestamp"] for row in rows(log.root)}
    limit = TIME_MAX_MS if at_ms > 0 else TIME_MIN_MS
    assert shown == {datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=limit)}


def test_typed_columns_are_null_in_rows_of_other_types(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    found = rows(log.root, recordTypes="PartitionRecord,TopicRecord", payload="false")
    assert len(found) == 21
    assert {row["payload"] for row in found} == {None}
    assert found[1]["topic_record"] == {"name": "topic-0", "topicId": "A" * 22}
    assert found[1]["partition_record"] is None
    typed = found[3]["partition_record"]
    assert (typed["partitionId"], typed["isr"], typed["lastKnownElr"]) == (1, [1, 2, 3], None)
    assert typed["directories"][0] == "AQEBAQEBAQEBAQEBAQEBAQ"
    only = rows(log.root, recordTypes="TopicRecord", recordTypesOnly="true")
    assert [row["topic_record"]["name"] for row in only] == ["topic-0", "topic-1", "topic-2"]


def test_columns_are_those_that_were_asked_for(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    found = rows(log.root, columns="record_type,offset", recordTypes="TopicRecord")
    assert list(found[0]) == ["record_type", "offset", "topic_record"]


def test_damage_fails_where_that_is_asked_for(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    log.file.write_bytes(log.file.read_bytes()[:-1])
    with pytest.raises(DamageError, match=rf"{log.file.name}: byte \d+: "):
        rows(log.root, onDamage="fail")


def test_arrow_batches_are_bounded_by_rows_and_by_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogWriter(tmp_path / "c")
    log.write([partition(0)] * 3000)
    monkeypatch.setattr(frame_builder, "ROWS_MAX", 1)
    assert len(rows(log.root)) == 3000
