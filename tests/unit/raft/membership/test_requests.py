"""Every change of the voters goes to the module that decides it; only a leader decides."""

from __future__ import annotations

import pytest

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis
from tests.unit.raft import cores

REQUESTS: list[m.MembershipRequest] = [
    m.AddRaftVoterRequest(
        cluster_id=cores.CLUSTER,
        voter=cores.key(4),
        listeners=cores.endpoints(4),
        timeout_ms=Millis(1000),
    ),
    m.RemoveRaftVoterRequest(cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(1000)),
    m.UpdateRaftVoterRequest(
        cluster_id=cores.CLUSTER,
        current_leader_epoch=Epoch(1),
        voter=cores.key(3),
        listeners=cores.endpoints(3),
        kraft_version_min=0,
        kraft_version_max=1,
    ),
    m.UpdateFeaturesRequest(1, validate_only=False),
    m.TransferLeadershipRequest(cores.CLUSTER, cores.key(2)),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_a_follower_names_the_leader(request_: m.MembershipRequest) -> None:
    answer = cores.membership(cores.ask(cores.follower(2, 1), request_, now_ms=2))
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.reason is m.Reason.NOT_LEADER
    assert answer.leader == m.LeaderInfo(cores.key(1).node_id, Epoch(1), cores.endpoints(1))


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_a_leader_decides(request_: m.MembershipRequest) -> None:
    update = cores.ask(cores.grown_up_leader(), request_, now_ms=4500)
    answers = cores.memberships(update)
    assert all(answer.reason is not m.Reason.NOT_LEADER for answer in answers)
    waits = m.RemoveRaftVoterRequest | m.TransferLeadershipRequest
    assert answers or isinstance(request_, waits)
