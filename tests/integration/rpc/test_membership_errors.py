"""Every refusal of the membership RPCs, over real gRPC, as the table in docs/protocol.md has it.

Behind the listener answers a real core whose clock and peers are the test's.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest

from quorate.client.controller_client import ControllerClient
from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Millis, Offset, ReplicaKey, ReplyToken
from quorate.records.voters import Endpoint
from quorate.rpc.listener import GrpcListener
from quorate.rpc.raft.servicer import RaftServicer
from tests.integration.rpc.conftest import WHO
from tests.integration.transports import chosen
from tests.ports import HOST
from tests.unit.raft import cores
from tests.unit.raft.membership.test_kraft_version_upgrade import static_leader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.raft.core import RaftCore

PROTOCOL: Final = Path(__file__).parents[3] / "docs" / "protocol.md"
WAIT_S: Final = 60.0
NOW: Final = 4500
ELSEWHERE: Final = (Endpoint("CONTROLLER", "node-4", 9093),)
ADD: Final = m.AddRaftVoterRequest(
    cluster_id=cores.CLUSTER,
    voter=cores.key(4),
    listeners=cores.endpoints(4),
    timeout_ms=Millis(1000),
)
REMOVE: Final = m.RemoveRaftVoterRequest(
    cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(1000)
)
UPDATE: Final = m.UpdateRaftVoterRequest(
    cluster_id=cores.CLUSTER,
    current_leader_epoch=Epoch(1),
    voter=cores.key(3),
    listeners=(Endpoint("GRPC", "elsewhere", 9094),),
    kraft_version_min=0,
    kraft_version_max=1,
)
VERSIONS: Final = m.ApiVersionsResponse(
    error=ErrorCode.NONE,
    cluster_id=cores.CLUSTER,
    key=cores.key(4),
    kraft_version_min=0,
    kraft_version_max=1,
)
Step: TypeAlias = "Callable[[Peer], None]"


@dataclass(slots=True)
class Peer:
    """A raft handler that is a real core; what it sends to its peers stays here."""

    core: RaftCore
    now_ms: int = NOW
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict[ReplyToken, asyncio.Future[m.Response]] = field(default_factory=dict)
    sent: list[api.SendRequest] = field(default_factory=list)

    def submit(self, request: m.Request) -> tuple[ReplyToken, asyncio.Future[m.Response]]:
        token = ReplyToken(1000 + len(self.answers))
        self.answers[token] = asyncio.get_running_loop().create_future()
        self.step(api.RequestReceived(token, request), self.now_ms)
        self.asked.set()
        return token, self.answers[token]

    def caller_disconnected(self, token: ReplyToken) -> None:
        del self.answers[token]

    def step(self, event: api.Event, now_ms: int) -> None:
        for effect in self.core.step(event, Millis(now_ms)).effects:
            if isinstance(effect, api.SendRequest):
                self.sent.append(effect)
            if isinstance(effect, api.SendReply) and effect.token in self.answers:
                self.answers[effect.token].set_result(effect.response)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what is said, and how a caller gets to hear it."""

    error: ErrorCode
    reason: m.Reason
    phrase: str
    request: m.MembershipRequest
    core: Callable[[], RaftCore] = cores.grown_up_leader
    then: Step | None = None
    now_ms: int = NOW

    @property
    def rpc(self) -> str:
        return type(self.request).__name__.removesuffix("Request")

    @property
    def cells(self) -> tuple[str, ...]:
        return self.rpc, self.error.name, str(int(self.error)), self.reason.value, self.phrase


# --- cores ----------------------------------------------------------------------------------------


def with_observer() -> RaftCore:
    """A leader with an observer 4 that has everything that is committed."""
    core = cores.grown_up_leader()
    cores.ask(core, cores.fetch(4, 3, 1), now_ms=4450, token=50)
    return core


def decommissioned() -> RaftCore:
    core = with_observer()
    voters = replace(cores.voters(1, 2, 3), decommissioned=(cores.key(4),))
    core.replica.log.voters[-1] = m.VotersAt(Offset(2), voters)
    return core


def changing() -> RaftCore:
    core = with_observer()
    cores.ask(core, replace(REMOVE, voter=cores.key(2)), now_ms=NOW - 1, token=51)
    return core


def lonely() -> RaftCore:
    """Voters 2 and 3 fell silent; the observer 4 fetches."""
    core = cores.grown_up_leader()
    cores.ask(core, cores.fetch(4, 3, 1), now_ms=6450, token=50)
    return core


