"""The leader of another quorum, described in plain text."""

from __future__ import annotations

from quorate.raft.identity.rival_leader import Rival
from quorate.records.ids import Epoch, NodeId


def test_a_rival_is_named_with_its_place_and_epoch() -> None:
    rival = Rival(leader_id=NodeId(4), epoch=Epoch(7), host="node-4", port=9094)
    assert str(rival) == "node 4 at node-4:9094, leader of epoch 7"
