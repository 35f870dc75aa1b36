"""Both ends speak of the same calls."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId
from quorate.rpc.method_table import RAFT
from quorate.rpc.raft.unary_calls import CALLS_BY_METHOD, RAFT_CALLS, RaftCall
from tests.unit.raft import cores

LEADER = m.LeaderInfo(NodeId(1), Epoch(4), cores.endpoints(1))


def test_every_request_has_its_call_and_every_method_but_fetches() -> None:
    assert RAFT_CALLS.keys() == {*get_args(m.Request)} - {m.FetchRequest}
    assert CALLS_BY_METHOD.keys() == set(RAFT.methods_by_name) - {"Fetch", "FetchOnce"}


@pytest.mark.parametrize("call", RAFT_CALLS.values(), ids=lambda call: call.method)
def test_a_call_sends_the_messages_of_its_method(call: RaftCall) -> None:
    method = RAFT.methods_by_name[call.method]
    assert method.input_type.name == f"{call.method}Request"
    assert method.output_type.name == f"{call.method}Response"


def test_a_request_and_its_answer_survive() -> None:
    vote = m.VoteRequest(
        cluster_id=cores.CLUSTER,
        voter=cores.key(1),
        replica=cores.key(2),
        replica_epoch=Epoch(3),
        last=cores.end(7, 2),
        pre_vote=True,
    )
    granted = m.VoteResponse(ErrorCode.NONE, LEADER, vote_granted=True)
    leave = m.TakeLeaveRequest(cores.CLUSTER, cores.key(2))
    given = m.MembershipResponse(ErrorCode.NONE, "", LEADER)
    exchanges: tuple[tuple[Any, Any], ...] = ((vote, granted), (leave, given))
    for request, answer in exchanges:
        call = RAFT_CALLS[type(request)]
        assert call.read(call.write(request)) == request
        assert call.read_answer(call.write_answer(answer)) == answer
