"""A directory that was formatted as a quorum of its own, for a cluster that has one.

See rule `sole_voter_conflict`.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from quorate.cli.local_quorum import format_node
from quorate.raft.messages import ElectionState
from quorate.records.ids import DirectoryId, Epoch, NodeId, ReplicaKey
from quorate.records.voters import Voter, VoterSet
from quorate.storage import layout
from quorate.storage.file_system import OsFileSystem
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.quorum_state import write_quorum_state
from tests.integration.membership.members import under_load
from tests.integration.quorum import DEADLINE_S

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.membership.members import Members


def found_a_quorum(members: Members, node_id: int, *, epoch: int = 0) -> None:
    """Format that node as the only voter of a quorum, as `--standalone` does.

    With an epoch it has led as many as that, as after so many starts.
    """
    node = members.all_nodes[node_id]
    endpoints = members.voter(node_id).endpoints
    shutil.rmtree(node.metadata_dir)
    key = ReplicaKey(NodeId(node_id), DirectoryId(bytes([7, node_id]) * 8))
    assert key.directory_id is not None
    voters = VoterSet.of([Voter(key, endpoints)])
    meta = MetaProperties(NodeId(node_id), members.plan.cluster_id, key.directory_id)
    format_node(node.metadata_dir, meta, voters)
    if epoch:
        write_quorum_state(
            OsFileSystem(),
            f"{node.metadata_dir}/{layout.LOG_DIR}/{layout.QUORUM_STATE}",
            ElectionState(Epoch(epoch), key.node_id, key),
            kraft_version=1,
            voters=voters,
        )


async def stands_down(members: Members, node_id: int) -> None:
    """Wait until that controller is not ready, and says why."""
    node = members.all_nodes[node_id]

    async def says_why() -> bool:
        answer = await members.client.try_describe_at(node.address, DEADLINE_S)
        is_told = not isinstance(answer, str) and any(
            "leads another quorum" in line for line in answer.remarks
        )
        return is_told and await members.is_ready(node_id) is False

    await members.eventually(f"node {node_id} stands down", says_why)
    rival = json.loads((node.metadata_dir / "rival").read_bytes())
    assert rival["leaderId"] in (1, 2, 3)


async def test_a_second_quorum_stands_down_and_the_first_goes_on(tmp_path: Path) -> None:
    async with under_load(tmp_path) as (members, load):
        found_a_quorum(members, 4)
        await members.bring_up(4)
        await stands_down(members, 4)
        await load.goes_on()
        # The other quorum's replica takes no part, no matter which voter leads next.
        await members.kill(await members.leader_id())
        await load.goes_on()
        await members.kill(4)
        await members.bring_up(4)
        await stands_down(members, 4)
        await load.goes_on()


async def test_a_second_quorum_of_a_later_epoch_stands_down(tmp_path: Path) -> None:
    """Its process was started often, or the quorum that it finds is young."""
    async with under_load(tmp_path) as (members, load):
        found_a_quorum(members, 4, epoch=1000)
        await members.bring_up(4)
        await stands_down(members, 4)
        await load.goes_on()
        assert (await members.leader()).leader.epoch < 1000


async def test_a_voters_place_that_is_formatted_as_a_quorum_stands_down(tmp_path: Path) -> None:
    """The leader calls it where the voter was."""
    async with under_load(tmp_path) as (members, load):
        victim = await members.follower_id()
        await members.kill(victim)
        found_a_quorum(members, victim)
        await members.bring_up(victim)
        await stands_down(members, victim)
        await load.goes_on()
