"""Servicer of quorate.raft.v1.Raft; requests go to a handler, responses come back by futures.

Stream rules (rule `stream_responses`): every request is answered once and in order; a second
request on a stream makes the core answer the first immediately; a second stream of the same replica
ends the first.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import grpc
import grpc.aio

from quorate.api.advertised_endpoints import endpoints_for_listener
from quorate.h2.fair_queue import CURRENT_FLOW
from quorate.raft import messages as m
from quorate.rpc.callback_adapter import iter_replies
from quorate.rpc.convert import raft as convert
from quorate.rpc.convert.describe import pb_api_versions_response
from quorate.rpc.error_status import abort
from quorate.rpc.limits.admission import AdmissionControl, AdmissionError, ByteBudget
from quorate.rpc.limits.call_limits import ARRIVALS_MAX
from quorate.rpc.limits.inbound_limiter import EmptyCallError, InboundLimiter
from quorate.rpc.limits.shared_connections import VoterAddresses
from quorate.rpc.method_table import RAFT, RAFT_METHODS
from quorate.rpc.raft.fetch_stream import CONTROLLER_UNAVAILABLE, FetchStream
from quorate.rpc.raft.unary_calls import CALLS_BY_METHOD

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from google.protobuf.descriptor import MethodDescriptor

    from quorate.api.handlers import PendingAnswer, RaftHandler
    from quorate.records.ids import ReplicaKey, ReplyToken
    from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
    from quorate.rpc.raft.unary_calls import RaftCall
    from quorate.rpc.service import Behaviour

T = TypeVar("T")
Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
# Streams and single calls of observers; one client may use half of them.
FETCHES_MAX: Final = 1200
# A voter has one stream; its previous ones may take a while to end.
FETCHES_OF_VOTERS_MAX: Final = 256


class FetchStreams:
    """The replicas that fetch, on any listener, and the limits on them."""

    def __init__(
        self,
        is_voter: Callable[[ReplicaKey], bool] = lambda _: False,
        addresses: VoterAddresses | None = None,
    ) -> None:
        """Voters have limits of their own; `addresses` collects the addresses they call from."""
        self._is_voter = is_voter
        self._addresses = addresses or VoterAddresses()
        # The size limit of a Fetch response bounds the bytes.
        self._places = AdmissionControl("fetches", calls_max=FETCHES_MAX, byte_budget=ByteBudget(0))
        self._of_voters = AdmissionControl(
            "fetches of voters", calls_max=FETCHES_OF_VOTERS_MAX, byte_budget=ByteBudget(0)
        )
        self.inbound_limiter = InboundLimiter(at_once=ARRIVALS_MAX, patience_s=0)
        self._streams: dict[ReplicaKey, FetchStream] = {}

    def admission(self, replica: ReplicaKey | None) -> AdmissionControl:
        """Return the admission of this replica's fetches."""
        is_voter = replica is not None and self._is_voter(replica)
        return self._of_voters if is_voter else self._places

    def prefer(self, replica: ReplicaKey | None, peer: str) -> None:
        """Serve the connection of a voter's call before those of all clients.

        Some connections are reserved for its address.
        """
        if replica is None or not self._is_voter(replica):
            return
        self._addresses.note(peer)
        flow = CURRENT_FLOW.get()
        if flow is not None:
            flow.is_preferred = True

    def fetches(self, replica: ReplicaKey, stream: FetchStream) -> None:
        """Register the stream of a replica; its previous stream is ended."""
        before = self._streams.get(replica)
        self._streams[replica] = stream
        if before is not None and before is not stream:
            before.supersede()

    def ended(self, stream: FetchStream) -> None:
        """Remove a stream that has ended."""
        self._streams = {key: one for key, one in self._streams.items() if one is not stream}


