"""Controllers of one quorum that differ in the code that speaks gRPC for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import CreateTopics, NewTopic
from quorate.settings.transport import Transport
from tests.integration.quorum import STEADY, Quorum
from tests.integration.transports import VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.cli.local_quorum import NodePlan

ONE_OF_H2: Final = {1: Transport.H2, 2: Transport.GRPCIO, 3: Transport.GRPCIO}


class Mixed(Quorum):
    """Controller 1 has another transport than the others."""

    def environment(self, node: NodePlan) -> dict[str, str]:
        return super().environment(node) | {VARIABLE: ONE_OF_H2[node.node_id]}


async def test_controllers_and_clients_may_differ_in_who_speaks_for_them(tmp_path: Path) -> None:
    async with Mixed(tmp_path / "quorum", STEADY) as quorum:
        await quorum.register_brokers()
        servers = [node.address for node in quorum.nodes.values()]
        for leader_id in (1, 2, 1):
            if await quorum.leader_id() != leader_id:
                await quorum.cli("metadata-quorum", "transfer-leader", "--to", str(leader_id))
            for transport in Transport:
                async with ControllerClient(servers, transport=transport) as client:
                    await client.write(CreateTopics((NewTopic(f"{leader_id}-{transport}"),)))
        high_watermark = await quorum.assert_logs_agree()
        for node_id in quorum.nodes:
            names = {topic.name for topic in await quorum.topics_at(node_id, high_watermark)}
            assert names == {f"{i}-{transport}" for i in (1, 2) for transport in Transport}
        # One that was away follows a leader that speaks otherwise.
        await quorum.stop(1)
        await quorum.leader()
        await quorum.create(NewTopic("while-it-was-away"))
        await quorum.start(1)
        await quorum.assert_logs_agree()
