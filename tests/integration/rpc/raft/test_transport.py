"""The way to the peers over real sockets: one Fetch stream each, unary calls, probes, failures."""

from __future__ import annotations

import asyncio
import socket
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import messages as m
from quorate.raft.api import Peer, ProbeLeader, RequestFailure, SendRequest
from quorate.raft.identity.peer_identity import ReplicaIdentity
from quorate.records.batch import CorruptBatchError
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId, Epoch, Millis, NodeId, Offset
from quorate.rpc.raft.transport import RaftTransport
from tests.integration.rpc.conftest import HOST, WAIT_S, Served, serve
from tests.integration.transports import chosen
from tests.unit.raft import cores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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
GRANTED = m.VoteResponse(ErrorCode.NONE, LEADER, vote_granted=True)


def fetch(offset: int) -> m.FetchRequest:
    return m.FetchRequest(
        cluster_id=cores.CLUSTER,
        replica=cores.key(2),
        current_leader_epoch=Epoch(4),
        fetch_offset=Offset(offset),
        last_fetched_epoch=Epoch(4),
        max_wait_ms=Millis(500),
        max_bytes=1024,
    )


def fetched(high_watermark: int, data: bytes = b"") -> m.FetchResponse:
    records = m.FetchedBatches(data, ()) if data else None
    return m.FetchResponse(
        error=ErrorCode.NONE,
        leader=LEADER,
        high_watermark=Offset(high_watermark),
        log_start_offset=Offset(0),
        records=records,
    )


def parse(data: bytes) -> m.FetchedBatches:
    if data == b"bad":
        raise CorruptBatchError(0, "the checksum does not match")
    return m.FetchedBatches(data, ())


@dataclass(slots=True)
class Caller:
    """A client, what it was answered, and its calls by number."""

    client: RaftTransport
    answers: asyncio.Queue[tuple[int, m.PeerResponse | RequestFailure]]
    probes: asyncio.Queue[tuple[int, bool]]
    calls: int = field(default=0)

    def send(self, to: Served, request: m.PeerRequest) -> int:
        self.calls += 1
        self.client.send(SendRequest(CallId(self.calls), peer(to.port), request))
        return self.calls

    async def answer(self) -> tuple[int, m.PeerResponse | RequestFailure]:
        return await asyncio.wait_for(self.answers.get(), WAIT_S)


def peer(port: int) -> Peer:
    return Peer(NodeId(1), HOST, port)


async def opened(request_timeout_ms: int) -> AsyncIterator[Caller]:
    answers: asyncio.Queue[tuple[int, m.PeerResponse | RequestFailure]] = asyncio.Queue()
    probes: asyncio.Queue[tuple[int, bool]] = asyncio.Queue()
    client = RaftTransport(
        own=OWN,
        transport=chosen(),
        on_response=lambda call, answer: answers.put_nowait((call, answer)),
        on_probe=lambda call, refused: probes.put_nowait((call, refused)),
        parse_batches=parse,
        request_timeout_ms=request_timeout_ms,
    )
    yield Caller(client, answers, probes)
    await client.close()


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    """A client that waits as long as the test does."""
    async for one in opened(int(WAIT_S * 1000)):
        yield one


@pytest.fixture
async def impatient(served: Served) -> AsyncIterator[Caller]:
    """A client whose calls end after a tenth of a second, once it is connected."""
    # A connection that takes as long as a call may would end it in another way.
    async for one in opened(int(WAIT_S * 1000)):
        one.send(served, fetch(10))
        (await served.raft.asked()).answer.set_result(fetched(1))
        await one.answer()
        one.client._timeout_s = 0.1
        yield one


async def test_a_vote_is_answered(served: Served, caller: Caller) -> None:
    call = caller.send(served, VOTE)
    asked = await served.raft.asked()
    assert asked.request == VOTE
    asked.answer.set_result(GRANTED)
    assert await caller.answer() == (call, GRANTED)


async def test_answers_on_the_fetch_stream_belong_to_the_calls_in_order(
    served: Served, caller: Caller
) -> None:
    first, second = caller.send(served, fetch(10)), caller.send(served, fetch(11))
    asked = await served.raft.asked(), await served.raft.asked()
    assert [one.request for one in asked] == [fetch(10), fetch(11)]
    asked[1].answer.set_result(fetched(2, b"two"))
    asked[0].answer.set_result(fetched(1, b"one"))
    assert [await caller.answer(), await caller.answer()] == [
        (first, fetched(1, b"one")),
        (second, fetched(2, b"two")),
    ]