class RaftServicer:
    """quorate.raft.v1.Raft on top of a handler."""

    descriptor = RAFT
    methods = RAFT_METHODS

    def handler_for(self, method: MethodDescriptor) -> Behaviour:
        own: Behaviour | None = getattr(self, method.name, None)
        return own or partial(self._serve, CALLS_BY_METHOD[method.name])

    def __init__(
        self,
        handler: RaftHandler,
        who: m.ApiVersionsResponse,
        *,
        software_version: str,
        listener: str = "",
        fetch_streams: FetchStreams | None = None,
    ) -> None:
        """`who` is the response to ApiVersions.

        `fetchers` is shared by all listeners. Callers of this one prefer endpoints of the listener
        called `listener`; "" if it is the only one.
        """
        self._handler = handler
        self._listener = listener
        self._fetch_streams = fetch_streams or FetchStreams()
        self._api_versions = pb_api_versions_response(who, software_version=software_version)

    async def _answer(self, request: m.Request, context: Context) -> m.Response:
        token, answer = self._handler.submit(request)
        try:
            return endpoints_for_listener(self._listener, await answer)
        except asyncio.CancelledError:
            await _tell_given_up(answer, context)
            raise
        finally:
            if not answer.done() or answer.cancelled():
                self._handler.caller_disconnected(token)

    # --- unary ------------------------------------------------------------------------------------

    async def _serve(self, call: RaftCall, message: Any, context: Context) -> Any:  # noqa: ANN401
        request = await _parsed(call.read, message, context)
        if isinstance(request, m.VoteRequest | m.FetchSnapshotRequest):
            self._fetch_streams.prefer(request.replica, context.peer())
        return call.write_answer(await self._answer(request, context))

    async def FetchOnce(self, request: pb.FetchRequest, context: Context) -> pb.FetchResponse:
        fetch = await _parsed(convert.fetch_request, request, context)
        try:
            self._fetch_streams.admission(fetch.replica).acquire_for_call(context)
            self._fetch_streams.prefer(fetch.replica, context.peer())
        except AdmissionError as error:
            await abort(context, error.refusal)
        answer = await self._answer(fetch, context)
        assert isinstance(answer, m.FetchResponse)
        return convert.pb_fetch_response(answer)

    async def ApiVersions(
        self, request: pb.ApiVersionsRequest, context: Context
    ) -> pb.ApiVersionsResponse:
        return self._api_versions

    # --- the Fetch stream -------------------------------------------------------------------------

    async def Fetch(
        self, request_iterator: AsyncIterator[pb.FetchRequest], context: Context
    ) -> AsyncIterator[pb.FetchResponse]:
        try:
            first = convert.fetch_request(
                await self._fetch_streams.inbound_limiter.receive(request_iterator, context.peer())
            )
            self._fetch_streams.admission(first.replica).acquire_for_call(context)
            self._fetch_streams.prefer(first.replica, context.peer())
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except AdmissionError as error:
            await abort(context, error.refusal)
        except EmptyCallError:
            return
        stream = FetchStream(self._submit, self._handler.caller_disconnected)
        try:
            stream.submit(first)
            async with aclosing(iter_replies(stream, request_iterator)) as replies:
                async for response in replies:
                    yield response
            if stream.stream_rejection is not None:
                await context.abort(stream.stream_rejection.code, stream.stream_rejection.details)
        finally:
            stream.close()
            self._fetch_streams.ended(stream)

    def _submit(
        self, request: m.FetchRequest, stream: FetchStream
    ) -> tuple[ReplyToken, PendingAnswer[m.Response]]:
        if request.replica is not None:
            self._fetch_streams.fetches(request.replica, stream)
        return self._handler.submit(request)


async def _tell_given_up(answer: PendingAnswer[m.Response], context: Context) -> None:
    """End the call with a status if the response was cancelled, not the call.

    gRPC sends no status for a handler that ends cancelled, and its caller would wait forever.
    """
    task = asyncio.current_task()
    if answer.cancelled() and (task is None or not task.cancelling()):
        await context.abort(CONTROLLER_UNAVAILABLE.code, CONTROLLER_UNAVAILABLE.details)


P = TypeVar("P")


async def _parsed(parse: Callable[[P], T], message: P, context: Context) -> T:
    try:
        return parse(message)
    except ValueError as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        raise
