"""The time at which a client asks which replica is behind a connection, and what follows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest

from quorate.h2.name_resolver import RESOLVER
from quorate.raft import messages as m
from quorate.raft.api import Peer
from quorate.raft.identity.peer_identity import ReplicaIdentity
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId, ReplicaKey
from quorate.rpc.raft.peer_outcomes import PeerOutcomes
from quorate.rpc.raft.peer_verification import ADDRESSES_MAX, RETRY_LONGEST_MS, TRUST_S, PeerCheck
from tests.unit.raft import cores
from tests.unit.raft.identity.test_peer_identity import (
    BEGIN,
    END,
    FETCH,
    SNAPSHOT,
    UPDATE,
    VOTE,
    found,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

PEER = Peer(NodeId(2), "two.example", 9094)
LEADER = m.LeaderInfo(NodeId(1), Epoch(4))
WRONG = ErrorCode.INVALID_VOTER_KEY
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
LIMIT_S = 2.0


@dataclass(frozen=True)
class Link:
    peer: Peer = PEER


class NoJitter:
    def random(self) -> float:
        return 1.0


@dataclass
class Client:
    """A check whose identities are given by the test, and what it did."""

    found: m.ApiVersionsResponse | None
    now_s: float = 100.0
    asked: int = 0
    left: list[Peer] = field(default_factory=list)
    tasks: list[Coroutine[None, None, None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.check = PeerCheck[Link](
            ReplicaIdentity(cores.CLUSTER, cores.key(1)),
            PeerOutcomes(None),
            ask=self.ask,
            leave=lambda link: self.left.append(link.peer),
            start=self.tasks.append,
            limit_s=LIMIT_S,
            random=NoJitter(),
        )

    async def ask(self, _: Link) -> m.ApiVersionsResponse | None:
        self.asked += 1
        return self.found

    async def answered(self, request: m.PeerRequest, answer: m.PeerResponse) -> bool:
        accepted = await self.check.accepts(Link(), request, answer)
        await self.finish()
        return accepted

    async def finish(self) -> None:
        while self.tasks:
            await self.tasks.pop(0)


def client_of(found: m.ApiVersionsResponse | None, monkeypatch: pytest.MonkeyPatch) -> Client:
    client = Client(found)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: client.now_s)
    return client


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (VOTE, m.VoteResponse(WRONG, LEADER)),
        (replace(VOTE, pre_vote=False), m.VoteResponse(WRONG, LEADER)),
        (BEGIN, m.BeginQuorumEpochResponse(WRONG, LEADER)),
        (FETCH, m.FetchResponse(error=NOT_LEADER, leader=LEADER)),
        (SNAPSHOT, m.FetchSnapshotResponse(error=NOT_LEADER, leader=LEADER)),
        (UPDATE, m.MembershipResponse(NOT_LEADER, "", LEADER)),
        (m.ApiVersionsRequest(), found(cores.key(3))),
    ],
)
async def test_another_replica_is_left_whatever_was_asked(
    request_: m.PeerRequest,
    answer: m.PeerResponse,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    forgotten: list[str] = []
    monkeypatch.setattr(RESOLVER, "forget", forgotten.append)
    client = client_of(found(cores.key(3)), monkeypatch)
    # What it says counts all the same: the epoch, for instance.
    assert await client.answered(request_, answer)
    assert (client.left, forgotten) == ([PEER], [PEER.host])
    (record,) = caplog.records
    assert record.getMessage().startswith(f"two.example:9094 is node {cores.key(3)}, not node 2")


async def test_an_acknowledgement_of_another_replica_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = client_of(found(cores.key(3)), monkeypatch)
    assert not await client.answered(END, m.EndQuorumEpochResponse(ErrorCode.NONE, LEADER))
    assert client.left == [PEER]
    right = client_of(found(cores.key(2)), monkeypatch)
    assert await right.answered(END, m.EndQuorumEpochResponse(ErrorCode.NONE, LEADER))
    assert not right.left


async def test_an_error_on_the_fetch_stream_leads_to_a_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = client_of(found(cores.key(3)), monkeypatch)
    client.check.fetched(Link(), m.FetchResponse(error=ErrorCode.NONE, leader=LEADER))
    assert not client.tasks
    client.check.fetched(Link(), m.FetchResponse(error=NOT_LEADER, leader=LEADER))
    await client.finish()
    assert client.left == [PEER]


async def test_the_right_replica_is_trusted_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(found(cores.key(2)), monkeypatch)
    answer = m.FetchResponse(error=NOT_LEADER, leader=LEADER)
    for _ in range(3):
        assert await client.answered(FETCH, answer)
    assert (client.asked, client.left) == (1, [])
    client.now_s += TRUST_S
    await client.answered(FETCH, answer)
    assert client.asked == 2
    # A connection that breaks may be followed by one to another replica.
    broken = grpc.aio.AioRpcError(
        grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata()
    )
    client.check.failed(Link(), broken, ReplicaKey(NodeId(2)))
    await client.answered(FETCH, answer)
    assert client.asked == 3


async def test_connections_to_another_replica_follow_each_other_ever_more_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = client_of(found(cores.key(3)), monkeypatch)
    waits_ms = []
    for count in range(1, 8):
        begun_s = client.now_s
        while len(client.left) < count:
            await client.answered(VOTE, m.VoteResponse(WRONG, LEADER))
            client.now_s += 0.125
        waits_ms.append((client.now_s - begun_s) * 1000)
    assert waits_ms == sorted(waits_ms)
    assert 250 < waits_ms[1] < waits_ms[-1] <= RETRY_LONGEST_MS + 250


@pytest.mark.parametrize("error", [WRONG, ErrorCode.INCONSISTENT_CLUSTER_ID])
async def test_a_wrong_replica_that_does_not_say_who_it_is_is_left(
    error: ErrorCode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(None, monkeypatch)
    await client.answered(VOTE, m.VoteResponse(error, LEADER))
    assert client.left == [PEER]
    assert f"is not node {cores.key(2)}: it answers with {error.name}" in caplog.text


async def test_silence_alone_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(None, monkeypatch)
    assert await client.answered(FETCH, m.FetchResponse(error=NOT_LEADER, leader=LEADER))
    assert (client.asked, client.left) == (1, [])


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
    ],
)
async def test_a_server_of_something_else_is_left(
    code: grpc.StatusCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(None, monkeypatch)
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details="no")
    client.check.failed(Link(), error, ReplicaKey(NodeId(2)))
    await client.finish()
    assert client.left == [PEER]


async def test_what_is_known_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(found(cores.key(2)), monkeypatch)
    for port in range(1, ADDRESSES_MAX + 9):
        link = Link(Peer(NodeId(2), "two.example", port))
        client.check.fetched(link, m.FetchResponse(error=NOT_LEADER, leader=LEADER))
        await client.finish()
    assert len(client.check._addresses) == ADDRESSES_MAX
