"""A thousand topic definitions survive the death of the leader and a restart from a snapshot."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.integration.disks import snapshots
from tests.integration.quorum import DEADLINE_S

if TYPE_CHECKING:
    from tests.integration.quorum import Quorum

MAKER = Path(__file__).parents[2] / "deploy" / "examples" / "make_topics.py"
COUNT = 1200


def definitions() -> dict[str, dict[str, object]]:
    """The definitions of the example's maker, with configs as Kafka keeps them: strings."""
    spec = importlib.util.spec_from_file_location("make_topics", MAKER)
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    made: dict[str, dict[str, object]] = maker.definitions(COUNT)
    return made


def wanted(topics: dict[str, dict[str, object]]) -> dict[str, object]:
    shapes: dict[str, object] = {}
    for name, definition in topics.items():
        configs = definition["configs"]
        assert isinstance(configs, dict)
        strings = {key: str(value) for key, value in configs.items()}
        shapes[name] = (definition["partitions"], definition["replication"], strings)
    return shapes


async def described(quorum: Quorum, node_id: int, min_offset: int) -> dict[str, object]:
    """The description of all topics by one controller, and no other, on the command line."""
    node = quorum.nodes[node_id]
    text = await quorum.cli(
        *("topics", "describe", "--controller", f"{node.address[0]}:{node.port}"),
        *("--min-offset", str(min_offset), "-o", "json"),
    )
    document = json.loads(text)
    assert document["offset"] >= min_offset
    return {
        topic["name"]: (
            len(topic["partitions"]),
            len(topic["partitions"][0]["replicas"]),
            topic["configs"],
        )
        for topic in document["topics"]
    }


async def assert_everywhere(quorum: Quorum, shapes: dict[str, object]) -> None:
    high_watermark = await quorum.assert_logs_agree()
    for node_id in quorum.nodes:
        assert await described(quorum, node_id, high_watermark) == shapes


async def test_a_file_of_topics_survives_the_leader_and_a_restart(
    small_log_quorum: Quorum, tmp_path: Path
) -> None:
    quorum = small_log_quorum
    topics = definitions()
    shapes = wanted(topics)
    file = tmp_path / "topics.yaml"
    file.write_text(yaml.safe_dump({"topics": topics}, sort_keys=False), encoding="utf-8")
    leader_id = await quorum.leader_id()

    applying = await quorum.spawn_cli("topics", "create", "--file", str(file))
    assert applying.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        first = await applying.stdout.readline()
    await quorum.kill(leader_id)
    assert applying.returncode is None
    async with asyncio.timeout(DEADLINE_S):
        stdout, stderr = await applying.communicate()
    assert applying.returncode == 0, stderr.decode()
    reported = (first + stdout).decode().splitlines()
    assert len(reported) == COUNT

    await quorum.start(leader_id)
    await assert_everywhere(quorum, shapes)

    before = await quorum.leader()
    await quorum.stop(*quorum.nodes)
    assert all(snapshots(node) for node in quorum.nodes.values())
    for node_id in quorum.nodes:
        await quorum.start(node_id)
    await quorum.leader(above_epoch=before.leader.epoch)
    await assert_everywhere(quorum, shapes)
    again = await quorum.cli("topics", "create", "--file", str(file))
    assert {line.split(" ", 2)[2] for line in again.splitlines()} == {"exists already, as defined."}
