"""Controllers that moved, or whose quorum did while they were down, find each other.

See rule `leader_discovery`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.records.errors import ErrorCode
from tests.integration.disks import log_end
from tests.integration.membership.members import Members
from tests.integration.quorum import DEADLINE_S, STEADY
from tests.integration.security.test_quorum import set_config
from tests.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from quorate.cli.local_quorum import NodePlan


class Movers(Members):
    """Nodes that may listen elsewhere than their properties say."""

    def __init__(
        self, root: Path, overrides: Mapping[str, str] | None = None, *, voters: int
    ) -> None:
        self.ports: dict[int, int] = {}
        super().__init__(root, overrides, voters=voters)

    def environment(self, node: NodePlan) -> dict[str, str]:
        moved = self.ports.get(node.node_id)
        settings = super().environment(node)
        if moved is not None:
            settings["QUORATE_LISTENERS"] = f"GRPC://{node.host}:{moved}"
        return settings

    async def is_followed_by(self, node_id: int) -> None:
        """Wait until a node follows a leader that commits."""

        async def check() -> bool:
            address = (self.all_nodes[node_id].host, self.port(node_id))
            answer = await self.client.try_describe_at(address, 0.5)
            if isinstance(answer, str) or answer.leader.leader_id is None:
                return False
            leader_id = int(answer.leader.leader_id)
            leader = (self.all_nodes[leader_id].host, self.port(leader_id))
            answer = await self.client.try_describe_at(leader, 0.5)
            return (
                not isinstance(answer, str)
                and answer.error is ErrorCode.NONE
                and answer.high_watermark is not None
                and any(
                    state.key.node_id == node_id and state.last_fetch_ms
                    for state in (*answer.voters, *answer.observers)
                )
            )

        await self.eventually(f"node {node_id} follows", check)

    def port(self, node_id: int) -> int:
        return self.ports.get(node_id, self.all_nodes[node_id].port)


async def test_a_voter_finds_the_quorum_that_was_replaced_while_it_was_down(tmp_path: Path) -> None:
    async with Movers(tmp_path, voters=3) as members:
        await members.settled()
        # It follows, so that its disk names a leader that will be gone.
        late = await members.follower_id()
        await members.ready_to_change(late, is_voter=True)
        await members.kill(late)
        await members.remove(late)
        gone = [node_id for node_id in (1, 2, 3) if node_id != late]
        for node_id in (4, 5):
            await members.bring_up(node_id)
            await members.add(node_id)
        for node_id in gone:
            await members.remove(node_id)
        await members.voters_become(4, 5)
        await members.kill(*gone)
        await members.start(late)
        await members.is_followed_by(late)


async def test_two_voters_find_each_other_when_the_one_that_is_behind_has_moved(
    tmp_path: Path,
) -> None:
    # The leader has time to append before it misses its follower and steps down.
    async with Movers(tmp_path, STEADY, voters=2) as members:
        await members.client.write(set_config("1"))
        leader_id = await members.leader_id()
        behind = 3 - leader_id
        await members.kill(behind)
        # It cannot be committed, so no caller gets it; but it is in the leader's log. A client
        # that looks for the leader may ask the one that was killed, and learn nothing of it.
        leader = members.all_nodes[leader_id].address
        writing = asyncio.ensure_future(
            members.client.write_to(leader, set_config("2"), DEADLINE_S)
        )

        async def is_ahead() -> bool:
            return log_end(members.all_nodes[leader_id]) > log_end(members.all_nodes[behind])

        await members.eventually("the leader is ahead", is_ahead)
        writing.cancel()
        await members.kill(leader_id)
        members.ports[behind] = free_ports(1)[0]
        await members.start(leader_id)
        await members.start(behind)
        await members.is_followed_by(behind)
