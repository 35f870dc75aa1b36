"""Leaders that contradict what is committed: what their followers keep, and what they do.

See rule `leader_contradiction`. The leader's process is sound, its answers to the chosen followers
are not, as if another program had its place. What the followers hold is checked by the invariants
of every world.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from quorate.raft.messages import FetchRequest, FetchResponse
from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.sim.checkers.liveness import is_caught_up
from quorate.sim.cluster import Cluster
from quorate.sim.engine.quorum_setup import build
from quorate.sim.sim_options import DiskOptions, WorldOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.api import RequestFailure, SendRequest
    from quorate.raft.messages import PeerResponse
    from quorate.sim.engine.network import PeerCaller
    from quorate.sim.engine.node import SimulatedNode
    from quorate.sim.views import NodeView

LIMIT_MS = 60_000
FALLEN = Offset(1)
FIRST = OffsetAndEpoch(epoch=Epoch(1), offset=Offset(1))
LIES: dict[str, Callable[[FetchResponse], FetchResponse]] = {
    "high watermark falls": lambda sound: replace(sound, high_watermark=FALLEN),
    "diverges below it": lambda sound: replace(sound, records=None, diverging=FIRST),
    "snapshot of less": lambda sound: replace(sound, records=None, snapshot_id=FIRST),
}


class Liar(Cluster):
    """A world in which one node's Fetch answers are changed on their way to some others."""

    liar: SimulatedNode | None = None
    lie: Callable[[FetchResponse], FetchResponse]
    believers: tuple[int, ...] = ()
    asked = 0

    def send_response(
        self, source: NodeView, caller: PeerCaller, response: PeerResponse | RequestFailure
    ) -> None:
        is_lie = source is self.liar and caller.node_id in self.believers
        if is_lie and isinstance(response, FetchResponse):
            response = self.lie(response)
        super().send_response(source, caller, response)

    def send_request(self, source: NodeView, effect: SendRequest) -> None:
        self.asked += isinstance(effect.request, FetchRequest) and source.node_id in self.believers
        super().send_request(source, effect)


def make(what: str) -> tuple[Liar, SimulatedNode, list[SimulatedNode]]:
    """Three voters with a committed write; who leads them, and who follows."""
    world = Liar(time.time_ns(), WorldOptions(voters=3, disks=DiskOptions(fsync_us=100)))
    build(world)
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world)), world.seed
    leader = world.leader()
    assert leader is not None
    assert leader.application.propose((1,), 40)
    assert world.run(LIMIT_MS, stop=lambda: 1 in world.oracle.acknowledged), world.seed
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world)), world.seed
    world.lie, world.liar = LIES[what], leader
    return world, leader, [node for node in world.nodes.values() if node is not leader]


@pytest.mark.parametrize("what", list(LIES))
def test_one_follower_is_told_lies_and_recovers_by_itself(what: str) -> None:
    world, leader, (victim, _) = make(what)
    end = victim.log.end
    world.believers = (victim.node_id,)
    world.run(world.now_ms + 5000)
    assert world.leader() is leader, f"{world.seed}: the others hear it and elect nobody else"
    assert not victim.core.has_live_leader, world.seed
    assert victim.log.end == end, world.seed
    assert any("does not believe" in line for line in victim.core.status_warnings()), world.seed
    assert world.asked < 40, f"{world.seed}: asked {world.asked} times in 5 s"
    # A log that diverges there belongs to another quorum, as long as the leader says so
    # (rule `sole_voter_conflict`).
    assert victim.core.replica.second_quorum.is_met is (what == "diverges below it"), world.seed
    world.believers = ()
    assert world.run(world.now_ms + 10_000, stop=lambda: victim.core.has_live_leader), world.seed
    assert leader.application.propose((2,), 40)
    assert world.run(world.now_ms + LIMIT_MS, stop=lambda: is_caught_up(world)), world.seed
    # Its vote rejections of the first election are still reported, and do not come from the leader.
    assert not any("does not believe" in line for line in victim.core.status_warnings()), world.seed


@pytest.mark.parametrize("what", list(LIES))
def test_a_leader_that_lies_to_all_is_replaced(what: str) -> None:
    world, leader, others = make(what)
    world.believers = tuple(node.node_id for node in others)

    def is_replaced() -> bool:
        return world.leader() in others

    assert world.run(world.now_ms + 30_000, stop=is_replaced), world.seed
    successor = world.leader()
    assert successor is not None
    assert world.run(LIMIT_MS * 2, stop=lambda: successor.application.is_active), world.seed
    assert 1 in world.oracle.acknowledged
    assert successor.log.end.epoch > Epoch(1)
    assert leader.log.end.offset >= 1


def test_these_worlds_see_a_follower_that_believes_everything() -> None:
    with patch(
        "quorate.raft.replication.response_validation.FetchResponseValidator.find_contradiction",
        lambda *_: None,
    ):
        world, _, (victim, _) = make("high watermark falls")
        world.believers = (victim.node_id,)
        world.run(world.now_ms + 5000)
        assert victim.core.has_live_leader, world.seed
