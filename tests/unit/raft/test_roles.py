"""The table of transitions, and the tally."""

from __future__ import annotations

from quorate.raft.roles import (
    TRANSITIONS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Tally,
    Unattached,
)
from quorate.records.ids import NodeId

ROLES = {Unattached, Prospective, Candidate, Follower, Leader, Resigned}


def test_every_role_can_be_entered_and_left() -> None:
    assert {old for old, _ in TRANSITIONS} == ROLES
    assert {new for _, new in TRANSITIONS} == ROLES


def test_only_a_candidate_becomes_leader_and_only_a_leader_resigns() -> None:
    assert [old for old, new in TRANSITIONS if new is Leader] == [Candidate]
    assert [old for old, new in TRANSITIONS if new is Resigned] == [Leader]


def test_a_tally_is_won_by_a_majority_and_lost_when_that_is_out_of_reach() -> None:
    tally = Tally({NodeId(1): True, NodeId(2): None, NodeId(3): None}, 2)
    assert (tally.is_won, tally.is_lost) == (False, False)
    tally.votes[NodeId(2)] = False
    assert not tally.is_lost
    tally.votes[NodeId(3)] = False
    assert tally.is_lost
    tally.votes[NodeId(3)] = True
    assert tally.is_won
