"""The table of transitions, and the tally."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import quorate.raft
from quorate.raft.roles import (
    TRANSITIONS,
    Candidate,
    Follower,
    Initializing,
    Leader,
    Prospective,
    Resigned,
    Unattached,
    VoteTally,
)
from quorate.records.ids import Millis, NodeId
from tests.unit.raft import cores

ROLES = {Unattached, Prospective, Candidate, Follower, Leader, Resigned}


def test_every_role_can_be_entered_and_left_and_a_start_only_left() -> None:
    assert {old for old, _ in TRANSITIONS} == ROLES | {Initializing}
    assert {new for _, new in TRANSITIONS} == ROLES


def test_only_a_candidate_becomes_leader_and_only_a_leader_resigns() -> None:
    assert [old for old, new in TRANSITIONS if new is Leader] == [Candidate]
    assert [old for old, new in TRANSITIONS if new is Resigned] == [Initializing, Leader]


def test_a_role_changes_by_the_table_only() -> None:
    replica = cores.unattached().replica
    with pytest.raises(AssertionError):
        replica.set_role(Resigned(Millis(0), {}))
    assert isinstance(replica.role, Unattached)


def test_one_line_of_the_core_changes_a_role() -> None:
    assigned = [
        f"{path.name}: {ast.unparse(target)}"
        for path in sorted(Path(quorate.raft.__file__).parent.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and target.attr == "role"
    ]
    assert assigned == ["replica.py: self.role"] * 2, "where it is declared, and where it changes"


def test_a_tally_is_won_by_a_majority_and_lost_when_that_is_out_of_reach() -> None:
    tally = VoteTally({NodeId(1): True, NodeId(2): None, NodeId(3): None}, 2)
    assert (tally.is_won, tally.is_lost) == (False, False)
    tally.votes[NodeId(2)] = False
    assert not tally.is_lost
    tally.votes[NodeId(3)] = False
    assert tally.is_lost
    tally.votes[NodeId(3)] = True
    assert tally.is_won