async def test_fetches_leave_in_order_while_the_first_of_them_waits_for_a_connection(
    served: Served, caller: Caller
) -> None:
    calls = [caller.send(served, fetch(offset)) for offset in (10, 11)]
    for offset in (10, 11, 12, 13, 14):
        asked = await served.raft.asked()
        assert asked.request == fetch(offset)
        asked.answer.set_result(fetched(offset))
        assert await caller.answer() == (calls.pop(0), fetched(offset))
        calls.append(caller.send(served, fetch(offset + 2)))


async def test_what_follows_from_an_answer_has_other_causes(served: Served) -> None:
    """Neither the request's nor the connection's: spans would have wrong parents."""
    cause = ContextVar[str]("cause")
    causes: asyncio.Queue[str] = asyncio.Queue()
    cause.set("the client")
    client = RaftTransport(
        own=OWN,
        transport=chosen(),
        on_response=lambda *_: causes.put_nowait(cause.get()),
        on_probe=lambda *_: None,
        parse_batches=parse,
        request_timeout_ms=int(WAIT_S * 1000),
    )
    cause.set("a request")
    for number in (1, 2, 3):
        client.send(SendRequest(CallId(number), peer(served.port), fetch(number)))
        (await served.raft.asked()).answer.set_result(fetched(number))
        assert await asyncio.wait_for(causes.get(), WAIT_S) == "the client"
    await client.close()


async def test_batches_that_do_not_check_are_no_answer(served: Served, caller: Caller) -> None:
    call = caller.send(served, fetch(10))
    (await served.raft.asked()).answer.set_result(fetched(1, b"bad"))
    assert await caller.answer() == (call, RequestFailure.UNREADABLE)
    again = caller.send(served, fetch(10))
    (await served.raft.asked()).answer.set_result(fetched(1, b"good"))
    assert await caller.answer() == (again, fetched(1, b"good"))


