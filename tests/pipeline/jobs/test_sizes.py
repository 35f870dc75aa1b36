from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs.sizes import BATCH_HEADERS, SCHEMAS, tables
from quorate.records.batch import encode_batch, iter_batches
from quorate.records.ids import TopicId
from quorate.records.metadata import encode_record, record_version
from quorate.records.record_types.cluster import ConfigRecord
from quorate.records.record_types.topics import PartitionRecord, RemoveTopicRecord, TopicRecord
from quorate.storage import layout
from tests.pipeline.log_frames import (
    STOCK,
    Log,
    clock_seed,
    frame,
    has_schema,
    read_directory,
    rows_as_dicts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from quorate.records.metadata import KnownRecord
    from tests.pipeline.log_frames import Row


def alive(rows: Sequence[Row]) -> Counter[str]:
    """The records of each type that a snapshot at the end would keep, by keeping the state."""
    topics: dict[str, str] = {}
    state: dict[tuple[object, ...], str] = {}
    for row in rows:
        data, kind = row.data, str(row.record_type)
        key: tuple[object, ...]
        match kind:
            case "TopicRecord":
                topics[data["topicId"]] = data["name"]
                state["topic", data["topicId"]] = kind
            case "RemoveTopicRecord":
                name = topics.pop(data["topicId"])
                state = {
                    key: value
                    for key, value in state.items()
                    if data["topicId"] not in key and key[:3] != ("config", 2, name)
                }
            case "PartitionRecord":
                state["partition", data["topicId"], data["partitionId"]] = kind
            case "ConfigRecord":
                key = ("config", data["resourceType"], data["resourceName"], data["name"])
                state.pop(key, None)
                if data["value"] is not None:
                    state[key] = kind
            case "RegisterBrokerRecord":
                state["broker", data["brokerId"]] = kind
            case "UnregisterBrokerRecord":
                state.pop(("broker", data["brokerId"]), None)
            case "RegisterControllerRecord":
                state["controller", data["controllerId"]] = kind
            case "FeatureLevelRecord":
                state.pop(("feature", data["name"]), None)
                if data["featureLevel"] > 0:
                    state["feature", data["name"]] = kind
            case "ProducerIdsRecord" | "KRaftVersionRecord" | "VotersRecord":
                state[kind,] = kind
            case "UserScramCredentialRecord" | "RemoveUserScramCredentialRecord":
                key = ("scram", data["name"], data["mechanism"])
                state.pop(key, None)
                if not kind.startswith("Remove"):
                    state[key] = kind
            case "AccessControlEntryRecord" | "RemoveAccessControlEntryRecord":
                state.pop(("acl", data["id"]), None)
                if not kind.startswith("Remove"):
                    state["acl", data["id"]] = kind
            case "DelegationTokenRecord":
                state["token", data["tokenId"]] = kind
            case "RemoveDelegationTokenRecord":
                state.pop(("token", data["tokenId"]), None)
            case "ClientQuotaRecord":
                key = ("quota", str(data["entity"]), data["key"])
                state.pop(key, None)
                if not data["remove"]:
                    state[key] = kind
    return Counter(state.values())


def check(spark: SparkSession, rows: list[Row], log_bytes: int, batch_count: int) -> None:
    """Sums are the files' sizes, counts those of a walk."""
    got = {name: rows_as_dicts(table) for name, table in tables(frame(spark, rows), {}).items()}
    by_type = {row["record_type"]: row for row in got["by_type"]}
    assert sum(row["bytes"] for row in by_type.values()) == log_bytes
    assert by_type[BATCH_HEADERS]["record_count"] == batch_count
    of_log = [row for row in rows if not row.from_snapshot]
    counts = Counter(row.record_type for row in of_log)
    assert {
        name: row["record_count"]
        for name, row in by_type.items()
        if name != BATCH_HEADERS and row["record_count"]
    } == counts
    expected = alive(rows)
    assert {
        name: row["live_count"] for name, row in by_type.items() if row["live_count"]
    } == expected
    topics = Counter(row.data["topicId"] for row in of_log if "topicId" in row.data)
    told = {row["topic_id"]: row["record_count"] for row in got["by_topic"] if row["record_count"]}
    assert told == topics
    assert sum(row["share"] for row in by_type.values()) == pytest.approx(1)


def written(folder: Path, batches: Sequence[Sequence[KnownRecord]]) -> tuple[int, int]:
    """A segment of these batches: its size, and the next offset."""
    out, offset = bytearray(), 0
    for records in batches:
        values = [encode_record(each, record_version(type(each), 30)) for each in records]
        out += encode_batch(values, timestamp_ms=1000, base_offset=offset, epoch=1)
        offset += len(records)
    (folder / layout.segment_name(0)).write_bytes(out)
    return len(out), offset


def test_random_logs_of_large_batches_are_counted_to_the_byte(
    spark: SparkSession, tmp_path: Path
) -> None:
    draw = random.Random(clock_seed())
    batches: list[list[KnownRecord]] = []
    topics: list[tuple[TopicId, str]] = []
    for _ in range(draw.randint(3, 9)):
        records: list[KnownRecord] = []
        for _ in range(draw.choice([1, 5, 60, 70])):
            name, topic_id = f"t{draw.randint(0, 9)}", TopicId(draw.randbytes(16))
            taken = [topic for topic in topics if topic[1] == name]
            if taken:
                records.append(RemoveTopicRecord(topic_id=taken[0][0]))
                topics.remove(taken[0])
                continue
            records.append(TopicRecord(name=name, topic_id=topic_id))
            records += [
                PartitionRecord(
                    partition_id=0,
                    topic_id=topic_id,
                    replicas=tuple(range(draw.choice([1, 3, 4000]))),
                    isr=(1,),
                    leader=1,
                    leader_epoch=0,
                    partition_epoch=0,
                ),
                ConfigRecord(
                    resource_type=2,
                    resource_name=name,
                    name="k",
                    value=draw.choice([None, "v" * draw.choice([1, 9000])]),
                ),
            ]
            topics.append((topic_id, name))
        batches.append(records)
    log_bytes, end = written(tmp_path, batches)
    rows = read_directory(tmp_path)
    assert len(rows) == end
    check(spark, rows, log_bytes, len(batches))


@pytest.mark.parametrize("directory", STOCK)
def test_stock_logs_are_counted_to_the_byte(
    spark: SparkSession, kafka_fixtures: Path, directory: str
) -> None:
    folder = kafka_fixtures / directory
    rows = read_directory(folder)
    first = min((row.offset for row in rows if not row.from_snapshot), default=0)
    batches = [
        header
        for path in folder.iterdir()
        if layout.parse_segment(path.name) is not None
        for _, header in iter_batches(path.read_bytes())
        if header.base_offset >= first
    ]
    check(spark, rows, sum(header.size_bytes for header in batches), len(batches))


def test_a_type_that_only_a_snapshot_has_takes_no_bytes_of_the_log(spark: SparkSession) -> None:
    log = Log(offset=500)
    log.snapshot([("TopicRecord", {"name": "t", "topicId": "a"})])
    rows = rows_as_dicts(tables(frame(spark, log.rows), {})["by_type"])
    assert [(row["record_type"], row["bytes"], row["share"]) for row in rows] == [
        (BATCH_HEADERS, 0, None),
        ("TopicRecord", 0, None),
    ]
    assert [row["live_count"] for row in rows] == [0, 1]


def test_the_schemas(spark: SparkSession) -> None:
    for name, table in tables(frame(spark, []), {}).items():
        assert has_schema(table, SCHEMAS[name])
