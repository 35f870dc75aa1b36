"""Changes asked for by others are refused by name."""

from __future__ import annotations

import pytest

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis
from tests.unit.raft import cores

REQUESTS: list[m.MembershipRequest] = [
    m.AddRaftVoterRequest(cores.CLUSTER, cores.key(4), cores.endpoints(4), Millis(1000)),
    m.RemoveRaftVoterRequest(cores.CLUSTER, cores.key(3), Millis(1000)),
    m.UpdateRaftVoterRequest(cores.CLUSTER, Epoch(1), cores.key(3), cores.endpoints(3), 0, 1),
    m.UpdateFeaturesRequest(1, validate_only=False),
    m.TransferLeadershipRequest(cores.CLUSTER, cores.key(2)),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_every_change_is_unsupported_and_changes_nothing(request_: m.MembershipRequest) -> None:
    core = cores.leader()
    update = cores.ask(core, request_, now_ms=2001)
    (answer,) = cores.replies(update)
    assert isinstance(answer, m.MembershipResponse)
    assert answer.error is ErrorCode.UNSUPPORTED_VERSION
    assert type(request_).__name__.removesuffix("Request") in answer.message
    assert core.replica.voters == cores.voters(1, 2, 3)