def only_voter() -> RaftCore:
    core = cores.started(1, cores.recovered(1))
    cores.flush(core, now_ms=1)
    return core


# --- what happens while the caller waits ----------------------------------------------------------


def silence(peer: Peer) -> None:
    peer.step(api.TimerFired(), NOW + 1000)


def deposed(peer: Peer) -> None:
    request = m.BeginQuorumEpochRequest(
        cores.CLUSTER, cores.key(1), cores.key(2).node_id, Epoch(9), cores.endpoints(2)
    )
    peer.step(api.RequestReceived(ReplyToken(1), request), NOW + 1)


def versions(answer: m.ApiVersionsResponse | api.RequestFailure) -> Step:
    def give(peer: Peer) -> None:
        (call,) = [s.call for s in peer.sent if isinstance(s.request, m.ApiVersionsRequest)]
        peer.step(api.ResponseReceived(call, answer), NOW + 1)

    return give


def appended_then_silence(peer: Peer) -> None:
    versions(VERSIONS)(peer)
    silence(peer)


# --- the rows -------------------------------------------------------------------------------------

TIMED_OUT: Final = ErrorCode.REQUEST_TIMED_OUT
INVALID: Final = ErrorCode.INVALID_REQUEST
NOT_LEADER: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
R = m.Reason


def common(request: m.AddRaftVoterRequest | m.RemoveRaftVoterRequest) -> Iterator[Row]:
    """The cases that AddRaftVoter and RemoveRaftVoter share."""
    stray = replace(request, cluster_id=ClusterId("other"))
    yield Row(
        ErrorCode.INCONSISTENT_CLUSTER_ID, R.INCONSISTENT_CLUSTER_ID, "this is cluster", stray
    )
    yield Row(NOT_LEADER, R.NOT_LEADER, "does not lead epoch", request, cores.follower, now_ms=2)
    yield Row(
        ErrorCode.UNSUPPORTED_VERSION,
        R.KRAFT_VERSION_TOO_OLD,
        "kraft.version is 0",
        request,
        static_leader,
    )
    yield Row(
        TIMED_OUT,
        R.HIGH_WATERMARK_UNKNOWN,
        "has not committed a record of its epoch",
        request,
        cores.leader,
        now_ms=2001,
    )
    yield Row(
        TIMED_OUT,
        R.HIGH_WATERMARK_UNKNOWN,
        "has yet to learn who fetches",
        request,
        young_leader,
        now_ms=3999,
    )
    yield Row(TIMED_OUT, R.PENDING_VOTER_CHANGE, "another change of the voters", request, changing)
    yield Row(
        TIMED_OUT,
        R.NO_LIVE_MAJORITY,
        "and a majority is",
        request,
        lonely,
        now_ms=6460,
    )
    yield Row(NOT_LEADER, R.LEADERSHIP_LOST, "leadership was lost", request, with_observer, deposed)


def young_leader() -> RaftCore:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001, token=2)
    return core


def of_add() -> Iterator[Row]:
    yield from common(ADD)
    bare = replace(ADD, voter=ReplicaKey(cores.key(4).node_id))
    yield Row(INVALID, R.DIRECTORY_ID_UNKNOWN, "voter_directory_id is missing", bare)
    yield Row(INVALID, R.INVALID_LISTENERS, "listeners has", replace(ADD, listeners=ELSEWHERE))
    twin = replace(ADD, voter=cores.key(3))
    yield Row(ErrorCode.DUPLICATE_VOTER, R.DUPLICATE_VOTER, "is a voter already", twin)
    by_itself = replace(ADD, auto_join=True)
    yield Row(
        INVALID,
        R.VOTER_DECOMMISSIONED,
        "does not come back by itself",
        by_itself,
        decommissioned,
    )
    yield Row(TIMED_OUT, R.VOTER_LAGGING, "has not fetched from this leader", ADD)
    yield Row(TIMED_OUT, R.VOTER_LAGGING, "records behind", ADD, lagging)
    failed = versions(api.RequestFailure.DISCONNECTED)
    yield Row(
        TIMED_OUT, R.VOTER_UNREACHABLE, "does not answer ApiVersions", ADD, with_observer, failed
    )
    other = versions(replace(VERSIONS, key=cores.key(5)))
    yield Row(INVALID, R.VOTER_IS_SOMEBODY_ELSE, "answers node", ADD, with_observer, other)
    old = versions(replace(VERSIONS, kraft_version_max=0))
    yield Row(INVALID, R.VOTER_UNSUPPORTED, "supports kraft.version", ADD, with_observer, old)
    yield Row(
        TIMED_OUT,
        R.NOT_COMMITTED_IN_TIME,
        "not committed in time",
        # It is appended immediately, and waits for no Fetch of the others.
        replace(ADD, force=True),
        with_observer,
        appended_then_silence,
    )


