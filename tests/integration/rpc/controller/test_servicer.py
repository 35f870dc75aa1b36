"""The metadata API over a real socket: writes, write streams (rule `stream_responses`), reads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.authorization.authorizer import Caller
from quorate.controller.topics.messages import (
    CreatedTopic,
    CreateTopics,
    CreateTopicsReply,
    DeleteTopics,
    DeleteTopicsReply,
    ListedTopic,
    ListTopics,
    ListTopicsReply,
    NewTopic,
)
from quorate.raft.messages import LeaderInfo
from quorate.records.errors import ErrorCode
from quorate.records.ids import UUID_BYTES, Epoch, NodeId, Offset, TopicId
from quorate.records.voters import Endpoint
from quorate.rpc.controller.write_stream import CONVERTED_AT_ONCE_BYTES
from quorate.rpc.convert import controller as convert
from quorate.rpc.error_status import error_info_of
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from tests.integration.rpc.conftest import WAIT_S

if TYPE_CHECKING:
    from tests.integration.rpc.conftest import Served

TOPIC_ID = TopicId(b"t" * UUID_BYTES)


def creation(name: str) -> CreateTopics:
    return CreateTopics((NewTopic(name),))


def created(name: str) -> CreateTopicsReply:
    return CreateTopicsReply((CreatedTopic(name, topic_id=TOPIC_ID, partitions=1),))


def write(name: str, sequence: int = 0) -> pb.WriteRequest:
    request = convert.write_request(creation(name))
    request.sequence = sequence
    return request


async def test_a_write_is_answered_with_its_reply(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = controller_pb2_grpc.ControllerStub(channel).Write(write("a", 7))
    request, reply = await served.controller.asked()
    assert request == creation("a")
    reply.set_result(created("a"))
    response = await call
    assert (response.first_sequence, response.last_sequence) == (7, 7)
    assert convert.request_in(response.results[0], "reply") == created("a")
    assert served.controller.callers[0] == Caller("User:ANONYMOUS", client="ipv4:127.0.0.1")


async def test_a_refusal_carries_the_leader_and_whether_it_may_have_happened(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = controller_pb2_grpc.ControllerStub(channel).Write(write("a"))
    _, reply = await served.controller.asked()
    reply.set_exception(
        ControllerApiError(
            ErrorCode.NOT_CONTROLLER,
            "ask node 2",
            leader=LeaderInfo(NodeId(2), Epoch(5), (Endpoint("GRPC", "two", 9094),)),
            outcome_unknown=True,
        )
    )
    result = (await call).results[0]
    assert (result.error, result.message) == (ErrorCode.NOT_CONTROLLER, "ask node 2")
    assert result.outcome_unknown
    assert result.leader == pb.Leader(id=2, epoch=5, host="two", port=9094)


async def test_a_write_without_a_request_is_malformed(
    served: Served, channel: grpc.aio.Channel
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await controller_pb2_grpc.ControllerStub(channel).Write(pb.WriteRequest())
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert served.controller.callers == []


async def test_a_stream_acknowledges_together_what_is_done(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = controller_pb2_grpc.ControllerStub(channel).WriteStream()
    for sequence, name in enumerate("abc", start=1):
        await call.write(write(name, sequence))
    asked = [await served.controller.asked() for _ in "abc"]
    assert [request for request, _ in asked] == [creation(name) for name in "abc"]
    asked[2][1].set_result(created("c"))
    asked[1][1].set_result(created("b"))
    asked[0][1].set_result(created("a"))
    response = await call.read()
    assert isinstance(response, pb.WriteResponse)
    assert (response.first_sequence, response.last_sequence) == (1, 3)
    replies = [convert.request_in(result, "reply") for result in response.results]
    assert replies == [created("a"), created("b"), created("c")]
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert (await call.code()) is grpc.StatusCode.OK


async def test_a_stream_answers_in_the_order_of_arrival(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = controller_pb2_grpc.ControllerStub(channel).WriteStream()
    await call.write(write("a", 1))
    await call.write(write("b", 2))
    first, second = await served.controller.asked(), await served.controller.asked()
    first[1].set_result(created("a"))
    answer = await call.read()
    assert isinstance(answer, pb.WriteResponse)
    assert (answer.first_sequence, answer.last_sequence) == (1, 1)
    await call.write(write("c", 3))
    third = await served.controller.asked()
    third[1].set_result(created("c"))
    second[1].set_exception(ControllerApiError(ErrorCode.NOT_CONTROLLER, "gone"))
    answer = await call.read()
    assert isinstance(answer, pb.WriteResponse)
    assert (answer.first_sequence, answer.last_sequence) == (2, 3)
    assert [result.error for result in answer.results] == [
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NONE,
    ]
    call.cancel()


async def test_replies_that_nobody_waits_for_are_given_up(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = controller_pb2_grpc.ControllerStub(channel).WriteStream()
    await call.write(write("a", 1))
    await call.write(write("b", 2))
    replies = [(await served.controller.asked())[1], (await served.controller.asked())[1]]
    call.cancel()
    await asyncio.wait(replies, timeout=WAIT_S)
    assert [reply.cancelled() for reply in replies] == [True, True]


async def test_a_malformed_write_ends_its_stream_after_what_came_before(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = controller_pb2_grpc.ControllerStub(channel).WriteStream()
    await call.write(write("a", 1))
    await call.write(pb.WriteRequest(sequence=2))
    _, reply = await served.controller.asked()
    reply.set_result(created("a"))
    answer = await call.read()
    assert isinstance(answer, pb.WriteResponse)
    assert answer.last_sequence == 1
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call.read()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_read_is_handed_over_with_its_bounds(
    served: Served, channel: grpc.aio.Channel
) -> None:
    reply = ListTopicsReply(Offset(9), (ListedTopic("a", TOPIC_ID, 1),))
    served.controller.read_replies.append(reply)
    request = convert.read_request(ListTopics(), min_offset=8, current=True, timeout_ms=100)
    response = await controller_pb2_grpc.ControllerStub(channel).Read(request)
    assert convert.request_in(response, "reply") == reply
    assert served.controller.reads == [(ListTopics(), 8, True)]


async def test_a_refused_read_says_why(served: Served, channel: grpc.aio.Channel) -> None:
    served.controller.read_replies.append(
        ControllerApiError(ErrorCode.REQUEST_TIMED_OUT, "offset 8 is not here yet")
    )
    request = convert.read_request(ListTopics(), min_offset=8, current=False, timeout_ms=100)
    response = await controller_pb2_grpc.ControllerStub(channel).Read(request)
    assert (response.error, response.message) == (
        ErrorCode.REQUEST_TIMED_OUT,
        "offset 8 is not here yet",
    )


@pytest.mark.parametrize("field", ["min_offset", "timeout_ms"])
async def test_a_read_that_is_to_wait_for_less_than_nothing_is_refused(
    served: Served, channel: grpc.aio.Channel, field: str
) -> None:
    request = pb.ReadRequest(list_topics=pb.ListTopics())
    setattr(request, field, -1)
    words = f"{field}: -1 is negative, give 0 or more"
    with pytest.raises(grpc.aio.AioRpcError, match=words) as refused:
        await controller_pb2_grpc.ControllerStub(channel).Read(request)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert served.controller.reads == []


async def test_options_that_ask_for_an_offset_below_zero_are_refused(
    served: Served, channel: grpc.aio.Channel
) -> None:
    request = pb.ListTopics(options=pb.ReadOptions(min_offset=-1))
    words = "options.min_offset: -1 is negative, give 0 or more"
    with pytest.raises(grpc.aio.AioRpcError, match=words) as refused:
        await controller_pb2_grpc.ControllerStub(channel).ListTopics(request)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert served.controller.reads == []


async def test_a_read_without_a_request_is_malformed(
    served: Served, channel: grpc.aio.Channel
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await controller_pb2_grpc.ControllerStub(channel).Read(pb.ReadRequest())
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert served.controller.reads == []


async def test_a_large_write_is_converted_in_slices(
    served: Served, channel: grpc.aio.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mebibyte of settings takes 0.2 s to convert, in which no other task would run."""
    large = CreateTopics(tuple(NewTopic(f"t-{n}", assignments=((1,),) * 9) for n in range(999)))
    message = convert.write_request(large)
    assert message.ByteSize() > CONVERTED_AT_ONCE_BYTES
    at_once: list[str] = []
    chosen = convert.request_in

    def noting(request: pb.WriteRequest, oneof: str) -> object:
        at_once.append(oneof)
        return chosen(request, oneof)

    monkeypatch.setattr(convert, "request_in", noting)
    stub = controller_pb2_grpc.ControllerStub(channel)
    stream = stub.WriteStream()
    await stream.write(message)
    call = stub.Write(message)
    for _ in (stream, call):
        request, reply = await served.controller.asked()
        assert request == large
        reply.set_result(created("t"))
    assert at_once == []
    await call
    small = stub.Write(write("small"))
    _, reply = await served.controller.asked()
    reply.set_result(created("small"))
    await small
    assert at_once == ["request"]


