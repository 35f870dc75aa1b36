"""Voters that are 300 ms apart, with TLS: they find each other, elect, commit and follow."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from tests.integration.far_away import FarAway
from tests.integration.security.secure_quorum import SecureQuorum
from tests.integration.security.test_quorum import set_config
from tests.ports import free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.cli.local_quorum import NodePlan
    from tests.integration.security.stores import Stores

ONE_WAY_S = 0.15
# Ten and twenty times the way there and back, as the documentation says.
FITTING = {
    "controller.quorum.election.timeout.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "6000",
    "controller.quorum.request.timeout.ms": "6000",
}


class FarQuorum(SecureQuorum):
    """A quorum whose nodes are reached by ports behind which there is a long way to them."""

    def __init__(self, root: Path, stores: Stores) -> None:
        super().__init__(root, stores)
        self.ports = dict(zip(self.nodes, free_ports(len(self.nodes)), strict=True))

    def environment(self, node: NodePlan) -> dict[str, str]:
        settings = {
            "listeners": f"GRPC://127.0.0.1:{self.ports[node.node_id]}",
            "advertised.listeners": f"GRPC://127.0.0.1:{node.port}",
            **FITTING,
        }
        names = {f"QUORATE_{key.upper().replace('.', '_')}": v for key, v in settings.items()}
        return super().environment(node) | names


async def test_voters_far_apart_are_a_quorum(tmp_path: Path, stores: Stores) -> None:
    quorum = FarQuorum(tmp_path / "quorum", stores)
    async with AsyncExitStack() as ways:
        for node in quorum.nodes.values():
            way = FarAway(node.port, quorum.ports[node.node_id], ONE_WAY_S)
            await ways.enter_async_context(way)
        async with quorum:
            first = (await quorum.leader()).leader
            await quorum.client.write(set_config("1"))
            await quorum.assert_logs_agree()
            # No voter has timed out on the leader since.
            assert (await quorum.leader()).leader.epoch == first.epoch
            # And another takes its place.
            assert first.leader_id is not None
            await quorum.kill(first.leader_id)
            await quorum.leader(above_epoch=first.epoch)
