"""Logs with one fault each: batches, streams and commands give the right answer or an error."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from quorate.controller.topics.messages import NewTopic
from quorate.pipeline.session import session
from quorate.records.batch import read_header
from quorate.storage.layout import LOG_DIR
from tests.integration.quorum import STEADY, Quorum
from tests.pipeline.faulty_inputs import FAULTS, answers, batch_rows, write_inputs
from tests.pipeline.source.logs import START_MS, STEP_MS
from tests.pipeline.source.test_live_log import read
from tests.pipeline.zones import ZONES, submitted_in

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.pipeline.faulty_inputs import Inputs

END = 41
# What each fault costs where no other directory has it.
LOST = {
    "whole": (),
    "magic": range(30, 33),
    "record": range(17, 20),
    "epoch": (),
    "missing segment": range(13, 26),
    "closed segment": range(13, 26),
    "snapshot ahead": range(26, END),
    "deleted history": range(13),
    "torn tail": range(39, END),
}
# What ends the stream of one directory, which another attempt may read.
ENDS = {
    "missing segment": "00000000000000000013.log",
    "closed segment": "00000000000000000013.log",
    "snapshot ahead": "0000000003.checkpoint stands for them",
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def found(
    spark: SparkSession, inputs: Inputs, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """The answers of one process, in UTC."""
    return answers(spark, inputs, tmp_path_factory.mktemp("answers"))


def records(rows: list[list[Any]], node: int | None = None) -> list[int]:
    """The offsets of the records of a directory's log, as often as they are given."""
    return sorted(
        offset
        for offset, epoch, at_ms, kind, _, told in rows
        if kind not in {None, "damaged"} and at_ms == at_of(offset) and node in {None, told}
    )


def at_of(offset: int) -> int:
    """The time of the batch with this record: its first offset counts seconds."""
    starts = [*(start + each for start in (0, 13, 26) for each in (0, 1, 4, 7, 10)), 39]
    return START_MS + max(each for each in starts if each <= offset) * STEP_MS


def without_nodes(found: dict[str, Any]) -> dict[str, Any]:
    """The answers but for whose directory a batch's rows are from."""
    return {**found, "log: batch": [row[:-1] for row in found["log: batch"]]}


@pytest.mark.parametrize("name", FAULTS)
def test_a_batch_gives_what_each_directory_has_and_tells_the_rest(
    found: dict[str, Any], name: str
) -> None:
    left = [offset for offset in range(END) if offset not in LOST[name]]
    for count in (1, 3):
        rows = found[f"{name} {count}: batch"]
        assert records(rows, 1) == left
        for node in range(2, count + 1):
            assert records(rows, node) == list(range(END))
        told = [row for row in rows if row[3] is None]
        assert bool(told) == (name not in {"whole", "deleted history"})


@pytest.mark.parametrize("name", FAULTS)
def test_a_lake_of_one_directory_has_what_it_has_and_tells_the_rest(
    found: dict[str, Any], name: str
) -> None:
    answer = found[f"{name} 1: stream"]
    left = [offset for offset in range(END) if offset not in LOST[name]]
    assert {row[5] for row in answer["rows"] if row[3] != "damaged"} <= {"2026-01-05"}
    if name in ENDS:
        assert ENDS[name] in answer["error"]
        assert records(answer["rows"]) == left[: len(records(answer["rows"]))]
        return
    assert answer["error"] == ""
    assert records(answer["rows"]) == left
    told = [row for row in answer["rows"] if row[3] == "damaged"]
    assert bool(told) == (name in {"magic", "record", "epoch"})


@pytest.mark.parametrize("name", FAULTS)
def test_what_one_of_three_directories_has_lost_costs_a_lake_nothing(
    found: dict[str, Any], name: str
) -> None:
    assert found[f"{name} 3: stream"] == found["whole 1: stream"]
    assert records(found[f"{name} 3: stream"]["rows"]) == list(range(END))


@pytest.mark.parametrize("name", FAULTS)
def test_nor_does_it_cost_a_job(found: dict[str, Any], name: str) -> None:
    epochs = [json.loads(line) for line in found[f"{name} 3: elections"]]
    assert sorted(epoch["epoch"] for epoch in epochs) == [1, 2, 3]
    assert found[f"{name} 3: elections"] == found["whole 1: elections"]


