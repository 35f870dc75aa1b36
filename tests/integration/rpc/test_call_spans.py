"""Spans of calls over real sockets: on both ends, in one trace, by the conventions for gRPC."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from opentelemetry.trace import SpanKind

from quorate.controller.topics.messages import DeleteTopicsReply
from quorate.raft import messages as m
from quorate.raft.api import RequestFailure, SendRequest
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId
from quorate.rpc.call_spans import ClientSpans, name_of_request, outcome_of, response_attributes
from quorate.rpc.channels import open_channel
from quorate.rpc.gen.controller.v1 import controller_pb2, controller_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from quorate.telemetry import tracing
from tests.integration.rpc.conftest import WAIT_S, ControllerByHand, serve
from tests.integration.rpc.controller.test_servicer import created, write
from tests.integration.rpc.raft.test_transport import (
    GRANTED,
    LEADER,
    VOTE,
    Caller,
    fetch,
    fetched,
    opened,
    peer,
)
from tests.integration.transports import chosen
from tests.ports import free_ports
from tests.recorded_spans import Recorded, attributes_of, recorded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from google.protobuf.message import Message
    from opentelemetry.sdk.trace import ReadableSpan

    from quorate.controller.authorization.authorizer import Caller as RequestCaller
    from quorate.controller.request_types import WriteReply, WriteRequest
    from tests.integration.rpc.conftest import Served

RAFT = "quorate.raft.v1.Raft/"


@pytest.fixture(autouse=True)
def found() -> Iterator[Recorded]:
    """The recorded spans; tracing is on before any server or client is made."""
    with recorded(fetch_ratio=1.0) as spans:
        yield spans


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    """A client that waits as long as the test does."""
    async for one in opened(int(WAIT_S * 1000)):
        yield one


def of_kind(found: Recorded, name: str, kind: SpanKind) -> list[ReadableSpan]:
    return [span for span in found.named(name) if span.kind is kind]


async def ended(found: Recorded, name: str, kind: SpanKind) -> ReadableSpan:
    """The one span of that kind, once it has ended: a server's does after its answer has left."""
    async with asyncio.timeout(WAIT_S):
        while not (spans := of_kind(found, name, kind)):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.001)
    (span,) = spans
    return span


async def vote(served: Served, caller: Caller, request: m.VoteRequest = VOTE) -> None:
    caller.send(served, request)
    (await served.raft.asked()).answer.set_result(GRANTED)
    await caller.answer()


async def test_a_vote_has_a_span_on_each_end_of_one_trace(
    served: Served, caller: Caller, found: Recorded
) -> None:
    await vote(served, caller)
    client = await ended(found, RAFT + "Vote", SpanKind.CLIENT)
    server = await ended(found, RAFT + "Vote", SpanKind.SERVER)
    assert server.parent is not None
    assert server.parent.span_id == client.context.span_id
    assert server.context.trace_id == client.context.trace_id
    assert client.parent is None
    assert (client.name, server.name) == ("pre-vote 1: granted", "would vote for 2")
    said = {
        "rpc.system.name": "grpc",
        "rpc.method": RAFT + "Vote",
        "rpc.response.status_code": "OK",
        "kraft.vote.pre_vote": True,
        "kraft.vote.candidate_id": 2,
        "kraft.vote.voter_id": 1,
        "kraft.vote.granted": True,
        # A nominee that only asks seeks the epoch after the one that it is in.
        "kraft.epoch": 4,
        "kraft.log.end_offset": 7,
        "kraft.log.last_epoch": 2,
    }
    at = {"server.address": "127.0.0.1", "server.port": served.port}
    assert attributes_of(client) == said | at
    peer_port = attributes_of(server)["network.peer.port"]
    by = {"network.peer.address": "127.0.0.1", "network.peer.port": peer_port}
    assert attributes_of(server) == said | by


@pytest.mark.parametrize("refusal", [None, *m.VoteRefusal])
async def test_a_vote_that_is_not_granted_says_why_as_its_voter_does(
    served: Served, caller: Caller, found: Recorded, refusal: m.VoteRefusal | None
) -> None:
    caller.send(served, VOTE)
    refused = m.VoteResponse(ErrorCode.INVALID_VOTER_KEY, LEADER, refusal=refusal)
    (await served.raft.asked()).answer.set_result(refused)
    await caller.answer()
    for kind in (SpanKind.CLIENT, SpanKind.SERVER):
        span = await ended(found, RAFT + "Vote", kind)
        why = refusal.value if refusal else "INVALID_VOTER_KEY"
        end = "pre-vote 1" if kind is SpanKind.CLIENT else "refuses"
        assert span.name == f"{end}: {why}"
        said = attributes_of(span)
        assert said["kraft.vote.granted"] is False
        assert said.get("kraft.vote.reject_reason") == (refusal.value if refusal else None)
        assert said["kraft.error"] == "INVALID_VOTER_KEY"


