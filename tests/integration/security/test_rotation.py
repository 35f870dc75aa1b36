"""New certificates come into use on both ends while calls continue."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.controller.topics.messages import (
    CreatedTopic,
    CreateTopics,
    CreateTopicsReply,
    NewTopic,
)
from quorate.raft import messages as m
from quorate.raft.api import Peer, ProbeLeader, RequestFailure, SendRequest
from quorate.raft.identity.peer_identity import ReplicaIdentity
from quorate.records.errors import ErrorCode
from quorate.records.ids import UUID_BYTES, CallId, Epoch, Millis, NodeId, Offset, TopicId
from quorate.rpc.channels import ChannelPool, open_channel
from quorate.rpc.convert import controller as convert_controller
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from quorate.rpc.raft.transport import RaftTransport
from quorate.rpc.security.authorization import CallerPolicy
from quorate.rpc.security.tls_files import TlsFiles
from tests.certificates import Authority
from tests.integration.rpc.conftest import HOST, WAIT_S, Served, serve
from tests.integration.transports import chosen
from tests.unit.raft import cores

if TYPE_CHECKING:
    import pytest

    from tests.integration.security.stores import Stores

LEADER = m.LeaderInfo(NodeId(1), Epoch(4))
OWN = ReplicaIdentity(cores.CLUSTER, cores.key(2))
VOTE = m.VoteRequest(
    cluster_id=cores.CLUSTER,
    voter=cores.key(1),
    replica=cores.key(2),
    replica_epoch=Epoch(3),
    last=cores.end(7, 2),
    pre_vote=True,
)
CREATE = CreateTopics((NewTopic("a"),))
CREATED = CreateTopicsReply((CreatedTopic("a", topic_id=TopicId(b"t" * UUID_BYTES), partitions=1),))
GRANTED = m.VoteResponse(ErrorCode.NONE, LEADER, vote_granted=True)


class Peers:
    """A client that calls a server as the driver does, and what came back."""

    def __init__(self, served: Served, tls: TlsFiles) -> None:
        self._served = served
        self.answers: asyncio.Queue[m.PeerResponse | RequestFailure] = asyncio.Queue()
        self.probes: asyncio.Queue[bool] = asyncio.Queue()
        self.client = RaftTransport(
            own=OWN,
            transport=chosen(),
            on_response=lambda _, answer: self.answers.put_nowait(answer),
            on_probe=lambda _, refused: self.probes.put_nowait(refused),
            parse_batches=lambda data: m.FetchedBatches(data, ()),
            request_timeout_ms=int(WAIT_S * 1000),
            tls=tls,
        )
        self.to = Peer(NodeId(1), HOST, served.port)

    def fetch(self, offset: int) -> None:
        request = m.FetchRequest(
            cluster_id=cores.CLUSTER,
            replica=cores.key(2),
            current_leader_epoch=Epoch(4),
            fetch_offset=Offset(offset),
            last_fetched_epoch=Epoch(4),
            max_wait_ms=Millis(500),
            max_bytes=1024,
        )
        self.client.send(SendRequest(CallId(offset), self.to, request))

    def vote(self) -> None:
        self.client.send(SendRequest(CallId(0), self.to, VOTE))

    async def answered(self, high_watermark: int) -> m.PeerResponse | RequestFailure:
        """Let the server answer the next Fetch; what the client got."""
        asked = await self._served.raft.asked()
        asked.answer.set_result(
            m.FetchResponse(
                error=ErrorCode.NONE,
                leader=LEADER,
                high_watermark=Offset(high_watermark),
                log_start_offset=Offset(0),
            )
        )
        return await asyncio.wait_for(self.answers.get(), WAIT_S)


async def test_a_listener_offers_its_new_certificate_to_new_connections(stores: Stores) -> None:
    one = await serve(tls=stores.files("controller"))
    try:
        async with open_channel(*one.address, tls=stores.files("peer"), transport=chosen()) as old:
            stub = raft_pb2_grpc.RaftStub(old)
            await stub.ApiVersions(raft_pb2.ApiVersionsRequest(), timeout=WAIT_S)
            following = Authority("next")
            stores.trust(stores.authority, following)
            stores.give("controller", following.leaf("controller"))
            stores.look_again()
            # This one trusts the new authority only, so it has to see the new certificate.
            (stores.folder / "next.pem").write_bytes(following.pem)
            settings = replace(stores.settings("peer"), ca_file=str(stores.folder / "next.pem"))
            async with open_channel(
                *one.address, tls=TlsFiles(settings), transport=chosen()
            ) as new:
                await raft_pb2_grpc.RaftStub(new).ApiVersions(
                    raft_pb2.ApiVersionsRequest(), timeout=WAIT_S
                )
            await stub.ApiVersions(raft_pb2.ApiVersionsRequest(), timeout=WAIT_S)
    finally:
        await one.server.stop()


async def test_a_pool_opens_new_channels_and_drains_the_old_ones(stores: Stores) -> None:
    one = await serve(tls=stores.files("controller"), caller_policy=CallerPolicy(have_names=True))
    pool = ChannelPool(stores.files("peer"), drain_s=WAIT_S, transport=chosen())
    message = convert_controller.write_request(CREATE)

    def write() -> asyncio.Future[object]:
        stub = controller_pb2_grpc.ControllerStub(pool.get(*one.address))
        return asyncio.ensure_future(stub.Write(message, timeout=WAIT_S))

    try:
        before = write()
        _, first = await one.controller.asked()
        stores.give("peer", stores.authority.leaf("renamed"))
        stores.look_again()
        after = write()
        _, second = await one.controller.asked()
        # The call that began on the old channel ends there.
        for reply in (second, first):
            reply.set_result(CREATED)
        await asyncio.wait_for(asyncio.gather(before, after), WAIT_S)
    finally:
        await pool.close()
        await one.server.stop()
    principals = [caller.principal for caller in one.controller.callers]
    assert principals == ["User:CN=peer", "User:CN=renamed"]


async def test_a_fetch_stream_moves_to_the_new_certificate_between_two_answers(
    guarded: Served, stores: Stores
) -> None:
    peers = Peers(guarded, stores.files("peer"))
    peers.fetch(1)
    answer = await peers.answered(11)
    assert isinstance(answer, m.FetchResponse)
    # While a Fetch is parked the stream stays where it is.
    peers.fetch(2)
    parked = await guarded.raft.asked()
    stores.give("peer", stores.authority.leaf("root"))
    stores.look_again()
    peers.vote()
    asked = await guarded.raft.asked()
    asked.answer.set_result(GRANTED)
    assert await asyncio.wait_for(peers.answers.get(), WAIT_S) == GRANTED
    parked.answer.set_result(
        m.FetchResponse(
            error=ErrorCode.NONE,
            leader=LEADER,
            high_watermark=Offset(12),
            log_start_offset=Offset(0),
        )
    )
    assert isinstance(await asyncio.wait_for(peers.answers.get(), WAIT_S), m.FetchResponse)
    # The next one opens a channel as another party; the old stream ends without a failed call.
    peers.fetch(3)
    assert isinstance(await peers.answered(13), m.FetchResponse)
    assert peers.answers.empty()
    await peers.client.close()


async def test_a_probe_needs_no_certificate(guarded: Served, stores: Stores) -> None:
    peers = Peers(guarded, stores.files("peer"))
    peers.client.probe(ProbeLeader(CallId(1), peers.to))
    assert await asyncio.wait_for(peers.probes.get(), WAIT_S) is False
    await guarded.server.stop()
    peers.client.probe(ProbeLeader(CallId(2), peers.to))
    assert await asyncio.wait_for(peers.probes.get(), WAIT_S) is True
    await peers.client.close()


async def test_what_no_retry_mends_is_said_once(
    guarded: Served, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    for party, words in (
        ("stranger", "User:CN=stranger may not call"),
        (None, "the TLS handshake"),
    ):
        caplog.clear()
        peers = Peers(guarded, stores.files(party))
        for _ in range(3):
            peers.vote()
            failed = await asyncio.wait_for(peers.answers.get(), WAIT_S)
            assert failed is RequestFailure.DISCONNECTED
        await peers.client.close()
        (record,) = [one for one in caplog.records if one.name == "quorate.rpc.raft.transport"]
        assert words in record.getMessage()