@pytest.mark.parametrize("zone", ZONES)
def test_answers_are_the_same_in_any_zone(
    spark: SparkSession,
    inputs: Inputs,
    found: dict[str, Any],
    tmp_path: Path,
    pytestconfig: pytest.Config,
    zone: str,
) -> None:
    """Each zone is asked for a third of the inputs, and for all of them with --every-job."""
    names = sorted(inputs)
    if not pytestconfig.getoption("--every-job"):
        names = names[ZONES.index(zone) :: len(ZONES)]
    asked = {name: inputs[name] for name in names}
    with submitted_in(zone, spark):
        for name in asked:
            assert batch_rows(spark, inputs[name]) == found[f"{name}: batch"]
        with session() as opened:
            told = answers(opened, asked, tmp_path)
    assert told == {key: each for key, each in found.items() if key.partition(":")[0] in asked}


async def test_a_live_quorum_answers_as_its_disk_in_any_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    async with Quorum(tmp_path / "q", STEADY, controllers=1) as quorum:
        await quorum.register_brokers()
        await quorum.create(NewTopic("a", 3, 3))
        await quorum.assert_logs_agree()
        (node,) = quorum.nodes.values()
        # A quorum does not send what was there before its first record.
        first = {"startingOffsets": "0"}
        disk = {"log": first | {"path": str(node.metadata_dir)}}
        live = {"log": first | {"bootstrap.servers": quorum.bootstrap_servers}}
        on_disk = answers(spark, disk, tmp_path / "disk")
        for zone in ZONES:
            with submitted_in(zone, spark), session() as opened:
                found = await asyncio.to_thread(answers, opened, live, tmp_path / zone)
            assert without_nodes(found) == without_nodes(on_disk)
            assert len(found["log: batch"]) > 4


def below(found: dict[str, Any], end: int) -> list[list[list[Any]]]:
    """The rows of a batch and of a stream below an offset, but for their directory."""
    assert found["log: stream"]["error"] == ""
    return [
        [row[:5] for row in rows if row[0] < end]
        for rows in (found["log: batch"], found["log: stream"]["rows"])
    ]


async def test_damage_on_a_followers_disk_of_a_live_quorum_costs_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    async with Quorum(tmp_path / "q", STEADY) as quorum:
        await quorum.register_brokers()
        await quorum.create(NewTopic("a", 3, 3))
        end = await quorum.assert_logs_agree()
        leader = await quorum.leader_id()
        node = next(each for node_id, each in quorum.nodes.items() if node_id != leader)
        first = {"startingOffsets": "0"}
        disk = {"log": first | {"path": str(node.metadata_dir)}}
        on_disk = answers(spark, disk, tmp_path / "disk")
        flip_record(node.metadata_dir, end // 2)
        live = {"log": first | {"bootstrap.servers": quorum.bootstrap_servers}}
        with submitted_in(ZONES[0], spark), session() as opened:
            found = await asyncio.to_thread(answers, opened, live, tmp_path / "live")
        assert below(found, end) == below(on_disk, end)
        assert len(below(found, end)[0]) == end


async def test_a_leader_with_a_damaged_disk_gives_way_and_a_reader_goes_on(
    tmp_path: Path,
) -> None:
    async with Quorum(tmp_path / "q", STEADY) as quorum:
        await quorum.register_brokers()
        # More than a leader has in memory: it reads the first records of its disk.
        for number in range(20):
            await quorum.create(NewTopic(f"t{number}", 2000, 3))
        await quorum.assert_logs_agree()
        leader = await quorum.leader_id()
        some = {"startingOffsets": "0", "endingOffsets": "500"}
        found = await asyncio.to_thread(read, quorum.bootstrap_servers, **some)
        flip_record(quorum.nodes[leader].metadata_dir, 100)
        assert await asyncio.to_thread(read, quorum.bootstrap_servers, **some) == found
        assert len(found) == 500
        assert await quorum.leader_id() != leader


def flip_record(metadata_dir: Path, offset: int) -> None:
    """Turn over a bit behind the CRC of the batch with this offset."""
    (segment,) = (metadata_dir / LOG_DIR).glob("*.log")
    at, data = 0, segment.read_bytes()
    while (header := read_header(data, at)).last_offset < offset:
        at += header.size_bytes
    # Its controller appends to the file.
    with segment.open("r+b") as file:
        file.seek(at + header.size_bytes - 1)
        file.write(bytes([data[at + header.size_bytes - 1] ^ 1]))
