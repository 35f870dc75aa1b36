"""A quorum without logs: real servers that all answer from one state, which the test scripts."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset, ReplyToken
from quorate.records.voters import Endpoint
from quorate.rpc.controller.servicer import ControllerServicer
from quorate.rpc.listener import GrpcListener
from quorate.rpc.raft.servicer import RaftServicer
from tests.integration.rpc.conftest import ControllerByHand
from tests.integration.transports import chosen
from tests.ports import HOST
from tests.unit.raft import cores

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from quorate.raft.last_message import Heard
    from quorate.records.ids import ReplicaKey

    Answer: TypeAlias = (
        m.MembershipResponse | Callable[[m.MembershipRequest], Awaitable[m.MembershipResponse]]
    )

END: Final = Offset(100)


def refusal(
    error: ErrorCode, reason: m.Reason | None, message: str = "why", **metadata: str
) -> m.MembershipResponse:
    """The error with which a leader refuses."""
    leader = m.LeaderInfo(NodeId(1), Epoch(5))
    return m.MembershipResponse(error, message, leader, reason, tuple(metadata.items()))


@dataclass(slots=True)
class _Handler:
    """One node: describes the quorum's state, and answers changes by its script."""

    quorum: ScriptedQuorum
    node_id: int

    def submit(self, request: m.Request) -> tuple[ReplyToken, asyncio.Future[m.Response]]:
        return ReplyToken(1), asyncio.ensure_future(self.quorum.answer(self.node_id, request))

    def caller_disconnected(self, token: ReplyToken) -> None:
        del token


class ScriptedQuorum:
    """Nodes 1, 2, ... of which one leads. An async context manager.

    Changes are made immediately, unless `answers` holds another answer.
    """

    def __init__(self, count: int = 3) -> None:
        self.leader: int | None = 1
        self.epoch = 5
        self.voters: dict[int, ReplicaKey] = {i: cores.key(i) for i in range(1, count + 1)}
        self.observers: tuple[m.ReplicaState, ...] = ()
        self.pending: m.VoterChange | None = None
        self.high_watermark: Offset | None = END
        self.kraft_version = 1
        self.lags: dict[int, int] = {}
        # Milliseconds since the last Fetch.
        self.silences: dict[int, int] = {}
        self.last_leader: m.LeaderInfo | None = None
        self.heard: tuple[Heard, ...] = ()
        self.answers: deque[Answer] = deque()
        self.asked: list[tuple[int, m.MembershipRequest]] = []
        self.described = asyncio.Condition()
        self.servers: dict[int, GrpcListener] = {}
        self.addresses: dict[int, tuple[str, int]] = {}

    async def __aenter__(self) -> Self:
        for node_id in self.voters:
            await self.start(node_id)
        return self

    async def __aexit__(self, *_: object) -> None:
        for node_id in list(self.servers):
            await self.stop(node_id)

    async def start(self, node_id: int) -> None:
        """Let a node listen, at its old port if it had one."""
        raft = RaftServicer(
            _Handler(self, node_id),
            m.ApiVersionsResponse(
                error=ErrorCode.NONE,
                cluster_id=cores.CLUSTER,
                key=cores.key(node_id),
                kraft_version_min=0,
                kraft_version_max=1,
            ),
            software_version="9",
        )
        server = GrpcListener.serving(
            (raft, ControllerServicer(ControllerByHand())),
            has_reflection=False,
            transport=chosen(),
        )
        port = server.bind(HOST, self.addresses.get(node_id, (HOST, 0))[1])
        await server.start()
        self.servers[node_id], self.addresses[node_id] = server, (HOST, port)

    async def stop(self, node_id: int) -> None:
        """Close a node's listener and connections immediately."""
        await self.servers.pop(node_id).stop()

    def endpoints(self, node_id: int) -> tuple[Endpoint, ...]:
        if node_id not in self.addresses:
            return cores.endpoints(node_id)
        return (Endpoint("GRPC", *self.addresses[node_id]),)

    async def answer(self, node_id: int, request: m.Request) -> m.Response:
        """Answer a request as one node."""
        if isinstance(request, m.DescribeQuorumRequest):
            return self._describe(node_id)
        assert isinstance(request, m.MembershipRequest)
        self.asked.append((node_id, request))
        if self.answers:
            said = self.answers.popleft()
            return said if isinstance(said, m.MembershipResponse) else await said(request)
        if node_id != self.leader:
            no_leader = m.LeaderInfo(None, Epoch(self.epoch))
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return m.MembershipResponse(error, "another", no_leader, m.Reason.NOT_LEADER)
        return self.perform(request)

    def perform(self, request: m.MembershipRequest) -> m.MembershipResponse:
        """Make the change, as if it were committed immediately."""
        match request:
            case m.AddRaftVoterRequest(voter=key):
                self.voters[key.node_id] = key
            case m.RemoveRaftVoterRequest(voter=key):
                del self.voters[key.node_id]
            case m.TransferLeadershipRequest(voter=key):
                self.lead(key.node_id)
            case m.UpdateFeaturesRequest(kraft_version=level, validate_only=False):
                self.kraft_version = level
        return m.MembershipResponse(ErrorCode.NONE, "", self._leader_info())

    def lead(self, node_id: int | None) -> None:
        """Another leader, in the next epoch."""
        self.leader, self.epoch = node_id, self.epoch + 1

    def _leader_info(self) -> m.LeaderInfo:
        if self.leader is None:
            return m.LeaderInfo(None, Epoch(self.epoch))
        leader = NodeId(self.leader)
        return m.LeaderInfo(leader, Epoch(self.epoch), self.endpoints(self.leader))

    def _describe(self, node_id: int) -> m.DescribeQuorumResponse:
        now_ms = Millis(10_000)
        if node_id != self.leader:
            return m.DescribeQuorumResponse(
                error=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                leader=self._leader_info(),
                now_ms=now_ms,
                last_leader=self.last_leader,
                heard=self.heard,
            )
        states = tuple(
            m.ReplicaState(
                key=key,
                log_end_offset=Offset(END - self.lags.get(voter_id, 0)),
                last_fetch_ms=Millis(now_ms - self.silences.get(voter_id, 0)),
                last_caught_up_ms=now_ms,
                endpoints=self.endpoints(voter_id),
            )
            for voter_id, key in sorted(self.voters.items())
        )
        return m.DescribeQuorumResponse(
            error=ErrorCode.NONE,
            leader=self._leader_info(),
            high_watermark=self.high_watermark,
            voters=states,
            observers=self.observers,
            now_ms=now_ms,
            kraft_version=self.kraft_version,
            uncommitted_voter_change=self.pending,
        )


def observer(node_id: int, directory: int | None = None) -> m.ReplicaState:
    """A replica that fetches, has caught up and may be added."""
    key = cores.key(node_id)
    if directory is not None:
        key = replace(key, directory_id=cores.key(directory).directory_id)
    moment = Millis(10_000)
    return m.ReplicaState(
        key=key,
        log_end_offset=END,
        last_fetch_ms=moment,
        last_caught_up_ms=moment,
        endpoints=cores.endpoints(node_id),
    )
