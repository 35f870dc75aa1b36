"""Readers of the log, which are not replicas and may do nothing else."""

from __future__ import annotations

import asyncio
import logging
from itertools import count
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from quorate.client.controller_calls import RequestRefusedError
from quorate.client.log_reader import LogReader
from quorate.controller.topics.messages import NewTopic
from quorate.raft import messages as m
from quorate.records.batch import iter_batches
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset, OffsetAndEpoch
from quorate.rpc.convert import raft as convert_raft
from quorate.rpc.gen.controller.v1 import controller_pb2, controller_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from tests.integration.disks import log_start
from tests.integration.quorum import SMALL_LOG
from tests.integration.rpc.conftest import WAIT_S
from tests.integration.security.calls import calling, refusal
from tests.integration.security.secure_quorum import SecureQuorum
from tests.integration.transports import chosen
from tests.unit.raft import cores

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.records.ids import ReplicaKey
    from tests.integration.rpc.conftest import Served
    from tests.integration.security.stores import Stores

LEADER = m.LeaderInfo(NodeId(1), Epoch(4))
FETCHED = m.FetchResponse(
    error=ErrorCode.NONE, leader=LEADER, high_watermark=Offset(3), log_start_offset=Offset(0)
)
TIMEOUT_MS = int(WAIT_S * 1000)


def fetch(replica: ReplicaKey | None) -> raft_pb2.FetchRequest:
    return convert_raft.pb_fetch_request(
        m.FetchRequest(
            cluster_id=cores.CLUSTER,
            replica=replica,
            current_leader_epoch=Epoch(4),
            fetch_offset=Offset(0),
            last_fetched_epoch=Epoch(4),
            max_wait_ms=Millis(0),
            max_bytes=1024,
        )
    )


def fetch_snapshot(replica: ReplicaKey | None) -> raft_pb2.FetchSnapshotRequest:
    wanted = OffsetAndEpoch(offset=Offset(9), epoch=Epoch(3))
    return convert_raft.pb_fetch_snapshot_request(
        m.FetchSnapshotRequest(
            cluster_id=cores.CLUSTER,
            replica=replica,
            current_leader_epoch=Epoch(4),
            snapshot_id=wanted,
            position=0,
            max_bytes=1024,
        )
    )


async def test_a_reader_fetches_as_no_replica_and_not_as_one(
    guarded: Served, stores: Stores
) -> None:
    async with calling(guarded, stores, "reader") as channel:
        stub = raft_pb2_grpc.RaftStub(channel)
        fetching = asyncio.ensure_future(stub.FetchOnce(fetch(None), timeout=WAIT_S))
        (await guarded.raft.asked()).answer.set_result(FETCHED)
        assert (await fetching).high_watermark == 3
        chunk = asyncio.ensure_future(stub.FetchSnapshot(fetch_snapshot(None), timeout=WAIT_S))
        answer = m.FetchSnapshotResponse(error=ErrorCode.NONE, leader=LEADER, size_bytes=7)
        (await guarded.raft.asked()).answer.set_result(answer)
        assert (await chunk).size == 7
        replica = cores.key(2)
        calls: list[Any] = [
            stub.FetchOnce(fetch(replica)),
            stub.FetchSnapshot(fetch_snapshot(replica)),
        ]
        for call in calls:
            told = await refusal(call)
            assert (told.reason, told.metadata["operation"]) == ("NOT_AUTHORIZED", "QuorumAction")
    assert guarded.raft.submitted == 2


async def test_a_stream_that_began_as_no_replica_ends_where_it_names_one(
    guarded: Served, stores: Stores
) -> None:
    async with calling(guarded, stores, "reader") as channel:
        stream = raft_pb2_grpc.RaftStub(channel).Fetch()
        await stream.write(fetch(None))
        (await guarded.raft.asked()).answer.set_result(FETCHED)
        answer = await stream.read()
        assert isinstance(answer, raft_pb2.FetchResponse)
        assert answer.high_watermark == 3
        await stream.write(fetch(cores.key(2)))
        assert (await refusal(stream.read())).metadata["operation"] == "QuorumAction"
    assert guarded.raft.submitted == 1


