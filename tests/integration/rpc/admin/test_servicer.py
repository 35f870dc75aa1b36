"""The admin API's servicer: deadlines, and a record of every call."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import grpc.aio
import pytest

from quorate.api.admin_api import AdminError, ChangeResult, PrepareStopRequest, PrepareStopResult
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Millis, NodeId
from quorate.rpc.admin.servicer import AdminServicer, CallRecord
from quorate.rpc.convert.describe import describe_response
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from quorate.rpc.gen.admin.v1 import admin_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2
from quorate.rpc.listener import GrpcListener
from tests.integration.rpc.conftest import HOST, WAIT_S
from tests.integration.transports import chosen
from tests.unit.raft import cores
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LEADER = m.LeaderInfo(NodeId(2), Epoch(5))
DESCRIBED = m.DescribeQuorumResponse(error=ErrorCode.NONE, leader=LEADER, kraft_version=1)
PB_LEADER = raft_pb2.CurrentLeader(leader_id=2, leader_epoch=5)
PB_KEY = raft_pb2.ReplicaKey(id=4, directory_id=cores.key(4).directory_id)


@dataclass(slots=True)
class _Handler:
    """Does everything immediately, unless `error` is set; never, while `hangs`."""

    error: AdminError | None = None
    hangs: bool = False
    asked: list[tuple[object, float | None]] = field(default_factory=list)

    async def _answer(self, request: object, timeout_s: float | None) -> None:
        self.asked.append((request, timeout_s))
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error

    async def change(self, request: m.MembershipRequest, timeout_s: float | None) -> ChangeResult:
        await self._answer(request, timeout_s)
        return ChangeResult(request, LEADER)

    async def describe(self, timeout_s: float | None) -> m.DescribeQuorumResponse:
        await self._answer("describe", timeout_s)
        return DESCRIBED

    async def prepare_stop(
        self, request: PrepareStopRequest, timeout_s: float | None
    ) -> PrepareStopResult:
        await self._answer(request.leave, timeout_s)
        leave = request.leave
        return PrepareStopResult(handed_over=True, removed=leave, is_voter=not leave, leader=LEADER)


@asynccontextmanager
async def served(
    handler: _Handler, records: asyncio.Queue[CallRecord]
) -> AsyncIterator[admin_pb2_grpc.AdminAsyncStub]:
    service = AdminServicer(handler, records.put_nowait)
    server = GrpcListener.serving((service,), has_reflection=True, transport=chosen())
    port = server.bind(HOST, 0)
    await server.start()
    async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
        yield admin_pb2_grpc.AdminStub(channel)
    await server.stop(0)


async def test_every_call_reaches_the_handler_and_is_answered() -> None:
    handler, records = _Handler(), asyncio.Queue[CallRecord]()
    directory = cores.key(4).directory_id
    async with served(handler, records) as stub:
        added = await stub.AddRaftVoter(
            pb.AddRaftVoterRequest(voter_id=4, voter_directory_id=directory, timeout_ms=900)
        )
        assert added == pb.AddRaftVoterResponse(voter=PB_KEY, current_leader=PB_LEADER)
        removed = await stub.RemoveRaftVoter(
            pb.RemoveRaftVoterRequest(voter_id=4, voter_directory_id=directory)
        )
        assert removed == pb.RemoveRaftVoterResponse(voter=PB_KEY, current_leader=PB_LEADER)
        updated = await stub.UpdateRaftVoter(
            pb.UpdateRaftVoterRequest(voter_id=4, voter_directory_id=directory)
        )
        assert updated == pb.UpdateRaftVoterResponse(voter=PB_KEY, current_leader=PB_LEADER)
        update = raft_pb2.FeatureUpdate(feature="kraft.version", max_version_level=1)
        features = await stub.UpdateFeatures(pb.UpdateFeaturesRequest(feature_updates=[update]))
        assert features == pb.UpdateFeaturesResponse(current_leader=PB_LEADER)
        moved = await stub.TransferLeadership(pb.TransferLeadershipRequest(voter_id=4))
        assert moved == pb.TransferLeadershipResponse(current_leader=PB_LEADER)
        described = await stub.DescribeQuorum(raft_pb2.DescribeQuorumRequest())
        assert describe_response(described) == DESCRIBED
        prepared = await stub.PrepareStop(pb.PrepareStopRequest(leave=True))
        assert prepared == pb.PrepareStopResponse(
            handed_over=True, removed=True, is_voter=False, current_leader=PB_LEADER
        )
    assert handler.asked[0] == (
        m.AddRaftVoterRequest(
            cluster_id=ClusterId(""), voter=cores.key(4), listeners=(), timeout_ms=Millis(900)
        ),
        0.9,
    )
    assert [timeout_s for _, timeout_s in handler.asked[1:]] == [None] * 6
    outcomes = {records.get_nowait().outcome for _ in handler.asked}
    assert outcomes == {"OK"}


async def test_the_answer_is_due_before_the_calls_own_deadline() -> None:
    handler, records = _Handler(), asyncio.Queue[CallRecord]()
    async with served(handler, records) as stub:
        request = pb.RemoveRaftVoterRequest(voter_id=4, timeout_ms=30_000)
        await stub.RemoveRaftVoter(request, timeout=WAIT_S)
    timeout_s = handler.asked[0][1]
    assert timeout_s is not None
    # By half a second, as exactly as the deadline travels.
    assert timeout_s < WAIT_S - 0.4


async def test_a_refusal_is_recorded_with_who_asked() -> None:
    refusal = AdminError("VOTER_NOT_FOUND", ErrorCode.VOTER_NOT_FOUND, "4 is no voter")
    handler, records = _Handler(refusal), asyncio.Queue[CallRecord]()
    async with served(handler, records) as stub:
        with pytest.raises(grpc.aio.AioRpcError, match="4 is no voter"):
            await stub.RemoveRaftVoter(pb.RemoveRaftVoterRequest(voter_id=4, force=True))
    record = records.get_nowait()
    assert record.host.startswith(f"ipv4:{HOST}:")
    assert replace(record, host="", duration_s=0) == CallRecord(
        method="RemoveRaftVoter",
        principal="User:ANONYMOUS",
        host="",
        request="voter_id: 4 force: true",
        outcome="VOTER_NOT_FOUND",
        message="4 is no voter",
        duration_s=0,
    )


async def test_a_caller_that_goes_is_recorded() -> None:
    handler, records = _Handler(hangs=True), asyncio.Queue[CallRecord]()
    async with served(handler, records) as stub:
        call = stub.PrepareStop(pb.PrepareStopRequest())
        await eventually(lambda: bool(handler.asked))
        call.cancel()
        record = await asyncio.wait_for(records.get(), WAIT_S)
    assert record.outcome == "CANCELLED"
