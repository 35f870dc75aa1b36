"""A broker's certificate in a quorum of mutual TLS: it serves a broker, and no voter."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from quorate.client.controller_client import ControllerClient
from quorate.controller.brokers.messages import BrokerHeartbeat, Listener, RegisterBroker
from quorate.controller.features.messages import FeatureRange
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import (
    UUID_BYTES,
    ClusterId,
    DirectoryId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
)
from quorate.records.voters import Endpoint
from quorate.rpc.channels import open_channel
from quorate.rpc.convert import raft as convert_raft
from quorate.rpc.convert.membership import message_of
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from quorate.rpc.method_table import RAFT
from tests.integration.rpc.conftest import WAIT_S
from tests.integration.security.calls import calling, refusal
from tests.integration.security.secure_quorum import SecureQuorum
from tests.integration.transports import chosen
from tests.unit.raft import cores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.rpc.conftest import Served
    from tests.integration.security.stores import Stores

# No controller has this node id.
BROKER_ID = NodeId(101)
LISTENERS = (Endpoint("GRPC", "127.0.0.1", 1),)


def fetch_of(
    cluster_id: ClusterId, replica: ReplicaKey, epoch: Epoch, offset: Offset
) -> raft_pb2.FetchRequest:
    return convert_raft.pb_fetch_request(
        m.FetchRequest(
            cluster_id=cluster_id,
            replica=replica,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=epoch,
            max_wait_ms=Millis(0),
            max_bytes=1024,
        )
    )


def fetch_snapshot_of(
    cluster_id: ClusterId, replica: ReplicaKey, epoch: Epoch
) -> raft_pb2.FetchSnapshotRequest:
    return convert_raft.pb_fetch_snapshot_request(
        m.FetchSnapshotRequest(
            cluster_id=cluster_id,
            replica=replica,
            current_leader_epoch=epoch,
            snapshot_id=OffsetAndEpoch(offset=Offset(1), epoch=epoch),
            position=0,
            max_bytes=1024,
        )
    )


def requests_of_voters(
    cluster_id: ClusterId, voters: tuple[ReplicaKey, ...], epoch: Epoch
) -> list[tuple[str, Any]]:
    """Requests of one voter to another, each in the name of the first, in an epoch to come."""
    asked, name = voters[:2]
    later = Epoch(epoch + 1)
    far = OffsetAndEpoch(offset=Offset(10**9), epoch=epoch)
    votes = [
        m.VoteRequest(
            cluster_id=cluster_id,
            voter=asked,
            replica=name,
            replica_epoch=later,
            last=far,
            pre_vote=pre_vote,
        )
        for pre_vote in (True, False)
    ]
    changes: tuple[m.MembershipRequest, ...] = (
        m.UpdateRaftVoterRequest(
            cluster_id=cluster_id,
            current_leader_epoch=epoch,
            voter=name,
            listeners=LISTENERS,
            kraft_version_min=0,
            kraft_version_max=1,
        ),
        m.AddRaftVoterRequest(
            cluster_id=cluster_id,
            voter=ReplicaKey(BROKER_ID, DirectoryId(b"d" * UUID_BYTES)),
            listeners=LISTENERS,
            timeout_ms=Millis(1000),
            auto_join=True,
        ),
        m.RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter=name, timeout_ms=Millis(1000), auto_join=True
        ),
        m.TakeLeaveRequest(cluster_id, name),
        m.TransferLeadershipRequest(cluster_id, name),
    )
    begin = m.BeginQuorumEpochRequest(cluster_id, asked, name.node_id, later, LISTENERS)
    end = m.EndQuorumEpochRequest(cluster_id, name.node_id, epoch, (name,))
    return [
        *(("Vote", convert_raft.pb_vote_request(vote)) for vote in votes),
        ("BeginQuorumEpoch", convert_raft.pb_begin_request(begin)),
        ("EndQuorumEpoch", convert_raft.pb_end_request(end)),
        *((type(c).__name__.removesuffix("Request"), message_of(c, RAFT)) for c in changes),
    ]


async def assert_refused(call: Any, operation: str) -> None:  # noqa: ANN401 - of any method
    told = await refusal(call)
    assert (told.code, told.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NOT_AUTHORIZED")
    assert told.metadata["principal"] == "User:CN=broker"
    assert told.metadata["operation"] == operation


@asynccontextmanager
async def brokers_stub(quorum: SecureQuorum, stores: Stores, node_id: int) -> AsyncIterator[Any]:
    channel = open_channel(
        *quorum.nodes[node_id].address, tls=stores.files("broker"), transport=chosen()
    )
    async with channel:
        yield raft_pb2_grpc.RaftStub(channel)


async def test_a_brokers_certificate_neither_votes_nor_leads_nor_acknowledges(
    tmp_path: Path, stores: Stores
) -> None:
    async with SecureQuorum(tmp_path / "quorum", stores) as quorum:
        before = await quorum.leader()
        cluster_id, epoch = quorum.plan.cluster_id, before.leader.epoch
        voters = tuple(sorted((state.key for state in before.voters), key=lambda k: k.node_id))
        end = before.high_watermark
        assert end is not None
        for node_id in quorum.nodes:
            async with brokers_stub(quorum, stores, node_id) as stub:
                for method, request in requests_of_voters(cluster_id, voters, epoch):
                    is_change = method in ("TakeLeave", "TransferLeadership")
                    is_either = "RaftVoter" in method
                    needed = "Alter" if is_change else "QuorumAction"
                    needed = "QuorumAction or Alter" if is_either else needed
                    await assert_refused(getattr(stub, method)(request), needed)
                # In the name of each voter, by its whole key and with a directory of another disk.
                other = DirectoryId(secrets.token_bytes(UUID_BYTES))
                for key in (*voters, ReplicaKey(voters[0].node_id, other)):
                    fetch = fetch_of(cluster_id, key, epoch, end)
                    await assert_refused(stub.FetchOnce(fetch), "QuorumAction")
                    chunk = fetch_snapshot_of(cluster_id, key, epoch)
                    await assert_refused(stub.FetchSnapshot(chunk), "QuorumAction")
                    stream = stub.Fetch()
                    await stream.write(fetch)
                    await assert_refused(stream.read(), "QuorumAction")
        after = await quorum.leader()
        assert after.leader == before.leader
        assert {state.key for state in after.voters} == set(voters)
        assert after.observers == ()


async def test_a_brokers_certificate_registers_beats_and_fetches_as_an_observer(
    tmp_path: Path, stores: Stores
) -> None:
    async with SecureQuorum(tmp_path / "quorum", stores) as quorum:
        before = await quorum.leader()
        cluster_id, epoch = quorum.plan.cluster_id, before.leader.epoch
        assert before.leader.leader_id is not None
        assert before.high_watermark is not None
        addresses = [node.address for node in quorum.nodes.values()]
        tls = stores.files("broker")
        async with ControllerClient(addresses, tls=tls, transport=chosen()) as client:
            registered = await client.write(
                RegisterBroker(
                    broker_id=BROKER_ID,
                    incarnation_id=secrets.token_bytes(UUID_BYTES),
                    cluster_id=cluster_id,
                    listeners=(Listener("PLAINTEXT", "127.0.0.1", 9092),),
                    features=(FeatureRange("metadata.version", 1, 1000),),
                    log_dirs=(secrets.token_bytes(UUID_BYTES),),
                )
            )
            assert (registered.error, registered.message) == (ErrorCode.NONE, "")
            beat = await client.write(
                BrokerHeartbeat(
                    broker_id=BROKER_ID,
                    broker_epoch=registered.broker_epoch,
                    current_metadata_offset=Offset(registered.broker_epoch),
                )
            )
            assert (beat.error, beat.is_fenced) == (ErrorCode.NONE, False)
        key = ReplicaKey(BROKER_ID, DirectoryId(secrets.token_bytes(UUID_BYTES)))
        fetch = fetch_of(cluster_id, key, epoch, before.high_watermark)
        async with brokers_stub(quorum, stores, before.leader.leader_id) as stub:
            once = await stub.FetchOnce(fetch, timeout=WAIT_S)
            assert (once.error_code, bool(once.records)) == (0, True)
            stream = stub.Fetch(timeout=WAIT_S)
            await stream.write(fetch)
            streamed = await stream.read()
            assert isinstance(streamed, raft_pb2.FetchResponse)
            assert bytes(streamed.records).startswith(bytes(once.records))
            stream.cancel()
        after = await quorum.leader()
        assert after.leader == before.leader
        assert [state.key for state in after.observers] == [key]


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_stream_ends_where_a_broker_names_a_voter(
    guarded: Served, stores: Stores, *, is_first: bool
) -> None:
    # The guarded server has the voters 1 to 3.
    observer = fetch_of(cores.CLUSTER, cores.key(9), Epoch(4), Offset(0))
    voter = fetch_of(cores.CLUSTER, cores.key(2), Epoch(4), Offset(0))
    async with calling(guarded, stores, "broker") as channel:
        stream = raft_pb2_grpc.RaftStub(channel).Fetch()
        if not is_first:
            await stream.write(observer)
            leader = m.LeaderInfo(NodeId(1), Epoch(4))
            fetched = m.FetchResponse(error=ErrorCode.NONE, leader=leader, high_watermark=Offset(3))
            (await guarded.raft.asked()).answer.set_result(fetched)
            assert isinstance(await stream.read(), raft_pb2.FetchResponse)
        await stream.write(voter)
        await assert_refused(stream.read(), "QuorumAction")
    assert guarded.raft.submitted == (0 if is_first else 1)
