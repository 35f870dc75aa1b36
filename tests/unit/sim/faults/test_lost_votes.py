"""Votes that may be lost without two leaders of one epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft.messages import ElectionState
from quorate.records.ids import Epoch, NodeId
from quorate.records.voters import VoterSet
from quorate.sim.checkers.liveness import is_caught_up
from quorate.sim.cluster import Cluster
from quorate.sim.engine.quorum_setup import build
from quorate.sim.faults.lost_votes import (
    ELECTION_PATH,
    HISTORY_PATH,
    election_in,
    is_forgetting_safe,
    is_in_dispute,
    must_be_noticed,
)
from quorate.sim.sim_options import WorldOptions
from quorate.storage.quorum_state import encode_quorum_state

if TYPE_CHECKING:
    from quorate.sim.engine.node import SimulatedNode


@pytest.fixture
def nodes() -> list[SimulatedNode]:
    """Three voters in epoch 5, who have all voted for the first."""
    world = Cluster(1, WorldOptions())
    build(world)
    nodes = list(world.nodes.values())
    for node in nodes:
        node.kill()
        save(node, 5, nodes[0])
    return nodes


def save(node: SimulatedNode, epoch: int, voted: SimulatedNode | None) -> None:
    state = ElectionState(Epoch(epoch), None, None if voted is None else voted.key)
    data = encode_quorum_state(state, 1, VoterSet())
    node.disk.put_back(ELECTION_PATH, data)


def test_what_cannot_be_read_says_nothing() -> None:
    assert election_in(None) is None
    assert election_in(b"{") is None


def test_a_vote_may_be_forgotten_once_nobody_else_stands(nodes: list[SimulatedNode]) -> None:
    assert is_forgetting_safe(nodes, nodes[1])
    save(nodes[2], 5, nodes[2])
    assert not is_forgetting_safe(nodes, nodes[1])
    save(nodes[2], 6, nodes[2])
    assert is_forgetting_safe(nodes, nodes[1])


def test_a_vote_may_not_be_forgotten_while_somebody_may_still_stand(
    nodes: list[SimulatedNode],
) -> None:
    save(nodes[2], 4, None)
    assert not is_forgetting_safe(nodes, nodes[1])


def test_nothing_is_known_of_what_cannot_be_read(nodes: list[SimulatedNode]) -> None:
    nodes[1].disk.put_back(ELECTION_PATH, b"{")
    assert not is_forgetting_safe(nodes, nodes[1])
    assert not is_forgetting_safe(nodes, nodes[2])


@pytest.mark.parametrize(("behind", "count"), [("9 0\n", 1), ("9 5000\n", 0), ("", 0)])
def test_a_history_contradicts_what_one_batch_tells(behind: str, count: int) -> None:
    world = Cluster(1, WorldOptions())
    build(world)
    assert world.run(60_000, stop=lambda: is_caught_up(world))
    node = world.nodes[NodeId(1)]
    node.kill()
    node.log.cut(node.log.entries[0].end)
    assert not is_in_dispute(node)
    node.file_tampering.restore_stale(
        HISTORY_PATH, f"0\n{len(behind.splitlines())}\n{behind}".encode()
    )
    assert is_in_dispute(node) is (count > 0)


def test_a_history_that_cannot_be_read_contradicts_nothing(nodes: list[SimulatedNode]) -> None:
    nodes[0].file_tampering.restore_stale(HISTORY_PATH, b"odd")
    assert not is_in_dispute(nodes[0])


def test_a_log_of_a_later_epoch_tells(nodes: list[SimulatedNode]) -> None:
    node = nodes[0]
    assert not must_be_noticed(node, ElectionState(Epoch(node.log.end.epoch), None, None))
    assert must_be_noticed(node, ElectionState(Epoch(node.log.end.epoch - 1), None, None))