async def test_a_stream_that_is_half_closed_gets_the_replies_that_are_missing(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = controller_pb2_grpc.ControllerStub(channel).WriteStream()
    await call.write(write("a", 1))
    await call.write(write("b", 2))
    await call.done_writing()
    first, second = await served.controller.asked(), await served.controller.asked()
    second[1].set_result(created("b"))
    first[1].set_result(created("a"))
    answer = await call.read()
    assert isinstance(answer, pb.WriteResponse)
    assert (answer.first_sequence, answer.last_sequence) == (1, 2)
    assert await call.read() is grpc.aio.EOF
    assert (await call.code()) is grpc.StatusCode.OK


async def test_a_stream_ends_at_its_deadline(served: Served, channel: grpc.aio.Channel) -> None:
    call = controller_pb2_grpc.ControllerStub(channel).WriteStream(timeout=1)
    await call.write(write("a", 1))
    _, reply = await served.controller.asked()
    assert (await call.code()) is grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.wait([reply], timeout=WAIT_S)
    assert reply.cancelled()


async def test_a_server_that_stops_gives_up_the_writes_of_its_streams(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = controller_pb2_grpc.ControllerStub(channel).WriteStream()
    await call.write(write("a", 1))
    _, reply = await served.controller.asked()
    await served.server.stop()
    await asyncio.wait([reply], timeout=WAIT_S)
    assert reply.cancelled()
    assert (await call.code()) is not grpc.StatusCode.OK


async def test_a_leader_that_is_lost_answers_all_that_waits(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = controller_pb2_grpc.ControllerStub(channel).WriteStream()
    for sequence in (1, 2):
        await call.write(write("a", sequence))
    for _ in (1, 2):
        _, reply = await served.controller.asked()
        reply.set_exception(ControllerApiError(ErrorCode.NOT_CONTROLLER, "gone"))
    results: list[pb.WriteResult] = []
    while len(results) < 2:
        answer = await call.read()
        assert isinstance(answer, pb.WriteResponse)
        results.extend(answer.results)
    assert {result.error for result in results} == {ErrorCode.NOT_CONTROLLER}
    await call.done_writing()
    assert (await call.code()) is grpc.StatusCode.OK


# --- a request by itself --------------------------------------------------------------------------


async def test_a_request_is_served_by_the_method_of_its_name(
    served: Served, channel: grpc.aio.Channel
) -> None:
    request = pb.CreateTopics(topics=[pb.NewTopic(name="a", partitions=-1, replication_factor=-1)])
    call = controller_pb2_grpc.ControllerStub(channel).CreateTopics(request)
    asked, reply = await served.controller.asked()
    assert asked == creation("a")
    reply.set_result(created("a"))
    response = await call
    assert convert.from_message(response) == created("a")
    assert served.controller.callers[0] == Caller("User:ANONYMOUS", client="ipv4:127.0.0.1")


async def test_a_large_request_of_its_own_method_is_read_in_slices(
    served: Served, channel: grpc.aio.Channel
) -> None:
    request = pb.DeleteTopics(names=["t" * 200] * (CONVERTED_AT_ONCE_BYTES // 200 + 1))
    call = controller_pb2_grpc.ControllerStub(channel).DeleteTopics(request)
    asked, reply = await served.controller.asked()
    assert asked == DeleteTopics(tuple(request.names))
    reply.set_result(DeleteTopicsReply(()))
    assert not (await call).topics


async def test_a_refusal_of_one_request_is_a_status_that_names_the_leader(
    served: Served, channel: grpc.aio.Channel
) -> None:
    stub = controller_pb2_grpc.ControllerStub(channel)
    leader = LeaderInfo(NodeId(2), Epoch(5), (Endpoint("GRPC", "two", 9094),))
    not_here = ControllerApiError(ErrorCode.NOT_CONTROLLER, "ask node 2", leader=leader)
    writing = asyncio.ensure_future(stub.DeleteTopics(pb.DeleteTopics(names=["a"])))
    (await served.controller.asked())[1].set_exception(not_here)
    served.controller.read_replies.append(not_here)
    for call in (writing, stub.ListTopics(pb.ListTopics())):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        found = error_info_of(refused.value)
        assert found is not None
        assert (found.code, found.reason) == (grpc.StatusCode.UNAVAILABLE, "NOT_CONTROLLER")
        assert (found.metadata["leader_host"], found.metadata["leader_port"]) == ("two", "9094")


async def test_bad_input_to_one_method_is_malformed(
    served: Served, channel: grpc.aio.Channel
) -> None:
    stub = controller_pb2_grpc.ControllerStub(channel)
    config = pb.ConfigResource(type=99)
    calls = (
        stub.CreateTopics(pb.CreateTopics(topics=[pb.NewTopic(name="x" * 40_000)])),
        stub.DescribeConfigs(pb.DescribeConfigs(resources=[config])),
    )
    for call in calls:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert served.controller.callers == []
    assert served.controller.reads == []


async def test_a_read_says_how_new_its_answer_has_to_be_in_its_options(
    served: Served, channel: grpc.aio.Channel
) -> None:
    served.controller.read_replies.append(ListTopicsReply(Offset(9), ()))
    request = pb.ListTopics(options=pb.ReadOptions(min_offset=8, current=True))
    response = await controller_pb2_grpc.ControllerStub(channel).ListTopics(request, timeout=WAIT_S)
    assert response.offset == 9
    assert served.controller.reads == [(ListTopics(), 8, True)]


async def test_the_options_of_one_read_do_not_count_in_an_envelope(
    served: Served, channel: grpc.aio.Channel
) -> None:
    inner = pb.ListTopics(options=pb.ReadOptions(current=True))
    with pytest.raises(grpc.aio.AioRpcError, match="the fields beside the request") as refused:
        await controller_pb2_grpc.ControllerStub(channel).Read(pb.ReadRequest(list_topics=inner))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