async def test_a_caller_who_waits_no_more_makes_no_error(served: Served, found: Recorded) -> None:
    channel = open_channel(*served.address, transport=chosen())
    stub = raft_pb2_grpc.RaftStub(channel)

    async def ask() -> None:
        await stub.DescribeQuorum(raft_pb2.DescribeQuorumRequest(), timeout=WAIT_S)

    with tracing.root("command", {}):
        asking = asyncio.create_task(ask())
        await served.raft.asked()
        asking.cancel()
    await asyncio.wait([asking])
    for kind in (SpanKind.CLIENT, SpanKind.SERVER):
        span = await ended(found, RAFT + "DescribeQuorum", kind)
        assert attributes_of(span)["rpc.response.status_code"] == "CANCELLED"
        assert span.status.is_unset
    await channel.close()


async def test_a_request_belongs_to_what_is_current_when_it_is_sent(
    served: Served, caller: Caller, found: Recorded
) -> None:
    with tracing.root("cause", {}):
        caller.send(served, VOTE)
    with tracing.root("elsewhere", {}):
        (await served.raft.asked()).answer.set_result(GRANTED)
        await caller.answer()
    client = await ended(found, RAFT + "Vote", SpanKind.CLIENT)
    assert client.parent is not None
    assert client.parent.span_id == found.one("cause").context.span_id


async def test_what_follows_from_an_answer_belongs_to_nobodys_span(
    served: Served, caller: Caller
) -> None:
    seen: list[object] = []
    told = caller.client._on_response

    def watched(call: CallId, answer: m.PeerResponse | RequestFailure) -> None:
        seen.append(tracing.current())
        told(call, answer)

    caller.client._on_response = watched
    with tracing.root("cause", {}):
        caller.send(served, VOTE)
        caller.send(served, fetch(1))
    for _ in range(2):
        asked = await served.raft.asked()
        answer = GRANTED if asked.request == VOTE else fetched(1)
        asked.answer.set_result(answer)
    await caller.answer()
    await caller.answer()
    assert seen == [None, None]


