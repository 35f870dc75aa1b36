"""Two processes on copies of one voter's directory (rule `one_process_per_voter`)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.integration.membership.members import under_load

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.cli.local_quorum import NodePlan
    from tests.integration.membership.members import Members

CLONE = 5


def clone(members: Members, victim: int) -> NodePlan:
    """Copy a stopped voter's directory, and configure the copy at the ports of another node."""
    place = members.all_nodes[CLONE]
    node = replace(place, node_id=victim)
    shutil.rmtree(place.metadata_dir)
    shutil.copytree(members.all_nodes[victim].metadata_dir, place.metadata_dir)
    properties = node.properties(members.plan.bootstrap_servers) | members.overrides
    lines = "".join(f"{key}={value}\n" for key, value in properties.items())
    node.properties_path.write_text(lines, encoding="utf-8")
    return node


async def says(members: Members, node: NodePlan, words: str) -> bool:
    answer = await members.client.try_describe_at(node.address, 5.0)
    return not isinstance(answer, str) and any(words in line for line in answer.remarks)


async def test_a_copy_of_a_voter_is_refused_and_told_of(tmp_path: Path) -> None:
    async with under_load(tmp_path) as (members, load):
        victim = await members.follower_id()
        await members.kill(victim)
        copy = clone(members, victim)
        await members.bring_up(victim)

        async def is_back() -> bool:
            return await members.is_ready(victim) is True

        await members.eventually("the voter is back", is_back)
        members.nodes[CLONE] = members.all_nodes[CLONE] = copy
        await members.start(CLONE)

        async def is_told() -> bool:
            leader = members.all_nodes[await members.leader_id()]
            return await says(members, leader, "two processes are voter")

        async def is_refused() -> bool:
            is_why = await says(members, copy, "the leader refuses this process")
            return is_why and await members.is_ready(CLONE) is False

        await members.eventually("the leader tells of two processes", is_told)
        await members.eventually("the copy is refused", is_refused)
        assert await members.is_ready(victim)
        described = await members.cli(
            "metadata-quorum", "describe", "--replication", "--output", "json"
        )
        states = [(row["NodeId"], row["Status"]) for row in json.loads(described)]
        assert (victim, "Refused") in states
        assert (victim, "Follower") in states
        quorum = await members.leader()
        entry = next(v for v in quorum.voters if v.key.node_id == victim)
        assert [e.port for e in entry.endpoints] == [members.all_nodes[victim].port]
        await load.goes_on()
        # Acknowledged writes are on the disks of the voters, no matter which process stops.
        await members.kill(CLONE)
        await members.kill(await members.leader_id())
        await load.goes_on()


async def test_a_voter_that_restarts_is_taken_at_once(tmp_path: Path) -> None:
    async with under_load(tmp_path) as (members, load):
        first, second = await members.follower_id(), await members.leader_id()
        third = next(i for i in (1, 2, 3) if i not in (first, second))
        # With the third away each commit needs the one that restarts.
        await members.kill(third)
        for _ in range(2):
            await members.kill(first)
            await members.bring_up(first)
            await load.goes_on()
        quorum = await members.leader()
        assert not quorum.refused
