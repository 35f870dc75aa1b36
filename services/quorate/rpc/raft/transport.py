"""Sends the core's requests to peers: one Fetch stream per peer, unary calls for the rest.

Nothing is retried here: a failed call is reported as failed, and the core decides. A peer that may
be at one of several addresses has a channel for each, and keeps those with pending calls. New
certificates also need a new channel: the next call that is not behind another one opens it, and the
old channel ends when its calls have.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextvars import copy_context
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from quorate.h2.name_resolver import NameLookupError
from quorate.raft import messages as m
from quorate.raft.api import Peer, ProbeLeader, RequestFailure, SendRequest
from quorate.raft.identity.peer_identity import addressed
from quorate.records.escaping import shown
from quorate.records.ids import ReplicaKey
from quorate.rpc.callback_adapter import forward_responses
from quorate.rpc.channels import connect_ms, fetch_spans
from quorate.rpc.convert import raft as convert
from quorate.rpc.raft.peer_link import PeerLink, is_refused
from quorate.rpc.raft.peer_outcomes import PeerOutcomes
from quorate.rpc.raft.peer_verification import PeerCheck
from quorate.rpc.raft.unary_calls import RAFT_CALLS
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextvars import Context

    from quorate.h2.callback_stream import StreamWriter
    from quorate.raft.identity.peer_identity import ReplicaIdentity
    from quorate.records.ids import CallId
    from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
    from quorate.rpc.security.tls_files import TlsFiles

log = logging.getLogger(__name__)


class RaftTransport:
    """Performs SendRequest and ProbeLeader; responses arrive by the two callbacks.

    The span that is current when a request is sent is the parent of its call's (rpc/call_spans.py).
    The effects of a response have other causes, so the callbacks run in the context of this client.
    """

    def __init__(
        self,
        *,
        own: ReplicaIdentity,
        on_response: Callable[[CallId, m.PeerResponse | RequestFailure], None],
        on_probe: Callable[[CallId, bool], None],
        parse_batches: Callable[[bytes], m.FetchedBatches],
        request_timeout_ms: int,
        tls: TlsFiles | None = None,
        transport: Transport = DEFAULT_TRANSPORT,
    ) -> None:
        """Use plaintext without `tls`."""
        self.outcomes = PeerOutcomes(tls)
        self._check = PeerCheck(
            own,
            self.outcomes,
            ask=self._identity,
            leave=self._leave,
            start=self._start,
            limit_s=request_timeout_ms / 1000,
            random=secrets.SystemRandom(),
        )
        self._transport = transport
        self._on_response = on_response
        self._on_probe = on_probe
        self._parse_batches = parse_batches
        self._timeout_s = request_timeout_ms / 1000
        self._tls = tls
        self._connect_ms = connect_ms(request_timeout_ms)
        self._links: dict[Peer, PeerLink] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._own = copy_context()
        self._fetch_spans = fetch_spans()

    def send(self, effect: SendRequest) -> None:
        """Start the call; its response comes later, once, unless this client is closed."""
        link = self._link(effect.to)
        if isinstance(effect.request, m.FetchRequest):
            if effect.request.max_wait_ms and link.stream is None:
                # Leader discovery leaves other links alone. A follower fetches from one address
                # only.
                self._let_go(link, with_fetches=True)
            if link.stream_writer is not None and not link.writes:
                self._fetches(link, effect.call, effect.request)
                link.stream_writer.reply(convert.pb_fetch_request(effect.request))
                return
            # Queued behind earlier requests.
            link.writes += 1
            self._start(self._fetch(link, effect.call, effect.request))
        else:
            # Counted before the task starts: otherwise the next call could close its link.
            link.begin_call()
            self._start(self._unary(link, effect.call, effect.request), copy_context())

    def probe(self, effect: ProbeLeader) -> None:
        """Try a TCP connect: a refusal means that no process listens there.

        See rule `early_suspicion`.
        """
        self._start(self._probe(effect))

    async def close(self) -> None:
        """End all calls and close all channels."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in self._links.values():
            await link.channel.close()
        self._links.clear()

    def _start(self, work: Coroutine[None, None, None], context: Context | None = None) -> None:
        context = self._own.copy() if context is None else context
        task = asyncio.get_running_loop().create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _link(self, peer: Peer) -> PeerLink:
        link = self._links.get(peer)
        if link is not None and (link.is_stale or link.channel.has_moved):
            del self._links[peer]
            self._start(link.channel.close())
            link = None
        # A call is late after half of its time.
        elif link is not None and link.is_to_end(self._connect_ms / 1000, self._generation()):
            del self._links[peer]
            self._start(link.drain(self._timeout_s))
            link = None
        if link is None:
            link = self._links[peer] = PeerLink(peer, self._tls, self._connect_ms, self._transport)
            self._let_go(link)
        return link

    def _let_go(self, kept: PeerLink, *, with_fetches: bool = False) -> None:
        """Close the other links of a voter that is tried at several addresses, if no call waits."""
        others = [link for at, link in self._links.items() if at.node_id == kept.peer.node_id]
        for link in others:
            if link is not kept and not link.calls and (with_fetches or not link.waiting):
                del self._links[link.peer]
                self._start(link.channel.close())

    def _generation(self) -> int:
        return 0 if self._tls is None else self._tls.current().generation

    # --- unary ------------------------------------------------------------------------------------

    async def _unary(self, link: PeerLink, call: CallId, request: m.PeerRequest) -> None:
        answer: m.PeerResponse | RequestFailure
        answers = link.answers
        try:
            answer = await self._call(link, request)
            link.hear()
            if not await self._check.accepts(link, request, answer):
                answer = RequestFailure.DISCONNECTED
        except grpc.aio.AioRpcError as error:
            answer = _failure(error)
            # A connection to a machine that is gone, or whose name means another machine by now,
            # looks alive until the kernel gives it up.
            link.is_stale = answer is RequestFailure.TIMED_OUT and answers == link.answers
            self._failed(link, error, addressed(link.peer, request))
        except NameLookupError as error:
            self.outcomes.unresolved(link.peer, error)
            answer = RequestFailure.DISCONNECTED
        except ValueError as error:
            answer = self._unreadable(link, error)
        except grpc.aio.UsageError:
            # The channel was closed before the call began.
            answer = RequestFailure.DISCONNECTED
        except asyncio.CancelledError:
            # A call ends in the same way if its channel is closed.
            if _is_cancelled():
                raise
            answer = RequestFailure.DISCONNECTED
        finally:
            link.calls -= 1
        self._own.run(self._on_response, call, answer)

    async def _call(self, link: PeerLink, request: m.PeerRequest) -> m.PeerResponse:
        stub, timeout = await link.channel.stub(), self._timeout_s
        if isinstance(request, m.FetchRequest):
            fetched = await stub.FetchOnce(convert.pb_fetch_request(request), timeout=timeout)
            return convert.fetch_response(fetched, self._parse_batches)
        call = RAFT_CALLS[type(request)]
        answer = await getattr(stub, call.method)(call.write(request), timeout=timeout)
        response: m.PeerResponse = call.read_answer(answer)
        return response

    # --- the Fetch stream -------------------------------------------------------------------------

    async def _fetch(self, link: PeerLink, call: CallId, request: m.FetchRequest) -> None:
        """Write on the stream of this peer; its reader delivers the responses in order."""
        try:
            await self._write(link, call, request)
        finally:
            link.writes -= 1

    async def _write(self, link: PeerLink, call: CallId, request: m.FetchRequest) -> None:
        async with link.write_lock:
            stream = link.stream
            try:
                if stream is None:
                    stream = link.stream = (await link.channel.stub()).Fetch()
                    self._start(self._read(link, stream))
            except NameLookupError as error:
                self.outcomes.unresolved(link.peer, error)
                self._on_response(call, RequestFailure.DISCONNECTED)
                return
            except grpc.aio.UsageError:
                # The channel was closed before the call began.
                self._on_response(call, RequestFailure.DISCONNECTED)
                return
            self._fetches(link, call, request)
            link.writer = asyncio.current_task()
            try:
                await stream.write(convert.pb_fetch_request(request))
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                # The reader sees the same end of the stream and reports every pending call.
                log.debug("Fetch stream to node %s is closed", link.peer.node_id)
            finally:
                link.writer = None

    def _fetches(self, link: PeerLink, call: CallId, request: m.FetchRequest) -> None:
        """Note the request as the last one that the stream has to answer."""
        link.waiting.append(call)
        if self._fetch_spans is not None:
            self._fetch_spans.begin(call, link.peer, request)
        self._watch(link, request)

    def _watch(self, link: PeerLink, request: m.FetchRequest) -> None:
        """Start the timer that ends a stream without responses."""
        loop = asyncio.get_running_loop()
        link.patience_s = request.max_wait_ms / 1000 + self._timeout_s
        if len(link.waiting) == 1:
            link.heard_s = loop.time()
        if link.overdue is None:
            link.overdue = loop.call_later(link.patience_s, self._look, link)

    def _look(self, link: PeerLink) -> None:
        """End a stream that is silent for too long; the next Fetch opens a fresh one."""
        link.overdue = None
        if link.stream is None or not link.waiting:
            return
        loop = asyncio.get_running_loop()
        due_s = link.heard_s + link.patience_s
        if due_s > loop.time():
            link.overdue = loop.call_at(due_s, self._look, link)
            return
        log.debug("Fetch stream to node %s is silent", link.peer.node_id)
        self.outcomes.silent(link.peer)
        link.stream.cancel()

    async def _read(
        self, link: PeerLink, stream: grpc.aio.StreamStreamCall[pb.FetchRequest, pb.FetchResponse]
    ) -> None:
        def take(message: pb.FetchResponse) -> None:
            link.hear()
            link.heard_s = link.silent_since_s
            answer = self._parsed(link, message)
            if link.waiting:
                self._fetched(link.waiting.popleft(), answer)

        def begin(door: StreamWriter) -> None:
            link.stream_writer = door

        try:
            await forward_responses(stream, take, begin)
        except grpc.aio.AioRpcError as error:
            words = shown(error.details() or "")
            log.debug("Fetch stream to node %s broke: %s", link.peer.node_id, words)
            self._failed(link, error, ReplicaKey(link.peer.node_id))
        finally:
            # A newer stream can only exist after this one was given up here.
            if link.stream is stream:
                link.stream = link.stream_writer = None
                if link.writer is not None:
                    # In grpcio a write waits forever on a stream that ended before it began.
                    link.writer.cancel()
                calls = list(link.waiting)
                link.waiting.clear()
                for call in calls:
                    self._fetched(call, RequestFailure.DISCONNECTED)

    def _fetched(self, call: CallId, answer: m.FetchResponse | RequestFailure) -> None:
        if self._fetch_spans is not None:
            self._fetch_spans.end(call, answer)
        # A response arrives in the context of its connection.
        self._own.run(self._on_response, call, answer)

    def _parsed(
        self, link: PeerLink, message: pb.FetchResponse
    ) -> m.FetchResponse | RequestFailure:
        try:
            answer = convert.fetch_response(message, self._parse_batches)
        except ValueError as error:
            return self._unreadable(link, error)
        self._check.fetched(link, answer)
        return answer

    def _unreadable(self, link: PeerLink, error: ValueError) -> RequestFailure:
        self.outcomes.unreadable(link.peer, error)
        return RequestFailure.UNREADABLE

    # --- failures, and connections to another replica ---------------------------------------------

    def _failed(self, link: PeerLink, error: grpc.aio.AioRpcError, wanted: ReplicaKey) -> None:
        self._check.failed(link, error, wanted)
        if link.channel.may_have_moved:
            self._start(link.channel.look_for_change())

    async def _identity(self, link: PeerLink) -> m.ApiVersionsResponse | None:
        """Return the identity of the replica behind a connection; None if it does not respond."""
        try:
            found = await self._call(link, m.ApiVersionsRequest())
        except (grpc.aio.AioRpcError, grpc.aio.UsageError, NameLookupError, ValueError):
            return None
        except asyncio.CancelledError:
            # A call ends in the same way if its channel is closed.
            if _is_cancelled():
                raise
            return None
        assert isinstance(found, m.ApiVersionsResponse)
        return found

    def _leave(self, link: PeerLink) -> None:
        """Close the connection; the next request resolves the name again."""
        if self._links.get(link.peer) is link:
            del self._links[link.peer]
            self._start(link.channel.close())

    # --- probe ------------------------------------------------------------------------------------

    async def _probe(self, effect: ProbeLeader) -> None:
        self._on_probe(effect.call, await is_refused(effect.to, limit_s=self._timeout_s))


def _is_cancelled() -> bool:
    """True if the task itself is being cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failure(error: grpc.aio.AioRpcError) -> RequestFailure:
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return RequestFailure.TIMED_OUT
    return RequestFailure.DISCONNECTED