def lagging() -> RaftCore:
    core = cores.grown_up_leader()
    cores.ask(core, cores.fetch(4, 1, 1, wait_ms=0), now_ms=4499, token=51)
    return core


def of_remove() -> Iterator[Row]:
    yield from common(REMOVE)
    unknown = replace(REMOVE, voter=cores.key(9))
    yield Row(ErrorCode.VOTER_NOT_FOUND, R.VOTER_NOT_FOUND, "is no voter", unknown)
    evicting = replace(REMOVE, auto_join=True)
    yield Row(TIMED_OUT, R.VOTER_ALIVE, "may not take its place", evicting)
    own = replace(REMOVE, voter=cores.key(1))
    yield Row(INVALID, R.LAST_VOTER, "is the last one", own, only_voter)
    forced = replace(REMOVE, force=True)
    yield Row(TIMED_OUT, R.NOT_COMMITTED_IN_TIME, "not committed in time", forced, then=silence)


def of_update() -> Iterator[Row]:
    stray = replace(UPDATE, cluster_id=ClusterId("other"))
    yield Row(
        ErrorCode.INCONSISTENT_CLUSTER_ID, R.INCONSISTENT_CLUSTER_ID, "this is cluster", stray
    )
    yield Row(NOT_LEADER, R.NOT_LEADER, "does not lead epoch", UPDATE, cores.follower, now_ms=2)
    past, future = (replace(UPDATE, current_leader_epoch=Epoch(epoch)) for epoch in (0, 2))
    phrase = "current_leader_epoch is"
    yield Row(ErrorCode.FENCED_LEADER_EPOCH, R.STALE_EPOCH, phrase, past)
    yield Row(ErrorCode.UNKNOWN_LEADER_EPOCH, R.STALE_EPOCH, phrase, future)
    bare = replace(UPDATE, voter=ReplicaKey(cores.key(3).node_id))
    yield Row(INVALID, R.DIRECTORY_ID_UNKNOWN, "voter_directory_id is missing", bare)
    unknown = replace(UPDATE, voter=cores.key(9))
    yield Row(ErrorCode.VOTER_NOT_FOUND, R.VOTER_NOT_FOUND, "is no voter", unknown)
    old = replace(UPDATE, kraft_version_max=0)
    yield Row(INVALID, R.VOTER_UNSUPPORTED, "supports kraft.version", old)
    elsewhere = replace(UPDATE, listeners=ELSEWHERE)
    yield Row(INVALID, R.INVALID_LISTENERS, "listeners has", elsewhere)
    yield Row(
        TIMED_OUT,
        R.HIGH_WATERMARK_UNKNOWN,
        "has not committed a record of its epoch",
        UPDATE,
        cores.leader,
        now_ms=2001,
    )
    yield Row(TIMED_OUT, R.PENDING_VOTER_CHANGE, "another change of the voters", UPDATE, changing)


ROWS: Final = [*of_add(), *of_remove(), *of_update()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.rpc}-{row.reason.value}")
async def test_a_refusal_arrives_with_code_reason_and_message(row: Row) -> None:
    peer = Peer(row.core(), row.now_ms)
    server = GrpcListener.serving(
        (RaftServicer(peer, WHO, software_version="9"),),
        has_reflection=False,
        transport=chosen(),
    )
    port = server.bind(HOST, 0)
    await server.start()
    try:
        async with (
            ControllerClient([(HOST, port)], transport=chosen()) as client,
            asyncio.timeout(WAIT_S),
        ):
            call = asyncio.ensure_future(client.change_on((HOST, port), row.request, WAIT_S))
            await peer.asked.wait()
            if row.then is not None:
                row.then(peer)
            answer = await call
    finally:
        await server.stop()
    assert (answer.error, answer.reason) == (row.error, row.reason)
    assert row.phrase in answer.message


def test_the_table_has_these_rows_and_no_others() -> None:
    text = PROTOCOL.read_text(encoding="utf-8")
    section = text.partition("## Errors of the membership RPCs")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (-?\d+) \| (\w+) \| (.+?) \| .+ \|$", section, re.M)
    assert sorted(rows) == sorted(row.cells for row in ROWS)
    assert len(set(rows)) == len(rows)