async def test_a_handler_runs_within_the_span_of_its_call(
    served: Served, caller: Caller, found: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    current: list[tuple[str, str] | None] = []
    submit = served.raft.submit

    def watched(request: m.Request) -> object:
        current.append(tracing.ids())
        return submit(request)

    # RaftByHand has slots.
    monkeypatch.setattr(type(served.raft), "submit", lambda _, request: watched(request))
    await vote(served, caller)
    server = await ended(found, RAFT + "Vote", SpanKind.SERVER)
    ids = f"{server.context.trace_id:032x}", f"{server.context.span_id:016x}"
    assert current == [ids]


async def test_a_call_that_fails_is_an_error_with_its_code(found: Recorded) -> None:
    (port,) = free_ports(1)
    channel = open_channel("127.0.0.1", port, transport=chosen())
    stub = raft_pb2_grpc.RaftStub(channel)
    with tracing.root("command", {}), pytest.raises(grpc.aio.AioRpcError):
        await stub.DescribeQuorum(raft_pb2.DescribeQuorumRequest(), timeout=WAIT_S)
    await channel.close()
    client = await ended(found, RAFT + "DescribeQuorum", SpanKind.CLIENT)
    said = attributes_of(client)
    assert said["rpc.response.status_code"] == said["error.type"] == "UNAVAILABLE"
    assert client.name == "DescribeQuorum: UNAVAILABLE"
    assert client.status.is_ok is False
    assert client.status.description


async def test_a_voter_that_is_away_is_an_event_and_no_error(
    caller: Caller, found: Recorded
) -> None:
    (port,) = free_ports(1)
    caller.client.send(SendRequest(CallId(1), peer(port), VOTE))
    assert await caller.answer() == (1, RequestFailure.DISCONNECTED)
    client = await ended(found, RAFT + "Vote", SpanKind.CLIENT)
    said = attributes_of(client)
    assert said["rpc.response.status_code"] == "UNAVAILABLE"
    assert "error.type" not in said
    assert client.status.is_unset
    assert client.name == "pre-vote 1: unreachable"
    (event,) = client.events
    assert event.name == "peer.unreachable"
    assert "refused" in str((event.attributes or {})["reason"]).lower()


async def test_a_call_without_an_answer_in_time_ends_on_both_sides(
    served: Served, found: Recorded
) -> None:
    async for impatient in opened(2000):
        # Once it is connected, what it asks is there long before the time is up.
        impatient.send(served, fetch(10))
        (await served.raft.asked()).answer.set_result(fetched(1))
        await impatient.answer()
        impatient.send(served, VOTE)
        await served.raft.asked()
        assert await impatient.answer() == (2, RequestFailure.TIMED_OUT)
    client = await ended(found, RAFT + "Vote", SpanKind.CLIENT)
    server = await ended(found, RAFT + "Vote", SpanKind.SERVER)
    assert attributes_of(client)["rpc.response.status_code"] == "DEADLINE_EXCEEDED"
    assert [event.name for event in client.events] == ["peer.unreachable"]
    # Of the server's doing it is none.
    assert attributes_of(server)["rpc.response.status_code"] == "CANCELLED"
    assert server.name == "Vote"
    assert server.status.is_unset


async def test_a_refusal_is_its_callers_error_and_not_the_servers(
    served: Served, found: Recorded
) -> None:
    channel = open_channel(*served.address, transport=chosen())
    stub = raft_pb2_grpc.RaftStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.Vote(raft_pb2.VoteRequest(voter_id=-5, replica_id=-7), timeout=WAIT_S)
    await channel.close()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    client = await ended(found, RAFT + "Vote", SpanKind.CLIENT)
    server = await ended(found, RAFT + "Vote", SpanKind.SERVER)
    assert attributes_of(client)["error.type"] == "INVALID_ARGUMENT"
    assert attributes_of(server)["rpc.response.status_code"] == "INVALID_ARGUMENT"
    assert "error.type" not in attributes_of(server)


async def test_what_a_server_cannot_answer_is_its_error(
    served: Served, caller: Caller, found: Recorded
) -> None:
    caller.send(served, VOTE)
    (await served.raft.asked()).answer.cancel()
    assert await caller.answer() == (1, RequestFailure.DISCONNECTED)
    server = await ended(found, RAFT + "Vote", SpanKind.SERVER)
    assert attributes_of(server)["error.type"] == "UNAVAILABLE"
    assert str(server.status.description).startswith("this controller cannot answer now")


async def test_questions_have_spans_only_within_somebodys_trace(
    served: Served, found: Recorded
) -> None:
    channel = open_channel(*served.address, transport=chosen())
    stub = raft_pb2_grpc.RaftStub(channel)
    await stub.ApiVersions(raft_pb2.ApiVersionsRequest(), timeout=WAIT_S)
    assert found.spans == []
    with tracing.root("command", {}):
        await stub.ApiVersions(raft_pb2.ApiVersionsRequest(), timeout=WAIT_S)
    server = await ended(found, RAFT + "ApiVersions", SpanKind.SERVER)
    assert server.context.trace_id == found.one("command").context.trace_id
    await channel.close()


async def test_headers_of_the_caller_stay_beside_ours() -> None:
    seen: list[grpc.aio.ClientCallDetails] = []

    async def continuation(details: grpc.aio.ClientCallDetails, _: object) -> object:
        seen.append(details)
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(raft_pb2.VoteResponse())
        return answer

    active = tracing.active()
    assert active is not None
    details = grpc.aio.ClientCallDetails(
        method=f"/{RAFT}Vote",
        timeout=1.0,
        metadata=grpc.aio.Metadata(("mine", "1")),
        credentials=None,
        wait_for_ready=None,
    )
    spans = ClientSpans(active, "h", 1)
    await spans.intercept_unary_unary(continuation, details, raft_pb2.VoteRequest())
    (sent,) = seen
    assert sent.metadata is not None
    assert [key for key, _ in sent.metadata] == ["mine", "traceparent"]
    assert sent.timeout == 1.0


async def test_requests_on_a_fetch_stream_are_recorded_as_often_as_asked(
    served: Served, caller: Caller, found: Recorded
) -> None:
    caller.send(served, fetch(10))
    (await served.raft.asked()).answer.set_result(fetched(1, b"x"))
    await caller.answer()
    span = await ended(found, RAFT + "Fetch", SpanKind.CLIENT)
    said = attributes_of(span)
    assert said["kraft.fetch.offset"] == 10
    assert said["rpc.response.status_code"] == "OK"
    assert span.parent is None
    caller.send(served, fetch(11))
    await served.raft.asked()
    await served.server.stop()
    assert (await caller.answer())[1] is RequestFailure.DISCONNECTED
    assert [s.status.is_ok for s in found.named(RAFT + "Fetch")][1:] == [False]


async def test_fetches_and_writes_are_not_recorded_unless_asked(found: Recorded) -> None:
    with recorded() as none:
        server = await serve()
        async for one in opened(int(WAIT_S * 1000)):
            one.send(server, fetch(10))
            (await server.raft.asked()).answer.set_result(fetched(1))
            await one.answer()
        channel = open_channel(*server.address, transport=chosen())
        stub = controller_pb2_grpc.ControllerStub(channel)
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.Write(controller_pb2.WriteRequest(), timeout=WAIT_S)
        await channel.close()
        await server.server.stop()
        assert none.spans == []
    assert found.spans == []


async def test_requests_on_a_write_stream_are_traces_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    current: list[tuple[str, str] | None] = []
    answering = ControllerByHand.write

    def watched(
        by_hand: ControllerByHand, request: WriteRequest, caller: RequestCaller
    ) -> asyncio.Future[WriteReply]:
        current.append(tracing.ids())
        return answering(by_hand, request, caller)

    monkeypatch.setattr(ControllerByHand, "write", watched)
    with recorded(write_ratio=1.0) as found:
        server = await serve()
        channel = open_channel(*server.address, transport=chosen())
        call = controller_pb2_grpc.ControllerStub(channel).WriteStream()
        for name in ("a", "b"):
            await call.write(write(name))
            _, reply = await server.controller.asked()
            reply.set_result(created(name))
            await call.read()
        await channel.close()
        await server.server.stop()
        spans = found.named("quorate.controller.v1.Controller/WriteStream")
        ids = [(f"{s.context.trace_id:032x}", f"{s.context.span_id:016x}") for s in spans]
        assert ids == current
        assert len({trace_id for trace_id, _ in ids}) == 2
        assert {span.kind for span in spans} == {SpanKind.SERVER}


@pytest.mark.parametrize(
    ("method", "request_", "name"),
    [
        ("quorate.raft.v1.Raft/Vote", raft_pb2.VoteRequest(voter_id=3), "vote 3"),
        ("q.Raft/BeginQuorumEpoch", raft_pb2.BeginQuorumEpochRequest(voter_id=3), "announce 3"),
        ("q.Controller/Write", controller_pb2.WriteRequest(), "Write"),
        ("q.Controller/Write", write("a"), "CreateTopics"),
        ("q.Raft/FetchOnce", raft_pb2.FetchRequest(), "FetchOnce"),
    ],
)
def test_a_call_is_named_by_what_it_asks_of_whom(method: str, request_: Message, name: str) -> None:
    assert name_of_request(method, request_, SpanKind.CLIENT) == name


def test_the_error_of_a_write_is_that_of_its_first_result_that_has_one() -> None:
    result = controller_pb2.WriteResult
    response = controller_pb2.WriteResponse(results=[result(), result(error=41), result(error=7)])
    told = response_attributes(controller_pb2.WriteRequest(), response)
    assert told == {"kraft.error": "NOT_CONTROLLER"}
    assert outcome_of(told) == ": NOT_CONTROLLER"
    assert outcome_of({"kraft.error": "12345"}) == ": unknown"


async def test_a_request_by_its_own_method_has_spans_of_that_name() -> None:
    with recorded(write_ratio=1.0) as found:
        server = await serve()
        channel = open_channel(*server.address, transport=chosen())
        stub = controller_pb2_grpc.ControllerStub(channel)
        request = controller_pb2.DeleteTopics(names=["a"])
        deleting = asyncio.ensure_future(stub.DeleteTopics(request, timeout=WAIT_S))
        (await server.controller.asked())[1].set_result(DeleteTopicsReply(()))
        await deleting
        name = "quorate.controller.v1.Controller/DeleteTopics"
        ours = await ended(found, name, SpanKind.CLIENT)
        theirs = await ended(found, name, SpanKind.SERVER)
        assert ours.context.trace_id == theirs.context.trace_id
        await channel.close()
        await server.server.stop()
