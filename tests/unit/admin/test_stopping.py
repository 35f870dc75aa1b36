"""The next step of a stop, from the leader's description and from what becomes of the node."""

from __future__ import annotations

import pytest

from quorate.admin.statefulset import Fate
from quorate.admin.stopping import (
    AwaitCommit,
    LetOthersLead,
    Ready,
    Remove,
    Step,
    TakeLeave,
    next_step,
)
from quorate.api.admin import AdminError
from quorate.raft import messages as m
from quorate.records.ids import NodeId
from quorate.records.voters import Voter
from tests.unit.admin.quorums import quorum, state
from tests.unit.raft import cores

OWN = NodeId(1)
REMOVING = m.VoterChange(m.ChangeKind.REMOVE, Voter(cores.key(1)))
ADDING = m.VoterChange(m.ChangeKind.ADD, Voter(cores.key(4)))
OTHERS = (state(2), state(3))
ASK = TakeLeave(cores.key(1))


@pytest.mark.parametrize(
    ("described", "first", "with_leave", "scaled_away"),
    [
        # It leads: leave first, of itself, since a successor knows of no leaves.
        (quorum(), ASK, LetOthersLead((cores.key(2), cores.key(3))), None),
        (
            quorum(state(1), state(2, 98), state(3, 99)),
            ASK,
            LetOthersLead((cores.key(3), cores.key(2))),
            None,
        ),
        (quorum(state(1), state(2, None), state(3)), ASK, LetOthersLead((cores.key(3),)), None),
        (quorum(state(1), state(2, None)), ASK, LetOthersLead(()), None),
        (quorum(*OTHERS, pending=REMOVING), AwaitCommit(), AwaitCommit(), None),
        # It follows.
        (quorum(leader=2), ASK, Ready(), Remove(cores.key(1))),
        (quorum(leader=2, pending=ADDING), ASK, Ready(), Remove(cores.key(1))),
        # It is no voter any more.
        (quorum(*OTHERS, leader=2), Ready(), Ready(), Ready()),
        (quorum(*OTHERS, leader=2, pending=REMOVING), Ready(), Ready(), AwaitCommit()),
        (quorum(*OTHERS, leader=2, pending=ADDING), Ready(), Ready(), Ready()),
        (quorum(*OTHERS, leader=2, high_watermark=None), Ready(), Ready(), AwaitCommit()),
    ],
)
def test_the_next_step_follows_from_the_quorum(
    described: m.DescribeQuorumResponse, first: Step, with_leave: Step, scaled_away: Step | None
) -> None:
    assert next_step(described, OWN, Fate.RETURNS, may_go=False) == first
    assert next_step(described, OWN, Fate.RETURNS, may_go=True) == with_leave
    # A voter that is removed need not be spared: it counts no more.
    removed = next_step(described, OWN, Fate.SCALED_AWAY, may_go=False)
    assert next_step(described, OWN, Fate.GOES_FOR_GOOD, may_go=False) == removed
    assert removed == (scaled_away or with_leave)


def test_the_last_voter_stops_but_does_not_leave() -> None:
    alone = quorum(state(1))
    assert next_step(alone, OWN, Fate.RETURNS, may_go=False) == Ready()
    with pytest.raises(AdminError, match="node 1 is the last voter") as error:
        next_step(alone, OWN, Fate.SCALED_AWAY, may_go=False)
    assert error.value.reason == "LAST_VOTER"
