"""Three of five real controllers are asked to stop at one moment: a majority stays throughout."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.controller.topics.messages import NewTopic
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from tests.integration.admin.sidecars import sidecar_of
from tests.integration.quorum import STEADY, Quorum

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.admin.sidecars import Sidecar

# How long a hook may wait on the busiest machine; no hook should need it.
PATIENCE = {"admin.request.timeout.ms": "300000"}


async def test_commits_go_on_while_three_of_five_stop_in_turn(tmp_path: Path) -> None:
    async with Quorum(tmp_path / "quorum", STEADY, controllers=5) as quorum:
        await quorum.register_brokers()
        leader_id = await quorum.leader_id()
        told = [leader_id, *[i for i in quorum.nodes if i != leader_id][:2]]
        async with (
            sidecar_of(quorum, told[0], tmp_path, PATIENCE) as first,
            sidecar_of(quorum, told[1], tmp_path, PATIENCE) as second,
            sidecar_of(quorum, told[2], tmp_path, PATIENCE) as third,
        ):
            sidecars = dict(zip(told, (first, second, third), strict=True))
            await _stop_in_turn(quorum, sidecars)
        assert len((await quorum.leader()).voters) == 5
        await quorum.assert_logs_agree()


async def _stop_in_turn(quorum: Quorum, sidecars: dict[int, Sidecar]) -> None:
    down: list[int] = []
    changed = asyncio.Condition()

    async def hook_and_stop(node_id: int) -> None:
        """Do as a kubelet does: run the hook, and then send SIGTERM."""
        prepared = await sidecars[node_id].stub.PrepareStop(pb.PrepareStopRequest())
        assert (prepared.has_leave, prepared.without_leave) == (True, "")
        async with changed:
            down.append(node_id)
            assert len(down) <= 2, f"{down} of five are down"
            changed.notify_all()
        await quorum.stop(node_id)

    async with asyncio.TaskGroup() as hooks:
        stops = {node_id: hooks.create_task(hook_and_stop(node_id)) for node_id in sidecars}
        async with changed:
            await changed.wait_for(lambda: len(down) == 2)
        gone = list(down)
        for node_id in gone:
            await stops[node_id]
        # A majority is there, and no further controller may go.
        await quorum.create(NewTopic("while-two-are-down"))
        assert sum(stop.done() for stop in stops.values()) == 2
        async with changed:
            down.clear()
        for node_id in gone:
            await quorum.start(node_id)
    assert len(down) == 1
    await quorum.create(NewTopic("while-one-is-down"))
    await quorum.start(down[0])
