"""The raft service over a real socket: Fetch streams, unary calls, bad input.

See rule `stream_responses`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio
import pytest

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId, ReplyToken
from quorate.rpc.channels import open_channel
from quorate.rpc.convert import raft as convert
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
from quorate.rpc.gen.raft.v1 import raft_pb2_grpc
from tests.integration.rpc.conftest import WAIT_S
from tests.integration.transports import chosen
from tests.unit.raft import cores
from tests.unit.rpc.fetches import LEADER, fetch_from, fetched

if TYPE_CHECKING:
    from tests.integration.rpc.conftest import Served

LARGEST: Final = 8 * 1024 * 1024


async def next_of(call: grpc.aio.StreamStreamCall[pb.FetchRequest, pb.FetchResponse]) -> int:
    """The high watermark in the next answer of a stream."""
    answer = await call.read()
    assert isinstance(answer, pb.FetchResponse)
    return answer.high_watermark


async def test_a_stream_answers_each_request_once_and_in_order(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).Fetch()
    await call.write(fetch_from(2, 10))
    await call.write(fetch_from(2, 11))
    first, second = await served.raft.asked(), await served.raft.asked()
    assert [asked.request for asked in (first, second)] == [
        convert.fetch_request(fetch_from(2, 10)),
        convert.fetch_request(fetch_from(2, 11)),
    ]
    second.answer.set_result(fetched(2))
    first.answer.set_result(fetched(1))
    assert [await next_of(call), await next_of(call)] == [1, 2]
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert (await call.code()) is grpc.StatusCode.OK


async def test_a_stream_that_breaks_gives_its_requests_up(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).Fetch()
    await call.write(fetch_from(2, 10))
    await call.write(fetch_from(2, 11))
    tokens = [(await served.raft.asked()).token, (await served.raft.asked()).token]
    call.cancel()
    assert [await served.raft.given_up(), await served.raft.given_up()] == tokens


async def test_an_answer_that_comes_too_late_is_told_to_nobody(
    served: Served, channel: grpc.aio.Channel
) -> None:
    stub = raft_pb2_grpc.RaftStub(channel)
    broken, next_one = stub.Fetch(), stub.Fetch()
    await broken.write(fetch_from(2, 10))
    late = await served.raft.asked()
    broken.cancel()
    assert await served.raft.given_up() == late.token
    if not late.answer.done():
        late.answer.set_result(fetched(1))
    await next_one.write(fetch_from(2, 20))
    (await served.raft.asked()).answer.set_result(fetched(2))
    assert await next_of(next_one) == 2
    assert served.raft.abandoned.empty()


async def test_a_stream_ends_at_its_deadline_and_gives_its_requests_up(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).Fetch(timeout=1)
    await call.write(fetch_from(2, 10))
    await call.write(fetch_from(2, 11))
    tokens = [(await served.raft.asked()).token, (await served.raft.asked()).token]
    assert (await call.code()) is grpc.StatusCode.DEADLINE_EXCEEDED
    assert [await served.raft.given_up(), await served.raft.given_up()] == tokens


async def test_a_reader_that_is_slow_gets_whole_answers_in_order(served: Served) -> None:
    """Each is as large as it may be, and no more of them are made than one waits for."""
    async with open_channel(*served.address, transport=chosen()) as channel:
        stub = raft_pb2_grpc.RaftStub(channel)
        call = stub.Fetch()
        for offset in range(5):
            await call.write(fetch_from(2, offset))
        bodies = [bytes([byte]) * LARGEST for byte in b"ab"]
        asked = [await served.raft.asked(), await served.raft.asked()]
        for one, body in zip(asked, bodies, strict=True):
            one.answer.set_result(fetched(1, body))
        third = await served.raft.asked()
        # What was sent behind all of them is there.
        describing = asyncio.ensure_future(stub.DescribeQuorum(pb.DescribeQuorumRequest()))
        assert isinstance((await served.raft.asked()).request, m.DescribeQuorumRequest)
        assert served.raft.submitted == 4
        for body in bodies:
            answer = await asyncio.wait_for(call.read(), WAIT_S)
            assert isinstance(answer, pb.FetchResponse)
            assert answer.records == body
        third.answer.set_result(fetched(3))
        assert await next_of(call) == 3
        for number in (4, 5):
            (await served.raft.asked()).answer.set_result(fetched(number))
            assert await next_of(call) == number
        describing.cancel()


async def test_a_slow_reader_that_leaves_gives_up_what_was_not_answered(served: Served) -> None:
    async with open_channel(*served.address, transport=chosen()) as channel:
        call = raft_pb2_grpc.RaftStub(channel).Fetch()
        for offset in range(3):
            await call.write(fetch_from(2, offset))
        (await served.raft.asked()).answer.set_result(fetched(1, bytes(LARGEST)))
        tokens = [(await served.raft.asked()).token, (await served.raft.asked()).token]
        call.cancel()
        assert [await served.raft.given_up(), await served.raft.given_up()] == tokens


async def test_a_stream_whose_place_is_taken_is_answered_first(
    served: Served, channel: grpc.aio.Channel
) -> None:
    """A replica that has restarted is here again before its old connection is known to be gone."""
    stub = raft_pb2_grpc.RaftStub(channel)
    first, second = stub.Fetch(), stub.Fetch()
    for offset in (10, 11, 12):
        await first.write(fetch_from(2, offset))
    waiting = [await served.raft.asked(), await served.raft.asked()]
    await second.write(fetch_from(2, 20))
    newer = await served.raft.asked()
    for number, asked in enumerate(waiting, 1):
        asked.answer.set_result(fetched(number))
    assert [await next_of(first), await next_of(first)] == [1, 2]
    # Its third request is not taken, and takes nothing back.
    assert (await first.code()) is grpc.StatusCode.ABORTED
    newer.answer.set_result(fetched(3))
    assert await next_of(second) == 3
    assert (served.raft.submitted, served.raft.abandoned.empty()) == (3, True)


async def test_a_second_stream_of_a_replica_ends_the_first(
    served: Served, channel: grpc.aio.Channel
) -> None:
    stub = raft_pb2_grpc.RaftStub(channel)
    first, second, other = stub.Fetch(), stub.Fetch(), stub.Fetch()
    await other.write(fetch_from(3, 1))
    of_other = await served.raft.asked()
    await first.write(fetch_from(2, 10))
    (await served.raft.asked()).answer.set_result(fetched(1))
    assert await next_of(first) == 1
    await second.write(fetch_from(2, 20))
    asked = await served.raft.asked()
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await first.read()
    assert ended.value.code() is grpc.StatusCode.ABORTED
    assert "newer Fetch stream" in (ended.value.details() or "")
    asked.answer.set_result(fetched(2))
    of_other.answer.set_result(fetched(3))
    assert await next_of(second) == 2
    assert await next_of(other) == 3


async def test_a_malformed_fetch_ends_its_stream_with_the_field(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).Fetch()
    bad = fetch_from(2, 10)
    bad.replica_directory_id = b"short"
    await call.write(bad)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call.read()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "replica_directory_id: 5 bytes where 16 are due" in (refused.value.details() or "")
    assert served.raft.submitted == 0


async def test_a_malformed_fetch_behind_others_is_told_after_their_answers(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).Fetch()
    bad = fetch_from(2, 11)
    bad.replica_directory_id = b"short"
    await call.write(fetch_from(2, 10))
    asked = await served.raft.asked()
    await call.write(bad)
    asked.answer.set_result(fetched(1))
    assert await next_of(call) == 1
    assert (await call.code()) is grpc.StatusCode.INVALID_ARGUMENT
    assert served.raft.submitted == 1


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_defect_ends_the_stream_that_met_it_and_no_other(
    served: Served,
    channel: grpc.aio.Channel,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_first: bool,
) -> None:
    def fail(*_: object) -> None:
        raise LookupError("oops")

    stub = raft_pb2_grpc.RaftStub(channel)
    call, other = stub.Fetch(), stub.Fetch()
    await other.write(fetch_from(3, 10))
    of_other = await served.raft.asked()
    tokens = []
    if not is_first:
        await call.write(fetch_from(2, 10))
        tokens.append((await served.raft.asked()).token)
    with monkeypatch.context() as patch:
        patch.setattr(type(served.raft), "submit", fail)
        await call.write(fetch_from(2, 11))
        assert (await call.code()) is grpc.StatusCode.UNKNOWN
    assert [await served.raft.given_up() for _ in tokens] == tokens
    of_other.answer.set_result(fetched(3))
    assert await next_of(other) == 3


async def test_a_malformed_vote_names_the_field(served: Served, channel: grpc.aio.Channel) -> None:
    request = pb.VoteRequest(cluster_id="c", voter_id=1, replica_id=-1)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await raft_pb2_grpc.RaftStub(channel).Vote(request)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "_id: -1 is negative" in (refused.value.details() or "")
    assert served.raft.submitted == 0


async def test_unary_calls_reach_the_core_and_back(
    served: Served, channel: grpc.aio.Channel
) -> None:
    stub = raft_pb2_grpc.RaftStub(channel)
    key = cores.key(2)
    calls: list[tuple[Any, Any, m.Response, Any]] = [
        (
            stub.Vote,
            convert.pb_vote_request(
                m.VoteRequest(
                    cluster_id=cores.CLUSTER,
                    voter=cores.key(1),
                    replica=key,
                    replica_epoch=Epoch(3),
                    last=cores.end(7, 2),
                    pre_vote=True,
                )
            ),
            m.VoteResponse(ErrorCode.NONE, LEADER, vote_granted=True),
            convert.vote_response,
        ),
        (
            stub.BeginQuorumEpoch,
            convert.pb_begin_request(
                m.BeginQuorumEpochRequest(cores.CLUSTER, key, NodeId(1), Epoch(3), ())
            ),
            m.BeginQuorumEpochResponse(ErrorCode.FENCED_LEADER_EPOCH, LEADER),
            convert.begin_response,
        ),
        (
            stub.EndQuorumEpoch,
            convert.pb_end_request(
                m.EndQuorumEpochRequest(cores.CLUSTER, NodeId(1), Epoch(3), (key,))
            ),
            m.EndQuorumEpochResponse(ErrorCode.NONE, LEADER),
            convert.end_response,
        ),
        (
            stub.FetchSnapshot,
            convert.pb_fetch_snapshot_request(
                m.FetchSnapshotRequest(
                    cluster_id=cores.CLUSTER,
                    replica=key,
                    current_leader_epoch=Epoch(3),
                    snapshot_id=cores.end(7, 2),
                    position=40,
                    max_bytes=1024,
                )
            ),
            m.FetchSnapshotResponse(
                error=ErrorCode.NONE,
                leader=LEADER,
                snapshot_id=cores.end(7, 2),
                size_bytes=43,
                position=40,
                chunk=b"end",
            ),
            convert.fetch_snapshot_response,
        ),
    ]
    for method, request, response, parse in calls:
        call = method(request)
        asked = await served.raft.asked()
        asked.answer.set_result(response)
        assert parse(await call) == response


async def test_a_unary_fetch_is_the_same_question(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).FetchOnce(fetch_from(2, 10))
    asked = await served.raft.asked()
    assert asked.request == convert.fetch_request(fetch_from(2, 10))
    asked.answer.set_result(fetched(5))
    assert (await call).high_watermark == 5


async def test_a_caller_that_hangs_up_is_reported(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).FetchOnce(fetch_from(2, 10))
    asked = await served.raft.asked()
    call.cancel()
    assert await served.raft.given_up() == asked.token == ReplyToken(1)


async def test_membership_answers_carry_what_the_core_said(
    served: Served, channel: grpc.aio.Channel
) -> None:
    stub = raft_pb2_grpc.RaftStub(channel)
    answer = m.MembershipResponse(ErrorCode.UNSUPPORTED_VERSION, "not in this release", LEADER)
    ways = [pb.Endpoint(name="GRPC", host="two", port=9094)]
    voter: dict[str, Any] = {"cluster_id": "c", "voter_id": 2, "voter_directory_id": b"d" * 16}
    calls: list[tuple[Any, Any]] = [
        (stub.AddRaftVoter, pb.AddRaftVoterRequest(**voter, listeners=ways)),
        (stub.RemoveRaftVoter, pb.RemoveRaftVoterRequest(**voter)),
        (stub.UpdateRaftVoter, pb.UpdateRaftVoterRequest(**voter, listeners=ways)),
        (stub.TransferLeadership, pb.TransferLeadershipRequest(**voter)),
        (stub.TakeLeave, pb.TakeLeaveRequest(**voter)),
    ]
    for method, request in calls:
        call = method(request)
        (await served.raft.asked()).answer.set_result(answer)
        response = await call
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert response.error_message == "not in this release"
        assert response.current_leader.leader_epoch == 4


async def test_an_answer_that_is_given_up_ends_its_call_with_a_status(
    served: Served, channel: grpc.aio.Channel
) -> None:
    """A disk that hangs leaves the listener open: its callers must not wait for ever."""
    stub = raft_pb2_grpc.RaftStub(channel)
    stream, unary = stub.Fetch(), stub.DescribeQuorum(pb.DescribeQuorumRequest())
    await stream.write(fetch_from(2, 10))
    for asked in (await served.raft.asked(), await served.raft.asked()):
        asked.answer.cancel()
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await unary
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await next_of(stream)
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_fetch_that_nobody_will_answer_ends_its_stream(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).Fetch()
    await call.write(fetch_from(2, 10))
    asked = await served.raft.asked()
    asked.answer.cancel()
    assert (await call.code()) is grpc.StatusCode.UNAVAILABLE
    assert await served.raft.given_up() == asked.token


async def test_a_half_closed_stream_gets_the_answers_that_are_missing(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).Fetch()
    await call.write(fetch_from(2, 10))
    await call.done_writing()
    (await served.raft.asked()).answer.set_result(fetched(1))
    assert await next_of(call) == 1
    assert await call.read() is grpc.aio.EOF
    assert (await call.code()) is grpc.StatusCode.OK


async def test_a_server_that_stops_gives_up_the_fetches_of_its_streams(
    served: Served, channel: grpc.aio.Channel
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).Fetch()
    await call.write(fetch_from(2, 10))
    asked = await served.raft.asked()
    await served.server.stop()
    assert await served.raft.given_up() == asked.token
    assert (await call.code()) is not grpc.StatusCode.OK
