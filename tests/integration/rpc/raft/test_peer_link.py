"""Peers by their names: late DNS, DNS that hangs, and DNS that is gone."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from quorate.h2.name_resolver import RESOLVER
from quorate.raft import messages as m
from quorate.raft.api import Peer, ProbeLeader, RequestFailure, SendRequest
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId, Epoch, Millis, NodeId
from tests.integration.rpc.conftest import HOST, WAIT_S, WHO, Served, serve
from tests.integration.rpc.raft.test_transport import GRANTED, LEADER, VOTE, Caller, fetch, opened
from tests.ports import free_ports
from tests.unit.raft import cores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ELSEWHERE = "127.0.0.2"
TWO = replace(WHO, key=cores.key(2))
ASK_TWO = replace(VOTE, voter=cores.key(2), replica=cores.key(3))
LEADS_NOT = m.FetchResponse(
    error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(NodeId(3), Epoch(4))
)
LEADS = replace(LEADS_NOT, error=ErrorCode.NONE)
NOT_TWO = m.VoteResponse(ErrorCode.INVALID_VOTER_KEY, LEADER)


class Names:
    """The answers of the system's resolver; the names that it does not answer hang."""

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        self.hanging: set[str] = set()
        self.released = threading.Event()
        self._system = socket.getaddrinfo

    def look_up(self, host: Any, port: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        if host in self.hanging:
            self.released.wait()
        if isinstance(host, str) and host.endswith(".example"):
            if host not in self.addresses:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            host = self.addresses[host]
        return self._system(host, port, *args, **options)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    one = Names()
    monkeypatch.setattr(socket, "getaddrinfo", one.look_up)
    yield one
    one.released.set()


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    async for one in opened(2000):
        yield one


def send(caller: Caller, to: Peer, request: m.PeerRequest) -> None:
    caller.calls += 1
    caller.client.send(SendRequest(CallId(caller.calls), to, request))


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """Node 1, at a port that no outgoing connection is given: node 2 takes the same one."""
    one = await serve(*free_ports(1))
    yield one
    await one.server.stop()


@pytest.fixture
async def two(served: Served) -> AsyncIterator[Served]:
    """Node 2 at another address with the port of node 1."""
    one = await serve(served.port, host=ELSEWHERE, who=TWO)
    yield one
    await one.server.stop()


async def keep_answering(served: Served, answer: m.PeerResponse) -> None:
    while True:
        asked = await served.raft.requests.get()
        # Its connection may have been closed.
        if not asked.answer.done():
            asked.answer.set_result(answer)


@asynccontextmanager
async def answering(served: Served, answer: m.PeerResponse) -> AsyncIterator[None]:
    task = asyncio.ensure_future(keep_answering(served, answer))
    yield
    task.cancel()


async def ask_until(
    caller: Caller, to: Peer, request: m.PeerRequest, wanted: m.PeerResponse
) -> None:
    async with asyncio.timeout(WAIT_S):
        answer: m.PeerResponse | RequestFailure | None = None
        while answer != wanted:
            send(caller, to, request)
            answer = (await caller.answer())[1]


LATE: dict[str, tuple[m.PeerRequest, m.PeerResponse, m.PeerResponse]] = {
    "vote": (ASK_TWO, NOT_TWO, GRANTED),
    "discovery": (replace(fetch(10), max_wait_ms=Millis(0)), LEADS_NOT, LEADS),
    "fetch": (fetch(10), LEADS_NOT, LEADS),
}


@pytest.mark.parametrize("kind", LATE)
async def test_a_name_that_led_to_another_replica_is_resolved_again(
    kind: str,
    served: Served,
    two: Served,
    names: Names,
    caller: Caller,
    caplog: pytest.LogCaptureFixture,
) -> None:
    to = Peer(NodeId(2), "voter.example", served.port)
    request, rejection, accepted = LATE[kind]
    async with answering(served, rejection), answering(two, accepted):
        names.addresses["voter.example"] = HOST
        await ask_until(caller, to, request, rejection)
        names.addresses["voter.example"] = ELSEWHERE
        await ask_until(caller, to, request, accepted)
    assert f"voter.example:{to.port} is node {cores.key(1)}, not node 2" in caplog.text


async def test_a_server_that_is_this_process_is_left(
    served: Served, two: Served, names: Names, caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    """The name of a bootstrap server leads here: the client is node 2's."""
    to = Peer(NodeId(-2), "server.example", served.port)
    request = LATE["discovery"][0]
    async with answering(two, LEADS_NOT), answering(served, LEADS):
        names.addresses["server.example"] = ELSEWHERE
        await ask_until(caller, to, request, LEADS_NOT)
        names.addresses["server.example"] = HOST
        await ask_until(caller, to, request, LEADS)
    assert f"server.example:{to.port} is this process, node {cores.key(2)}" in caplog.text


async def test_a_resignation_that_another_replica_acknowledges_is_not_done(
    served: Served, caller: Caller
) -> None:
    end = m.EndQuorumEpochRequest(cores.CLUSTER, NodeId(3), Epoch(4), ())
    send(caller, Peer(NodeId(2), HOST, served.port), end)
    asked = await served.raft.asked()
    asked.answer.set_result(m.EndQuorumEpochResponse(ErrorCode.NONE, LEADER))
    assert (await caller.answer())[1] is RequestFailure.DISCONNECTED


async def test_names_that_hang_delay_no_other(served: Served, names: Names, caller: Caller) -> None:
    """Each attempt would hold a thread of the pool of the event loop, which has few."""
    names.hanging.add("dead.example")
    for port in range(1, 40):
        send(caller, Peer(NodeId(3), "dead.example", port), VOTE)
    names.addresses["voter.example"] = HOST
    send(caller, Peer(NodeId(1), "voter.example", served.port), VOTE)
    (await served.raft.asked()).answer.set_result(GRANTED)
    assert await caller.answer() == (caller.calls, GRANTED)
    caller.client.probe(ProbeLeader(CallId(0), Peer(NodeId(1), "voter.example", served.port)))
    assert await asyncio.wait_for(caller.probes.get(), WAIT_S) == (0, False)


async def test_a_name_that_resolves_no_more_is_called_where_it_was(
    served: Served, names: Names
) -> None:
    names.addresses["kept.example"] = HOST
    to = Peer(NodeId(1), "kept.example", served.port)
    for _ in range(2):
        # A new client has new channels.
        async for caller in opened(2000):
            send(caller, to, VOTE)
            (await served.raft.asked()).answer.set_result(GRANTED)
            assert (await caller.answer())[1] == GRANTED
        names.addresses.clear()
    RESOLVER.forget("kept.example")
    async for caller in opened(2000):
        send(caller, to, VOTE)
        assert (await caller.answer())[1] is RequestFailure.DISCONNECTED
        words = caller.client.outcomes.last(to.host, to.port)
        assert "kept.example cannot be resolved: Name or service not known" in (words or "")


async def test_a_peer_that_moves_is_found_by_its_name(
    served: Served, two: Served, names: Names, caller: Caller
) -> None:
    to = Peer(NodeId(2), "moving.example", served.port)
    async with answering(served, GRANTED), answering(two, NOT_TWO):
        names.addresses["moving.example"] = HOST
        await ask_until(caller, to, ASK_TWO, GRANTED)
        names.addresses["moving.example"] = ELSEWHERE
        await served.server.stop()
        await ask_until(caller, to, ASK_TWO, NOT_TWO)


async def test_a_call_does_not_wait_behind_one_that_nobody_answers(
    served: Served, two: Served, names: Names, caller: Caller
) -> None:
    """The name led elsewhere when the connection was made, and what is sent there is lost."""
    to = Peer(NodeId(2), "voter.example", served.port)
    names.addresses["voter.example"] = HOST
    send(caller, to, ASK_TWO)
    unanswered = await served.raft.asked()
    names.addresses["voter.example"] = ELSEWHERE
    send(caller, to, ASK_TWO)
    # Too early: the second one is with the first.
    (await served.raft.asked()).answer.set_result(GRANTED)
    assert await caller.answer() == (2, GRANTED)
    caller.client._links[to].silent_since_s -= 1.1
    send(caller, to, fetch(10))
    (await two.raft.asked()).answer.set_result(LEADS)
    assert await caller.answer() == (3, LEADS)
    # What was asked there may still be answered.
    unanswered.answer.set_result(GRANTED)
    assert await caller.answer() == (1, GRANTED)


async def test_a_connection_on_which_a_fetch_is_answered_is_not_silent(
    served: Served, caller: Caller
) -> None:
    to = Peer(NodeId(1), HOST, served.port)
    send(caller, to, VOTE)
    unanswered = await served.raft.asked()
    send(caller, to, fetch(10))
    link = caller.client._links[to]
    link.silent_since_s -= 60
    (await served.raft.asked()).answer.set_result(LEADS)
    assert await caller.answer() == (2, LEADS)
    send(caller, to, VOTE)
    assert caller.client._links[to] is link
    for asked in (unanswered, await served.raft.asked()):
        asked.answer.set_result(GRANTED)
    assert {await caller.answer(), await caller.answer()} == {(1, GRANTED), (3, GRANTED)}
