"""A server on a free loopback port whose services are answered by the test."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio
import pytest

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import ReplyToken
from quorate.rpc.controller.servicer import ControllerServicer
from quorate.rpc.listener import GrpcListener
from quorate.rpc.raft.servicer import RaftServicer
from quorate.rpc.security.authorization import ALLOW_ALL, CallerPolicy
from tests.integration.transports import chosen, each_transport
from tests.unit.raft import cores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from quorate.controller.authorization.authorizer import Caller
    from quorate.controller.request_types import ReadReply, ReadRequest, WriteReply, WriteRequest
    from quorate.rpc.security.tls_files import TlsFiles

__all__ = ["each_transport"]

WHO: Final = m.ApiVersionsResponse(
    error=ErrorCode.NONE,
    cluster_id=cores.CLUSTER,
    key=cores.key(1),
    kraft_version_min=0,
    kraft_version_max=1,
)
HOST: Final = "127.0.0.1"
WAIT_S: Final = 60.0


@dataclass(slots=True)
class Asked:
    """A request of a peer, and the future that answers it."""

    token: ReplyToken
    request: m.Request
    answer: asyncio.Future[m.Response]


@dataclass(slots=True)
class RaftByHand:
    """A raft handler: requests queue up for the test."""

    requests: asyncio.Queue[Asked] = field(default_factory=asyncio.Queue)
    abandoned: asyncio.Queue[ReplyToken] = field(default_factory=asyncio.Queue)
    submitted: int = 0

    def submit(self, request: m.Request) -> tuple[ReplyToken, asyncio.Future[m.Response]]:
        self.submitted += 1
        asked = Asked(
            ReplyToken(self.submitted), request, asyncio.get_running_loop().create_future()
        )
        self.requests.put_nowait(asked)
        return asked.token, asked.answer

    def caller_disconnected(self, token: ReplyToken) -> None:
        self.abandoned.put_nowait(token)

    async def asked(self) -> Asked:
        return await asyncio.wait_for(self.requests.get(), WAIT_S)

    async def given_up(self) -> ReplyToken:
        return await asyncio.wait_for(self.abandoned.get(), WAIT_S)


@dataclass(slots=True)
class ControllerByHand:
    """A controller handler: writes queue up for the test, reads get what it has prepared."""

    writes: asyncio.Queue[tuple[WriteRequest, asyncio.Future[WriteReply]]] = field(
        default_factory=asyncio.Queue
    )
    reads: list[tuple[ReadRequest, int, bool]] = field(default_factory=list)
    read_replies: list[ReadReply | Exception] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)

    def write(self, request: WriteRequest, caller: Caller) -> asyncio.Future[WriteReply]:
        self.callers.append(caller)
        reply: asyncio.Future[WriteReply] = asyncio.get_running_loop().create_future()
        self.writes.put_nowait((request, reply))
        return reply

    def write_all(
        self, requests: Sequence[WriteRequest], caller: Caller
    ) -> list[asyncio.Future[WriteReply]]:
        return [self.write(request, caller) for request in requests]

    async def read(
        self,
        request: ReadRequest,
        caller: Caller,
        *,
        min_offset: int,
        current: bool,
        timeout_ms: int,
        even_if_behind: bool,
    ) -> ReadReply:
        assert not even_if_behind
        assert timeout_ms >= 0
        self.callers.append(caller)
        self.reads.append((request, min_offset, current))
        reply = self.read_replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def asked(self) -> tuple[WriteRequest, asyncio.Future[WriteReply]]:
        return await asyncio.wait_for(self.writes.get(), WAIT_S)


@dataclass(slots=True)
class Served:
    """A listening server and what answers for it."""

    raft: RaftByHand
    controller: ControllerByHand
    server: GrpcListener
    port: int

    @property
    def address(self) -> tuple[str, int]:
        return HOST, self.port


async def serve(
    port: int = 0,
    *,
    host: str = HOST,
    who: m.ApiVersionsResponse = WHO,
    tls: TlsFiles | None = None,
    caller_policy: CallerPolicy = ALLOW_ALL,
    has_reflection: bool = False,
) -> Served:
    """Listen, as node 1 unless `who` says otherwise."""
    raft, controller = RaftByHand(), ControllerByHand()
    server = GrpcListener.serving(
        (RaftServicer(raft, who, software_version="9"), ControllerServicer(controller)),
        caller_policy,
        has_reflection=has_reflection,
        transport=chosen(),
    )
    bound = server.bind(host, port, tls=tls)
    await server.start()
    return Served(raft, controller, server, bound)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """A server for one test."""
    one = await serve()
    yield one
    await one.server.stop()


@pytest.fixture
async def another() -> AsyncIterator[Served]:
    """A second server in the same test."""
    one = await serve()
    yield one
    await one.server.stop()


@pytest.fixture
async def channel(served: Served) -> AsyncIterator[grpc.aio.Channel]:
    """A plain channel to the server."""
    async with grpc.aio.insecure_channel(f"{HOST}:{served.port}") as opened:
        yield opened
