"""Rights to call methods, over mutual TLS."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from quorate.api.permissions import Access
from quorate.client.controller_calls import RequestRefusedError
from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import (
    CreatedTopic,
    CreateTopics,
    CreateTopicsReply,
    DeleteTopics,
    ListTopicsReply,
    NewTopic,
)
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import UUID_BYTES, Epoch, Millis, NodeId, Offset, TopicId
from quorate.records.voters import Endpoint
from quorate.rpc.convert import controller as convert_controller
from quorate.rpc.convert import raft as convert_raft
from quorate.rpc.convert.membership import message_of
from quorate.rpc.error_status import ErrorStatus
from quorate.rpc.gen.controller.v1 import controller_pb2, controller_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from quorate.rpc.method_table import RAFT, SMALL_BYTES_MAX
from quorate.rpc.security.authorization import CallerPolicy, forwarding
from quorate.telemetry.logs import RepeatFilter
from tests.certificates import COMMON_NAME, UNREADABLE
from tests.integration.rpc.conftest import WAIT_S, serve
from tests.integration.security.calls import calling, refusal
from tests.integration.security.identities import IDENTITIES
from tests.integration.transports import chosen
from tests.unit.raft import cores

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.request_types import WriteRequest
    from tests.integration.rpc.conftest import Served
    from tests.integration.security.stores import Stores

LEADER = m.LeaderInfo(NodeId(1), Epoch(4))
VOTE = m.VoteRequest(
    cluster_id=cores.CLUSTER,
    voter=cores.key(1),
    replica=cores.key(2),
    replica_epoch=Epoch(3),
    last=cores.end(7, 2),
    pre_vote=True,
)
FETCH = m.FetchRequest(
    cluster_id=cores.CLUSTER,
    replica=cores.key(2),
    current_leader_epoch=Epoch(4),
    fetch_offset=Offset(0),
    last_fetched_epoch=Epoch(4),
    max_wait_ms=Millis(500),
    max_bytes=1024,
)
CREATE = CreateTopics((NewTopic("a"),))
CREATED = CreateTopicsReply((CreatedTopic("a", topic_id=TopicId(b"t" * UUID_BYTES), partitions=1),))


async def test_a_peer_may_vote_and_a_viewer_may_not(guarded: Served, stores: Stores) -> None:
    request = convert_raft.pb_vote_request(VOTE)
    async with calling(guarded, stores, "peer") as channel:
        voting = asyncio.ensure_future(raft_pb2_grpc.RaftStub(channel).Vote(request))
        granted = m.VoteResponse(ErrorCode.NONE, LEADER, vote_granted=True)
        (await guarded.raft.asked()).answer.set_result(granted)
        assert (await voting).vote_granted
    async with calling(guarded, stores, "viewer") as channel:
        assert await refusal(raft_pb2_grpc.RaftStub(channel).Vote(request)) == ErrorStatus(
            grpc.StatusCode.PERMISSION_DENIED,
            "NOT_AUTHORIZED",
            "User:CN=viewer may not call quorate.raft.v1.Raft/Vote: it needs QuorumAction on "
            "Cluster:kafka-cluster",
            {
                "principal": "User:CN=viewer",
                "operation": "QuorumAction",
                "resource": "Cluster:kafka-cluster",
                "method": "quorate.raft.v1.Raft/Vote",
            },
        )
    assert guarded.raft.submitted == 1


async def test_a_fetch_stream_is_judged_when_it_begins(guarded: Served, stores: Stores) -> None:
    request = convert_raft.pb_fetch_request(FETCH)
    async with calling(guarded, stores, "operator") as channel:
        stream = raft_pb2_grpc.RaftStub(channel).Fetch()
        told = await refusal(stream.read())
        assert told.metadata["operation"] == "ClusterAction or QuorumAction or Read"
    async with calling(guarded, stores, "peer") as channel:
        stream = raft_pb2_grpc.RaftStub(channel).Fetch()
        await stream.write(request)
        fetched = m.FetchResponse(
            error=ErrorCode.NONE,
            leader=LEADER,
            high_watermark=Offset(3),
            log_start_offset=Offset(0),
        )
        (await guarded.raft.asked()).answer.set_result(fetched)
        answer = await stream.read()
        assert isinstance(answer, raft_pb2.FetchResponse)
        assert answer.high_watermark == 3
        # A stream that ends early gives up what it had asked, as without a guard.
        await stream.write(request)
        asked = await guarded.raft.asked()
        stream.cancel()
        assert await guarded.raft.given_up() == asked.token


async def test_voters_are_changed_by_operators_and_by_peers_for_themselves(
    guarded: Served, stores: Stores
) -> None:
    add = m.AddRaftVoterRequest(
        cluster_id=cores.CLUSTER,
        voter=cores.key(4),
        listeners=(Endpoint("GRPC", "h", 1),),
        ack_when_committed=True,
        timeout_ms=Millis(1000),
        auto_join=True,
    )
    by_itself = message_of(add, RAFT)
    by_hand = message_of(add, RAFT)
    by_hand.auto_join = False
    changed = m.MembershipResponse(ErrorCode.NONE, "", LEADER)
    allowed = {("peer", True), ("operator", True), ("operator", False)}
    for party in ("peer", "operator", "viewer"):
        async with calling(guarded, stores, party) as channel:
            stub = raft_pb2_grpc.RaftStub(channel)
            for request in (by_itself, by_hand):
                adding = asyncio.ensure_future(stub.AddRaftVoter(request))
                if (party, request.auto_join) in allowed:
                    (await guarded.raft.asked()).answer.set_result(changed)
                    assert (await adding).error_code == 0
                else:
                    assert "Alter" in (await refusal(adding)).metadata["operation"]


async def test_writes_on_a_stream_are_answered_up_to_the_one_that_is_refused(
    guarded: Served, stores: Stores
) -> None:
    async with calling(guarded, stores, "creator") as channel:
        stream = controller_pb2_grpc.ControllerStub(channel).WriteStream()
        requests: tuple[WriteRequest, ...] = (CREATE, DeleteTopics(("a",)), CREATE)
        for sequence, request in enumerate(requests):
            message = convert_controller.write_request(request)
            message.sequence = sequence
            await stream.write(message)
        asked, reply = await guarded.controller.asked()
        reply.set_result(CREATED)
        assert asked == CREATE
        answer = await stream.read()
        assert isinstance(answer, controller_pb2.WriteResponse)
        assert (answer.first_sequence, answer.last_sequence) == (0, 0)
        refused = await refusal(stream.read())
    assert refused.metadata["operation"] == "Delete"
    assert refused.metadata["resource"] == "Cluster:kafka-cluster or Topic:*"
    assert guarded.controller.writes.empty()
    assert [caller.principal for caller in guarded.controller.callers] == ["User:CN=creator"]


async def test_an_admin_service_calls_for_others_and_nobody_else_does(
    guarded: Served, stores: Stores
) -> None:
    message = convert_controller.write_request(CREATE)

    async def write(party: str, principal: str) -> object:
        async with calling(guarded, stores, party) as channel:
            stub = controller_pb2_grpc.ControllerStub(channel)
            return await stub.Write(message, metadata=forwarding(principal))

    writing = asyncio.ensure_future(write("admin", "User:CN=creator"))
    (await guarded.controller.asked())[1].set_result(CREATED)
    await writing
    assert guarded.controller.callers[0].principal == "User:CN=creator"
    # It is checked as that principal, who may do less than others may.
    refused = await refusal(write("admin", "User:CN=viewer"))
    assert refused.metadata["principal"] == "User:CN=viewer"
    # A super user, too, would lend its rights to all that it names.
    for party in ("root", "stranger"):
        refused = await refusal(write(party, "User:CN=creator"))
        assert (refused.code, refused.reason, refused.metadata) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "FORWARDING_NOT_ALLOWED",
            {"principal": f"User:CN={party}", "forwarded": "User:CN=creator"},
        )
    assert guarded.controller.writes.empty()


async def test_a_client_says_at_once_that_it_may_not(guarded: Served, stores: Stores) -> None:
    tls = stores.files("stranger")
    words = (
        r"CLUSTER_AUTHORIZATION_FAILED: .*PERMISSION_DENIED \(NOT_AUTHORIZED\): User:CN=stranger "
        r"may not call quorate.controller.v1.Controller/Write: it needs Create on .*\[method="
    )
    async with ControllerClient(
        [guarded.address], timeout_ms=int(WAIT_S * 1000), tls=tls, transport=chosen()
    ) as one:
        with pytest.raises(RequestRefusedError, match=words):
            await one.write(CREATE)
        with pytest.raises(
            RequestRefusedError, match="it needs ClusterAction or QuorumAction or Desc"
        ):
            await one.describe_quorum()


async def test_a_refusal_that_repeats_itself_is_logged_once(
    guarded: Served, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "quorate.rpc.security.authorization")
    request = convert_raft.pb_vote_request(VOTE)
    async with calling(guarded, stores, "viewer") as channel:
        stub = raft_pb2_grpc.RaftStub(channel)
        for _ in range(3):
            await refusal(stub.Vote(request))
        await refusal(stub.FetchOnce(convert_raft.pb_fetch_request(FETCH)))
    is_new = RepeatFilter().filter
    said = [record.getMessage() for record in caplog.records if is_new(record)]
    assert {record.__dict__["host"] for record in caplog.records} == {"127.0.0.1"}
    assert [words.split("/")[1].split(":")[0] for words in said] == ["Vote", "FetchOnce"]


@pytest.mark.parametrize("is_judged", [True, False])
async def test_a_certificate_that_names_nobody_is_refused_without_a_traceback(
    stores: Stores, caplog: pytest.LogCaptureFixture, *, is_judged: bool
) -> None:
    caplog.set_level(logging.INFO, "quorate")
    leaf = stores.authority.leaf("Mxller")
    # Of the other ones that cannot be read, gRPC's own library ends the handshake.
    stores.give("stranger", stores.authority.patched(leaf, COMMON_NAME, UNREADABLE[0]))
    # A client of ours would refuse its own certificate: this one is gRPC's.
    pem = stores.keystore("stranger").read_bytes()
    credentials = grpc.ssl_channel_credentials(stores.truststore.read_bytes(), pem, pem)
    callers = CallerPolicy(Access(IDENTITIES)) if is_judged else CallerPolicy(have_names=True)
    one = await serve(tls=stores.files("controller"), caller_policy=callers)
    try:
        async with grpc.aio.secure_channel(f"127.0.0.1:{one.port}", credentials) as channel:
            stub = raft_pb2_grpc.RaftStub(channel)
            calls: list[Callable[[], Any]] = [
                lambda: stub.Vote(convert_raft.pb_vote_request(VOTE)),
                lambda: stub.ApiVersions(raft_pb2.ApiVersionsRequest()),
                lambda: stub.Fetch().read(),
            ]
            for call in calls:
                told = await refusal(call())
                assert told.code is grpc.StatusCode.PERMISSION_DENIED
                assert (told.reason, told.metadata) == ("SUBJECT_UNREADABLE", {})
                assert "issue it with a subject of UTF8String" in told.message
    finally:
        await one.server.stop()
    assert one.raft.submitted == 0
    is_new = RepeatFilter().filter
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    (said,) = [
        record
        for record in caplog.records
        if record.name == "quorate.rpc.security.authorization" and is_new(record)
    ]
    assert said.getMessage().startswith("refused: the subject of the certificate cannot be read")
    assert said.exc_info is None


async def test_a_request_by_its_own_method_needs_what_it_needs_in_an_envelope(
    guarded: Served, stores: Stores
) -> None:
    creation = controller_pb2.CreateTopics(topics=[controller_pb2.NewTopic(name="a")])
    async with calling(guarded, stores, "viewer") as channel:
        stub = controller_pb2_grpc.ControllerStub(channel)
        told = await refusal(stub.CreateTopics(creation))
        assert told.metadata["operation"] == "Create"
        assert told.metadata["method"] == "quorate.controller.v1.Controller/CreateTopics"
        # It is refused before its request has come.
        create: Any = channel.unary_unary("/quorate.controller.v1.Controller/CreateTopics")
        assert (await refusal(create(b"\xff"))).reason == "NOT_AUTHORIZED"
        guarded.controller.read_replies.append(ListTopicsReply(Offset(1), ()))
        assert (await stub.ListTopics(controller_pb2.ListTopics(), timeout=WAIT_S)).offset == 1
    async with calling(guarded, stores, "creator") as channel:
        stub = controller_pb2_grpc.ControllerStub(channel)
        creating = asyncio.ensure_future(stub.CreateTopics(creation, timeout=WAIT_S))
        (await guarded.controller.asked())[1].set_result(CREATED)
        assert [topic.name for topic in (await creating).topics] == ["a"]
        assert guarded.controller.callers[-1].principal == "User:CN=creator"


async def test_reflection_is_for_those_who_may_describe(stores: Stores) -> None:
    callers = CallerPolicy(Access(IDENTITIES))
    one = await serve(tls=stores.files("controller"), caller_policy=callers, has_reflection=True)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    try:
        async with calling(one, stores, "viewer") as channel:
            stream = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
            await stream.write(request)
            answer = await stream.read()
            names = [service.name for service in answer.list_services_response.service]
            assert "quorate.raft.v1.Raft" in names
        async with calling(one, stores, "stranger") as channel:
            stream = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
            assert (await refusal(stream.read())).metadata["operation"] == "Describe"
    finally:
        await one.server.stop()


async def test_without_reflection_and_for_unknown_methods_nothing_is_there(
    guarded: Served, stores: Stores
) -> None:
    async with calling(guarded, stores, "root") as channel:
        for method in (
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            "/quorate.raft.v1.Raft/Nothing",
        ):
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await call(b"", timeout=WAIT_S)
            assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("party", ["stranger", "viewer"])
async def test_nothing_large_is_decoded_for_somebody_who_may_not_call(
    guarded: Served, stores: Stores, party: str
) -> None:
    # It cannot be decoded: a server that tried would say so.
    noise = b"\xff" * (SMALL_BYTES_MAX + 1)
    async with calling(guarded, stores, party) as channel:
        write: Any = channel.unary_unary("/quorate.controller.v1.Controller/Write")
        refused = await refusal(write(noise))
        assert refused.reason == "NOT_AUTHORIZED"
        assert "it needs Create or Delete or AlterConfigs or ClusterAction" in refused.message
        vote: Any = channel.unary_unary("/quorate.raft.v1.Raft/Vote")
        assert (await refusal(vote(b"\xff"))).reason == "NOT_AUTHORIZED"