async def test_a_peer_that_ends_fails_its_fetches_and_is_found_again(caller: Caller) -> None:
    server = await serve()
    calls = [caller.send(server, fetch(10)), caller.send(server, fetch(11))]
    await server.raft.asked()
    await server.raft.asked()
    await server.server.stop()
    assert [await caller.answer(), await caller.answer()] == [
        (call, RequestFailure.DISCONNECTED) for call in calls
    ]
    back = await serve(server.port)
    try:
        answer: m.PeerResponse | RequestFailure = RequestFailure.DISCONNECTED
        asking = asyncio.ensure_future(back.raft.asked())
        while answer is RequestFailure.DISCONNECTED:
            # Until the channel has connected again, each call fails immediately.
            call = caller.send(back, fetch(10))
            reply = asyncio.ensure_future(caller.answer())
            await asyncio.wait((asking, reply), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                (await asking).answer.set_result(fetched(3))
            assert (await reply)[0] == call
            answer = reply.result()[1]
        assert answer == fetched(3)
    finally:
        await back.server.stop()


async def test_a_peer_that_moves_is_called_where_it_is(
    served: Served, another: Served, caller: Caller
) -> None:
    first = caller.send(served, fetch(10))
    await served.raft.asked()
    second = caller.send(another, fetch(10))
    asked = await another.raft.asked()
    assert await caller.answer() == (first, RequestFailure.DISCONNECTED)
    asked.answer.set_result(fetched(1))
    assert await caller.answer() == (second, fetched(1))
    assert await served.raft.given_up() == 1


async def test_a_call_without_an_answer_times_out(served: Served, impatient: Caller) -> None:
    call = impatient.send(served, VOTE)
    assert await impatient.answer() == (call, RequestFailure.TIMED_OUT)


async def test_a_port_where_nobody_listens_is_a_disconnect_and_refuses(
    caller: Caller, served: Served
) -> None:
    with socket.create_server((HOST, 0)) as taken:
        free = taken.getsockname()[1]
    caller.client.send(SendRequest(CallId(1), peer(free), VOTE))
    assert await caller.answer() == (1, RequestFailure.DISCONNECTED)
    caller.client.probe(ProbeLeader(CallId(2), peer(free)))
    assert await asyncio.wait_for(caller.probes.get(), WAIT_S) == (2, True)
    caller.client.probe(ProbeLeader(CallId(3), peer(served.port)))
    assert await asyncio.wait_for(caller.probes.get(), WAIT_S) == (3, False)


async def test_a_connection_that_let_a_call_time_out_is_not_trusted_again(
    served: Served, impatient: Caller
) -> None:
    """Its machine may be gone, or its name mean another one, long before the kernel notices."""
    call = impatient.send(served, VOTE)
    assert await impatient.answer() == (call, RequestFailure.TIMED_OUT)
    before = impatient.client._links[peer(served.port)]
    impatient.send(served, VOTE)
    assert impatient.client._links[peer(served.port)] is not before
    assert (await impatient.answer())[1] is RequestFailure.TIMED_OUT


async def test_a_voter_tried_at_two_addresses_keeps_the_one_that_somebody_waits_for(
    served: Served, another: Served, caller: Caller
) -> None:
    first = caller.send(served, VOTE)
    asked = await served.raft.asked()
    second = caller.send(another, VOTE)
    (await another.raft.asked()).answer.set_result(GRANTED)
    assert await caller.answer() == (second, GRANTED)
    asked.answer.set_result(GRANTED)
    assert await caller.answer() == (first, GRANTED)
    # Once the peer is tried at a third one, no call waits for the first two any more.
    with socket.create_server((HOST, 0)) as taken:
        free = taken.getsockname()[1]
    caller.client.send(SendRequest(CallId(9), peer(free), VOTE))
    assert await caller.answer() == (9, RequestFailure.DISCONNECTED)
    assert set(caller.client._links) == {peer(free)}


async def test_a_call_that_has_not_begun_keeps_its_link(
    served: Served, another: Served, caller: Caller
) -> None:
    calls = [caller.send(served, VOTE), caller.send(another, VOTE)]
    for server in (served, another):
        (await server.raft.asked()).answer.set_result(GRANTED)
    answers = [await caller.answer(), await caller.answer()]
    assert sorted(call for call, _ in answers) == calls
    assert [answer for _, answer in answers] == [GRANTED, GRANTED]


async def test_a_fetch_whose_link_is_left_before_it_began_is_reported(
    served: Served, another: Served, caller: Caller
) -> None:
    first, second = caller.send(served, fetch(10)), caller.send(another, fetch(10))
    assert await caller.answer() == (first, RequestFailure.DISCONNECTED)
    (await another.raft.asked()).answer.set_result(fetched(1))
    assert await caller.answer() == (second, fetched(1))


async def test_a_call_whose_channel_is_closed_under_it_is_reported(
    served: Served, caller: Caller
) -> None:
    first = caller.send(served, VOTE)
    await served.raft.asked()
    caller.client._links[peer(served.port)].is_stale = True
    second = caller.send(served, VOTE)
    assert await caller.answer() == (first, RequestFailure.DISCONNECTED)
    (await served.raft.asked()).answer.set_result(GRANTED)
    assert await caller.answer() == (second, GRANTED)


async def test_a_stream_without_an_answer_ends_and_the_next_fetch_has_a_fresh_one(
    served: Served,
) -> None:
    # Long enough for the first question to be asked, and the second may wait far longer.
    async for patient in opened(2000):
        first = patient.send(served, replace(fetch(10), max_wait_ms=Millis(1)))
        unanswered = await served.raft.asked()
        assert await patient.answer() == (first, RequestFailure.DISCONNECTED)
        second = patient.send(served, replace(fetch(11), max_wait_ms=Millis(60_000)))
        asked = await served.raft.asked()
        if not unanswered.answer.done():
            unanswered.answer.set_result(fetched(1))
        asked.answer.set_result(fetched(2))
        assert await patient.answer() == (second, fetched(2))


async def test_a_fetch_after_one_that_never_left_is_reported_too() -> None:
    """A peer without connection or address yet must not keep the next Fetch waiting."""
    with socket.create_server((HOST, 0)) as mute:
        port = mute.getsockname()[1]
        # Less than a connection may take, so that the stream is given up before it has begun.
        async for caller in opened(20):
            for call in (1, 2, 3):
                request = replace(fetch(10), max_wait_ms=Millis(0))
                caller.client.send(SendRequest(CallId(call), peer(port), request))
                assert await caller.answer() == (call, RequestFailure.DISCONNECTED)
