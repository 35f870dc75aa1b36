"""The next step of a stop, from the leader's description and from what becomes of the node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.admin.prepare_stop import (
    AwaitCommit,
    Ready,
    RemoveVoter,
    RequestShutdownPermit,
    Step,
    TransferLeadership,
    next_step,
)
from quorate.admin.statefulset import Outlook, StopIntent
from quorate.api.admin_api import AdminError
from quorate.raft import messages as m
from quorate.records.ids import Millis, NodeId
from quorate.records.voters import Voter
from tests.unit.admin.quorums import NOW, quorum, state
from tests.unit.raft import cores

OWN = NodeId(1)
REMOVING = m.VoterChange(m.ChangeKind.REMOVE, Voter(cores.key(1)))
ADDING = m.VoterChange(m.ChangeKind.ADD, Voter(cores.key(4)))
OTHERS = (state(2), state(3))
ASK = RequestShutdownPermit(cores.key(1))


@pytest.mark.parametrize(
    ("described", "first", "with_leave", "scaled_away"),
    [
        # It leads: leave first, of itself, since a successor knows of no leaves.
        (quorum(), ASK, TransferLeadership((cores.key(2), cores.key(3))), None),
        (
            quorum(state(1), state(2, 98), state(3, 99)),
            ASK,
            TransferLeadership((cores.key(3), cores.key(2))),
            None,
        ),
        (
            quorum(state(1), state(2, None), state(3)),
            ASK,
            TransferLeadership((cores.key(3),)),
            None,
        ),
        (quorum(state(1), state(2, None)), ASK, TransferLeadership(()), None),
        (quorum(*OTHERS, pending=REMOVING), AwaitCommit(), AwaitCommit(), None),
        # It follows.
        (quorum(leader=2), ASK, Ready(), RemoveVoter(cores.key(1))),
        (quorum(leader=2, pending=ADDING), ASK, Ready(), RemoveVoter(cores.key(1))),
        # It is not a voter any more.
        (quorum(*OTHERS, leader=2), Ready(), Ready(), Ready()),
        (quorum(*OTHERS, leader=2, pending=REMOVING), Ready(), Ready(), AwaitCommit()),
        (quorum(*OTHERS, leader=2, pending=ADDING), Ready(), Ready(), Ready()),
        (quorum(*OTHERS, leader=2, high_watermark=None), Ready(), Ready(), AwaitCommit()),
    ],
)
def test_the_next_step_follows_from_the_quorum(
    described: m.DescribeQuorumResponse, first: Step, with_leave: Step, scaled_away: Step | None
) -> None:
    assert next_step(described, OWN, Outlook(StopIntent.RETURNS), may_go=False) == first
    assert next_step(described, OWN, Outlook(StopIntent.RETURNS), may_go=True) == with_leave
    # A voter that is removed need not be spared: it counts no more.
    removed = next_step(described, OWN, Outlook(StopIntent.SCALED_AWAY), may_go=False)
    assert next_step(described, OWN, Outlook(StopIntent.GOES_FOR_GOOD), may_go=False) == removed
    assert removed == (scaled_away or with_leave)


def test_the_last_voter_stops_but_does_not_leave() -> None:
    alone = quorum(state(1))
    assert next_step(alone, OWN, Outlook(StopIntent.RETURNS), may_go=False) == Ready()
    with pytest.raises(AdminError, match="node 1 is the last voter") as error:
        next_step(alone, OWN, Outlook(StopIntent.SCALED_AWAY), may_go=False)
    assert error.value.reason == "LAST_VOTER"


def silent(node_id: int, silence_ms: int = 3_000) -> m.ReplicaState:
    return replace(state(node_id), last_fetch_ms=Millis(NOW - silence_ms))


AWAY = Outlook(StopIntent.SCALED_AWAY, 3)


@pytest.mark.parametrize(
    ("leader", "voters", "removed"),
    [
        # The highest first; one that never fetched is as silent as one that did once.
        (0, (state(3), silent(4), state(5, None)), 5),
        (0, (state(3), silent(4)), 4),
        # Those that fetch have hooks of their own.
        (0, (state(3), state(4), silent(5, 2_999)), 3),
        # Those that are to stay are not removed for their silence.
        (0, (silent(1), silent(2), state(3)), 3),
        # A leader does not fetch.
        (4, (state(3), silent(4)), 3),
    ],
)
def test_the_silent_that_are_scaled_away_go_before_it(
    leader: int, voters: tuple[m.ReplicaState, ...], removed: int
) -> None:
    described = quorum(state(0), *voters, leader=leader)
    step = next_step(described, NodeId(3), AWAY, may_go=False)
    assert step == RemoveVoter(cores.key(removed))


def test_no_other_voter_is_removed_without_knowing_which_are_wanted() -> None:
    described = quorum(state(0), state(1), state(3), silent(4), leader=0)
    for outlook in (Outlook(StopIntent.GOES_FOR_GOOD), Outlook(StopIntent.SCALED_AWAY)):
        assert next_step(described, NodeId(3), outlook, may_go=False) == RemoveVoter(cores.key(3))


def test_a_leader_that_is_scaled_away_hands_over_before_any_removal() -> None:
    described = quorum(state(0), state(3), silent(4), leader=3)
    step = next_step(described, NodeId(3), AWAY, may_go=False)
    assert isinstance(step, TransferLeadership)
