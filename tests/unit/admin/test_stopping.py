"""The next step of a stop, from the leader's description alone."""

from __future__ import annotations

import pytest

from quorate.admin.stopping import AwaitCommit, HandOver, Leave, Ready, Step, next_step
from quorate.raft import messages as m
from quorate.records.ids import NodeId
from quorate.records.voters import Voter
from quorate.rpc.admin_errors import AdminError
from tests.unit.admin.quorums import quorum, state
from tests.unit.raft import cores

OWN = NodeId(1)
REMOVING = m.VoterChange(m.ChangeKind.REMOVE, Voter(cores.key(1)))
ADDING = m.VoterChange(m.ChangeKind.ADD, Voter(cores.key(4)))
OTHERS = (state(2), state(3))


@pytest.mark.parametrize(
    ("described", "restart", "leave"),
    [
        # It leads.
        (quorum(), HandOver((cores.key(2), cores.key(3))), None),
        (
            quorum(state(1), state(2, 98), state(3, 99)),
            HandOver((cores.key(3), cores.key(2))),
            None,
        ),
        (quorum(state(1), state(2, None), state(3)), HandOver((cores.key(3),)), None),
        (quorum(state(1), state(2, None)), HandOver(()), None),
        (quorum(*OTHERS, pending=REMOVING), AwaitCommit(), None),
        # It follows.
        (quorum(leader=2), Ready(), Leave(cores.key(1))),
        (quorum(leader=2, pending=ADDING), Ready(), Leave(cores.key(1))),
        # It is no voter any more.
        (quorum(*OTHERS, leader=2), Ready(), Ready()),
        (quorum(*OTHERS, leader=2, pending=REMOVING), Ready(), AwaitCommit()),
        (quorum(*OTHERS, leader=2, pending=ADDING), Ready(), Ready()),
        (quorum(*OTHERS, leader=2, high_watermark=None), Ready(), AwaitCommit()),
    ],
)
def test_the_next_step_follows_from_the_quorum(
    described: m.DescribeQuorumResponse, restart: Step, leave: Step | None
) -> None:
    assert next_step(described, OWN, leave=False) == restart
    assert next_step(described, OWN, leave=True) == (leave or restart)


def test_the_last_voter_stops_but_does_not_leave() -> None:
    alone = quorum(state(1))
    assert next_step(alone, OWN, leave=False) == Ready()
    with pytest.raises(AdminError, match="node 1 is the last voter") as error:
        next_step(alone, OWN, leave=True)
    assert error.value.reason == "LAST_VOTER"
