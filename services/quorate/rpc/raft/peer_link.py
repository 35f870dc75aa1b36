"""Connections to one peer: its channel, its Fetch stream, and a plain connect."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import grpc.aio

from quorate.h2.name_resolver import RESOLVER, NameLookupError, is_address
from quorate.rpc.channels import drain, open_channel
from quorate.rpc.gen.raft.v1 import raft_pb2_grpc
from quorate.settings.transport import Transport

if TYPE_CHECKING:
    from quorate.h2.callback_stream import StreamWriter
    from quorate.h2.name_resolver import Addresses
    from quorate.raft.api import Peer
    from quorate.records.ids import CallId
    from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
    from quorate.rpc.security.tls_files import TlsFiles


class PeerChannel:
    """The channel of one peer.

    A channel of grpcio gets addresses instead of a name, because grpcio's resolver does not know
    the last good address when a channel is new. The channel is replaced when the name has other
    addresses.
    """

    def __init__(
        self, peer: Peer, tls: TlsFiles | None, connect_timeout_ms: int, transport: Transport
    ) -> None:
        self._peer, self._tls = peer, tls
        self._connect_ms, self._transport = connect_timeout_ms, transport
        self._stub: raft_pb2_grpc.RaftAsyncStub | None = None
        self._channel: grpc.aio.Channel | None = None
        self._addresses: Addresses = ()
        self._is_closed = self._is_resolving = False
        self.has_moved = False
        if transport is Transport.H2 or is_address(peer.host):
            self._open(())

    async def stub(self) -> raft_pb2_grpc.RaftAsyncStub:
        """Return the stub for calls.

        Raises NameLookupError, and UsageError if the channel is closed.
        """
        if self._stub is None:
            addresses = await self._resolve()
            if self._is_closed:
                raise grpc.aio.UsageError("Channel is closed.")
            # Another call may have opened it while this one resolved the name.
            return self._stub or self._open(addresses)
        return self._stub

    @property
    def may_have_moved(self) -> bool:
        """True if a failure may be because the name has other addresses by now."""
        return bool(self._addresses) and not self._is_resolving and not self._is_closed

    async def look_for_change(self) -> None:
        """Resolve the name again: other addresses need another channel."""
        self._is_resolving = True
        try:
            with suppress(NameLookupError):
                # A name with several addresses may return them in another order each time.
                self.has_moved = set(await self._resolve()) != set(self._addresses)
        finally:
            self._is_resolving = False

    async def _resolve(self) -> Addresses:
        return await RESOLVER.resolve(self._peer.host, limit_s=self._connect_ms / 1000)

    def _open(self, addresses: Addresses) -> raft_pb2_grpc.RaftAsyncStub:
        self._addresses = addresses
        self._channel = open_channel(
            self._peer.host,
            self._peer.port,
            addresses=addresses,
            tls=self._tls,
            connect_timeout_ms=self._connect_ms,
            transport=self._transport,
        )
        self._stub = raft_pb2_grpc.RaftStub(self._channel)
        return self._stub

    async def close(self) -> None:
        """End all calls immediately."""
        self._is_closed = True
        if self._channel is not None:
            await self._channel.close()

    async def drain(self, grace_s: float) -> None:
        """Wait at most `grace_s` for the calls to end, then close."""
        self._is_closed = True
        if self._channel is not None:
            await drain(self._channel, grace_s)


class PeerLink:
    """A peer's channel and its Fetch stream, whose calls are answered in order."""

    def __init__(
        self, peer: Peer, tls: TlsFiles | None, connect_timeout_ms: int, transport: Transport
    ) -> None:
        self.peer = peer
        self.generation = 0 if tls is None else tls.current().generation
        self.channel = PeerChannel(peer, tls, connect_timeout_ms, transport)
        self.stream: grpc.aio.StreamStreamCall[pb.FetchRequest, pb.FetchResponse] | None = None
        self.waiting: deque[CallId] = deque()
        self.patience_s = self.heard_s = 0.0
        self.overdue: asyncio.TimerHandle | None = None
        # The stream writer, if requests can be sent without a task for each.
        self.stream_writer: StreamWriter | None = None
        self.write_lock = asyncio.Lock()
        self.writer: asyncio.Task[None] | None = None
        self.writes = 0
        self.calls = self.answers = 0
        # Start of the silence on the connection while a call waits.
        self.silent_since_s = 0.0
        self.is_stale = False

    def begin_call(self) -> None:
        """Note that a call other than a Fetch on the stream waits."""
        if not self.calls:
            self.silent_since_s = asyncio.get_running_loop().time()
        self.calls += 1

    def hear(self) -> None:
        """Note a response of any kind."""
        self.answers += 1
        self.silent_since_s = asyncio.get_running_loop().time()

    def is_to_end(self, patience_s: float, generation: int) -> bool:
        """True if new calls need a fresh connection, while pending calls stay on this one.

        That is so with new certificates, and if a call waits and the connection has been silent for
        longer than `patience_s`: it may lead to a machine that is gone, or that belongs to another
        node by now.
        """
        if self.calls:
            silent_s = asyncio.get_running_loop().time() - self.silent_since_s
            if silent_s > patience_s:
                return True
        return not self.waiting and self.generation != generation

    async def drain(self, grace_s: float) -> None:
        """Wait for the calls in flight, then close."""
        if self.stream is not None:
            with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await self.stream.done_writing()
        await self.channel.drain(grace_s)


async def is_refused(peer: Peer, *, limit_s: float) -> bool:
    """True if the peer's host refuses a TCP connect: no process listens there.

    See rule `early_suspicion`.
    """
    try:
        _, writer = await RESOLVER.connect(
            peer.host,
            lambda address: asyncio.open_connection(address, peer.port),
            limit_s=limit_s,
        )
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    writer.close()
    return False
