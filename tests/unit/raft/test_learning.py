"""What a replica makes of a leader that another one names."""

from __future__ import annotations

from quorate.raft import messages as m
from quorate.raft.roles import Unattached
from quorate.records.ids import Epoch, NodeId
from tests.unit.raft import cores


def test_a_rival_leader_of_the_same_epoch_is_not_believed() -> None:
    core = cores.follower()
    core.learning.learn(m.LeaderInfo(NodeId(3), Epoch(1), cores.endpoints(3)), "test")
    assert core.replica.election.leader_id == 1


def test_a_leader_without_an_address_is_not_followed() -> None:
    core = cores.unattached()
    core.learning.learn(m.LeaderInfo(NodeId(9), Epoch(2)), "test")
    assert isinstance(core.replica.role, Unattached)
    assert core.replica.epoch == 2