async def test_a_stream_that_names_a_replica_at_once_is_refused(
    guarded: Served, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    async with calling(guarded, stores, "reader") as channel:
        stub = raft_pb2_grpc.RaftStub(channel)
        # On a connection that is open the request comes together with the beginning of its call.
        await stub.ApiVersions(raft_pb2.ApiVersionsRequest(), timeout=WAIT_S)
        stream = stub.Fetch()
        await stream.write(fetch(cores.key(2)))
        told = await refusal(stream.read())
        assert (told.code, told.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NOT_AUTHORIZED")
        assert told.metadata["operation"] == "QuorumAction"
    assert guarded.raft.submitted == 0
    # A refusal, and no failure of the server.
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_reader_may_know_who_leads(guarded: Served, stores: Stores) -> None:
    async with calling(guarded, stores, "reader") as channel:
        stub = raft_pb2_grpc.RaftStub(channel)
        versions = await stub.ApiVersions(raft_pb2.ApiVersionsRequest(), timeout=WAIT_S)
        assert versions.cluster_id == cores.CLUSTER


async def test_a_reader_may_do_nothing_else(guarded: Served, stores: Stores) -> None:
    vote = m.VoteRequest(
        cluster_id=cores.CLUSTER,
        voter=cores.key(1),
        replica=cores.key(2),
        replica_epoch=Epoch(3),
        last=cores.end(7, 2),
        pre_vote=True,
    )
    async with calling(guarded, stores, "reader") as channel:
        raft = raft_pb2_grpc.RaftStub(channel)
        controller = controller_pb2_grpc.ControllerStub(channel)
        calls: dict[str, Any] = {
            "QuorumAction": raft.Vote(convert_raft.pb_vote_request(vote)),
            "Describe": controller.ListTopics(controller_pb2.ListTopics()),
            "Alter": raft.TransferLeadership(raft_pb2.TransferLeadershipRequest()),
        }
        for operation, call in calls.items():
            assert (await refusal(call)).metadata["operation"] == operation
        registering = controller.RegisterBroker(controller_pb2.RegisterBroker())
        assert (await refusal(registering)).metadata["operation"] == "ClusterAction"
    assert guarded.raft.submitted == 0
    assert guarded.controller.writes.empty()


@pytest.mark.parametrize("party", ["viewer", "operator", "stranger"])
async def test_descriptions_and_changes_give_no_right_to_the_log(
    guarded: Served, stores: Stores, party: str
) -> None:
    async with calling(guarded, stores, party) as channel:
        stub = raft_pb2_grpc.RaftStub(channel)
        calls: list[Any] = [
            stub.FetchOnce(fetch(None)),
            stub.FetchSnapshot(fetch_snapshot(None)),
        ]
        for call in calls:
            assert "Read on Topic:__cluster_metadata" in (await refusal(call)).message
        assert (await refusal(stub.Fetch().read())).reason == "NOT_AUTHORIZED"
    assert guarded.raft.submitted == 0


async def test_a_call_that_nothing_could_allow_is_refused_before_its_request_has_come(
    guarded: Served, stores: Stores
) -> None:
    # It cannot be decoded: a server that tried would say so.
    async with calling(guarded, stores, "viewer") as channel:
        fetch_once: Any = channel.unary_unary("/quorate.raft.v1.Raft/FetchOnce")
        assert (await refusal(fetch_once(b"\xff"))).reason == "NOT_AUTHORIZED"


async def test_the_log_and_its_snapshot_are_read_with_the_right_to_read_alone(
    tmp_path: Path, stores: Stores
) -> None:
    async with SecureQuorum(tmp_path / "q", stores, controllers=1, settings=SMALL_LOG) as quorum:
        await quorum.register_brokers()
        node = next(iter(quorum.nodes.values()))

        def reading(party: str) -> LogReader:
            tls = stores.files(party)
            return LogReader([node.address], timeout_ms=TIMEOUT_MS, tls=tls, transport=chosen())

        numbers = count()

        async def begins_late() -> bool:
            await quorum.create(NewTopic(f"t{next(numbers)}", 50, 3))
            return log_start(node) > 0

        await quorum.eventually("the first segment is deleted", begins_late)
        async with reading("reader") as reader:
            told = await reader.fetch(0)
            assert told.snapshot_id is not None
            at_start = await reader.fetch(told.log_start)
            assert list(iter_batches(at_start.data))
            snapshot = b"".join([part async for part in reader.snapshot(told.snapshot_id)])
            assert list(iter_batches(snapshot))[-1][1].is_control
        async with reading("viewer") as viewer:
            with pytest.raises(RequestRefusedError, match=r"QuorumAction on .* or Read on"):
                await viewer.fetch(0)
