"""A quorum with two doors: TLS for peers and clients, plaintext for those on the same machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.client.controller_calls import RequestRefusedError
from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import DeleteTopics
from tests.integration.security.secure_quorum import SecureQuorum
from tests.integration.security.test_quorum import set_config
from tests.integration.transports import chosen
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.cli.local_quorum import NodePlan
    from tests.integration.security.stores import Stores


class TwoDoors(SecureQuorum):
    """Callers on the plaintext listener LOCAL have no names; they may change configs only."""

    def __init__(self, root: Path, stores: Stores) -> None:
        super().__init__(root, stores)
        self.local = dict(zip(self.nodes, free_ports(len(self.nodes)), strict=True))

    def environment(self, node: NodePlan) -> dict[str, str]:
        host, port = node.address
        local = self.local[node.node_id]
        return super().environment(node) | {
            "QUORATE_LISTENERS": f"GRPC://{host}:{port},LOCAL://{HOST}:{local}",
            "QUORATE_CONTROLLER_LISTENER_NAMES": "GRPC,LOCAL",
            "QUORATE_LISTENER_SECURITY_PROTOCOL_MAP": "GRPC:GRPC_SSL,LOCAL:GRPC",
            "QUORATE_AUTHORIZER_ALLOW_ALTER_CONFIGS": "User:ANONYMOUS",
            "QUORATE_AUTHORIZER_ALLOW_DESCRIBE": "User:ANONYMOUS",
        }


async def test_a_quorum_serves_tls_and_plaintext_beside_each_other(
    tmp_path: Path, stores: Stores
) -> None:
    async with TwoDoors(tmp_path / "quorum", stores) as quorum:
        await quorum.client.write(set_config("1"))
        leader_id = await quorum.leader_id()
        follower = next(node_id for node_id in quorum.nodes if node_id != leader_id)

        async def everybody_has_both() -> bool:
            described = await quorum.client.describe_quorum()
            names = [[each.name for each in voter.endpoints] for voter in described.voters]
            return names == [["GRPC", "LOCAL"]] * len(quorum.nodes)

        await quorum.eventually("every voter is known by both listeners", everybody_has_both)
        async with ControllerClient(
            [(HOST, quorum.local[follower])], timeout_ms=60_000, transport=chosen()
        ) as client:
            # A follower names the leader's plaintext listener to a caller on its own.
            await client.write(set_config("2"))
            described = await client.describe_quorum()
            assert described.leader.endpoints[0].port == quorum.local[leader_id]
            firsts = {voter.endpoints[0].port for voter in described.voters}
            assert firsts == set(quorum.local.values())
            with pytest.raises(RequestRefusedError, match="User:ANONYMOUS may not call"):
                await client.write(DeleteTopics(("t",)))
        # TLS is not optional where it is spoken.
        async with ControllerClient(
            [quorum.nodes[leader_id].address], timeout_ms=1_000, transport=chosen()
        ) as client:
            with pytest.raises(Exception, match="it may want TLS"):
                await client.write(set_config("3"))
        await quorum.assert_logs_agree()
