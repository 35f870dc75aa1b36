"""PrepareStop over real gRPC: what it does, that it may be called again, that it ends in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc

from quorate.raft import messages as m
from quorate.raft.messages import Reason
from quorate.records.errors import ErrorCode
from quorate.records.voters import Voter
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from quorate.rpc.gen.raft.v1 import raft_pb2
from tests.integration.admin.test_errors import refused
from tests.integration.client.scripted import refusal
from tests.unit.raft import cores

if TYPE_CHECKING:
    from tests.integration.client.conftest import Beside
    from tests.integration.client.scripted import ScriptedQuorum

SHORT_MS = 3_000
RESTART = pb.PrepareStopRequest()
LEAVE = pb.PrepareStopRequest(leave=True)


def leader(quorum: ScriptedQuorum, node_id: int, epoch: int) -> raft_pb2.CurrentLeader:
    (endpoint,) = quorum.endpoints(node_id)
    ways = [raft_pb2.Endpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port)]
    return raft_pb2.CurrentLeader(leader_id=node_id, leader_epoch=epoch, endpoints=ways)


def names(quorum: ScriptedQuorum) -> list[str]:
    return [type(request).__name__.removesuffix("Request") for _, request in quorum.asked]


async def test_a_leader_hands_over_to_whoever_has_most(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    quorum.lags = {2: 1}
    answer = await beside.stub.PrepareStop(RESTART)
    now = leader(quorum, 3, 6)
    assert answer == pb.PrepareStopResponse(
        handed_over=True, is_voter=True, current_leader=now, has_leave=True
    )
    again = await beside.stub.PrepareStop(RESTART)
    assert again == pb.PrepareStopResponse(is_voter=True, current_leader=now, has_leave=True)
    assert names(quorum) == ["TakeLeave", "TransferLeadership", "TakeLeave"]


async def test_who_leaves_hands_over_and_is_removed(quorum: ScriptedQuorum, beside: Beside) -> None:
    answer = await beside.stub.PrepareStop(LEAVE)
    now = leader(quorum, 2, 6)
    assert answer == pb.PrepareStopResponse(
        handed_over=True, removed=True, is_voter=False, current_leader=now
    )
    assert sorted(quorum.voters) == [2, 3]
    again = await beside.stub.PrepareStop(LEAVE)
    assert again == pb.PrepareStopResponse(is_voter=False, current_leader=now)
    assert names(quorum) == ["TransferLeadership", "RemoveRaftVoter"]
    removal = quorum.asked[-1][1]
    assert isinstance(removal, m.RemoveRaftVoterRequest)
    # A human has decided that it is not to come back.
    assert removal.decommissions


async def test_it_works_after_the_controller_beside_it_has_stopped(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    quorum.lead(2)
    await beside.stub.DescribeQuorum(raft_pb2.DescribeQuorumRequest())
    await quorum.stop(1)
    answer = await beside.stub.PrepareStop(LEAVE)
    assert (answer.removed, answer.is_voter) == (True, False)


async def test_a_successor_that_lags_is_passed_over(quorum: ScriptedQuorum, beside: Beside) -> None:
    async def give(request: m.MembershipRequest) -> m.MembershipResponse:
        return quorum.perform(request)

    quorum.answers.append(give)
    quorum.answers.append(refusal(ErrorCode.REQUEST_TIMED_OUT, Reason.VOTER_LAGGING))
    answer = await beside.stub.PrepareStop(RESTART)
    assert answer.current_leader.leader_id == 3
    assert names(quorum) == ["TakeLeave", "TransferLeadership", "TransferLeadership"]


async def test_leadership_has_moved_also_where_another_voter_won_the_election(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    async def moves_elsewhere(request: m.MembershipRequest) -> m.MembershipResponse:
        answer = quorum.perform(request)
        quorum.lead(3)
        return answer

    quorum.answers.append(moves_elsewhere)
    answer = await beside.stub.PrepareStop(LEAVE)
    assert (answer.handed_over, answer.removed, answer.is_voter) == (True, True, False)
    assert answer.current_leader.leader_id == 3
    assert names(quorum) == ["TransferLeadership", "RemoveRaftVoter"]


async def test_a_second_call_waits_for_the_removal_of_the_first(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    quorum.lead(2)
    voter = quorum.voters.pop(1)
    quorum.pending = m.VoterChange(m.ChangeKind.REMOVE, Voter(voter))
    stopping = asyncio.ensure_future(beside.stub.PrepareStop(LEAVE))
    done, _ = await asyncio.wait([stopping], timeout=0.3)
    assert not done
    quorum.pending = None
    answer = await stopping
    assert (answer.removed, answer.is_voter) == (False, False)
    assert quorum.asked == []


async def test_a_restart_does_not_wait_long_for_a_leader(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    quorum.lead(None)
    answer = await beside.stub.PrepareStop(RESTART)
    why = answer.without_leave
    assert why.startswith("no leader could give leave: ")
    # Which controller was asked, and what it knows.
    assert "knows no leader in epoch 6" in why
    assert answer == pb.PrepareStopResponse(
        current_leader=raft_pb2.CurrentLeader(leader_epoch=6), without_leave=why
    )


async def test_what_is_refused_to_the_end_is_told_with_what_was_done(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    async def hand_over(request: m.MembershipRequest) -> m.MembershipResponse:
        return quorum.perform(request)

    silent = refusal(ErrorCode.REQUEST_TIMED_OUT, Reason.NO_LIVE_MAJORITY, "too few fetch")
    quorum.answers.extend([hand_over, *[silent] * 100])
    # Connections are there before the time begins to run.
    await beside.stub.DescribeQuorum(raft_pb2.DescribeQuorumRequest())
    loop = asyncio.get_running_loop()
    start = loop.time()
    request = pb.PrepareStopRequest(leave=True, timeout_ms=SHORT_MS)
    code, error = await refused(beside.stub.PrepareStop(request, timeout=60))
    assert loop.time() - start >= SHORT_MS / 1000
    assert (code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NO_LIVE_MAJORITY")
    assert error.metadata.items() >= {("handed_over", "true"), ("removed", "false")}
    assert sorted(quorum.voters) == [1, 2, 3]


async def test_the_last_voter_does_not_leave(quorum: ScriptedQuorum, beside: Beside) -> None:
    quorum.voters = {1: cores.key(1)}
    code, error = await refused(beside.stub.PrepareStop(LEAVE))
    assert (code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "LAST_VOTER")
    answer = await beside.stub.PrepareStop(RESTART)
    assert (answer.handed_over, answer.is_voter) == (False, True)
    assert quorum.asked == []
