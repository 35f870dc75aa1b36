"""Client and server spans of calls, by OpenTelemetry's gRPC conventions; loaded if tracing is on.

Only their names differ: Jaeger truncates a row after some 20 characters, and the name of the method
with its service would leave no space for request and outcome.

A call whose caller is traced always has a span. Of calls without a parent trace, votes, the end of
an epoch, and all voter changes are recorded; Fetch and Write at the configured ratios; queries
never, nor BeginQuorumEpoch, which a leader repeats while a voter is unavailable. Streams have no
spans here: a span is visible only when it ends. A server's span starts after authorization
(rpc/security/authorization.py), so unauthorized calls create none.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import grpc
import grpc.aio
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context

from quorate.raft.api import RequestFailure
from quorate.records.errors import ErrorCode
from quorate.rpc.gen.raft.v1 import raft_pb2
from quorate.rpc.method_table import METHODS, UNKNOWN, Sampling
from quorate.rpc.peer_address import address_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from opentelemetry.trace import Span

    from quorate.api.handlers import PendingAnswer
    from quorate.raft import messages as m
    from quorate.raft.api import Peer
    from quorate.records.ids import CallId
    from quorate.telemetry.tracer import Tracing, Value

T = TypeVar("T")
ServerContext: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

WRITE_STREAM: Final = "quorate.controller.v1.Controller/WriteStream"
FETCH: Final = "quorate.raft.v1.Raft/Fetch"
# The codes that the conventions count as the server's errors; the caller is responsible for others.
_SERVER_ERRORS: Final = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
# Elections continue without an unreachable voter, and most are held because one is unavailable.
# These calls find that out, and their spans have an event for it instead of an error.
_MAY_BE_AWAY: Final = frozenset(
    f"quorate.raft.v1.Raft/{method}" for method in ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch")
)
_AWAY: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
UNREACHABLE: Final = "peer.unreachable"
_OF_NUMBERS: Final[dict[int, grpc.StatusCode]] = {code.value[0]: code for code in grpc.StatusCode}


def ratio_of(name: str, tracing: Tracing) -> float:
    """Return the share of a method's calls without a parent trace that is recorded."""
    match METHODS.get(f"/{name}", UNKNOWN).sampling:
        case Sampling.ALWAYS:
            return 1.0
        case Sampling.AS_FETCHES:
            return tracing.fetch_ratio
        case Sampling.AS_WRITES:
            return tracing.write_ratio
        case Sampling.NEVER:
            return 0.0


def is_sampled(ratio: float) -> bool:
    """True if this call is recorded, at random."""
    return ratio > 0 and random.random() < ratio  # noqa: S311 - it guards nothing


def begin(
    tracing: Tracing,
    name: str,
    kind: SpanKind,
    parent: Context | None,
    server: tuple[str, int] | None = None,
) -> Span:
    """Start the span of a call; `name` is the whole method, without the first slash."""
    attributes: dict[str, Value] = {"rpc.system.name": "grpc", "rpc.method": name}
    if server is not None:
        attributes["server.address"], attributes["server.port"] = server
    span = tracing.start(name, attributes, parent=parent, kind=kind)
    span.update_name(_short(name))
    return span


def finish(
    span: Span,
    code: grpc.StatusCode,
    words: str = "",
    *,
    is_error: bool,
    name: str = "",
) -> None:
    """End the span of a call; `name` includes the outcome."""
    span.set_attribute("rpc.response.status_code", code.name)
    if name:
        span.update_name(name)
    if is_error:
        span.set_attribute("error.type", code.name)
        span.set_status(StatusCode.ERROR, words)
    span.end()


class ClientSpans(grpc.aio.UnaryUnaryClientInterceptor):
    """Spans of the calls on one channel, and the headers that carry them to the server."""

    def __init__(self, tracing: Tracing, host: str, port: int) -> None:
        self._tracing = tracing
        self._server = (host, port)

    async def intercept_unary_unary(
        self,
        continuation: Callable[[grpc.aio.ClientCallDetails, Any], Awaitable[Any]],
        client_call_details: grpc.aio.ClientCallDetails,
        request: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        method: str | bytes = client_call_details.method
        name = (method.decode() if isinstance(method, bytes) else method)[1:]
        tracing = self._tracing
        if tracing.current() is None and not is_sampled(ratio_of(name, tracing)):
            return await continuation(client_call_details, request)
        asked = name_of_request(name, request, SpanKind.CLIENT)
        span = begin(tracing, name, SpanKind.CLIENT, None, self._server)
        if span.is_recording():
            span.set_attributes(request_attributes(request))
        headers = tracing.inject(set_span_in_context(span))
        details = grpc.aio.ClientCallDetails(
            method=client_call_details.method,
            timeout=client_call_details.timeout,
            metadata=_with_headers(client_call_details.metadata, headers),
            credentials=client_call_details.credentials,
            wait_for_ready=client_call_details.wait_for_ready,
        )
        call = None
        try:
            call = await continuation(details, request)
            response = await call
            told = response_attributes(request, response)
            span.set_attributes(told)
        except grpc.aio.AioRpcError as error:
            # The caller gets the error from the call.
            words, is_away = error.details() or "", error.code() in _AWAY and name in _MAY_BE_AWAY
            if is_away:
                span.add_event(UNREACHABLE, {"reason": words})
            came = "unreachable" if is_away else error.code().name
            finish(span, error.code(), words, is_error=not is_away, name=f"{asked}: {came}")
            assert call is not None
            return call
        except asyncio.CancelledError:
            # Another response was enough, or the time was up: not an error, despite the code.
            finish(span, grpc.StatusCode.CANCELLED, is_error=False, name=asked)
            if call is not None:
                call.cancel()
            raise
        except BaseException as error:
            finish(span, grpc.StatusCode.UNKNOWN, str(error), is_error=True)
            raise
        finish(span, grpc.StatusCode.OK, is_error=False, name=asked + outcome_of(told))
        return call


def _with_headers(metadata: Any, headers: dict[str, str]) -> grpc.aio.Metadata:  # noqa: ANN401
    pairs: Iterable[tuple[str, str | bytes]] = metadata or ()
    return grpc.aio.Metadata(*pairs, *headers.items())


class FetchSpans:
    """Spans of requests on Fetch streams: each from its write until its response.

    A stream sends headers only when it begins, so the leader's part of a request has no span.
    """

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._open: dict[CallId, Span] = {}

    def begin(self, call: CallId, peer: Peer, request: m.FetchRequest) -> None:
        """Start a span, if sampled, for a request that is written."""
        if not is_sampled(self._tracing.fetch_ratio):
            return
        server = (peer.host, peer.port)
        span = begin(self._tracing, FETCH, SpanKind.CLIENT, Context(), server)
        self._open[call] = span
        span.set_attributes(
            {
                "kraft.epoch": request.current_leader_epoch,
                "kraft.fetch.offset": request.fetch_offset,
                "kraft.fetch.max_wait_ms": request.max_wait_ms,
            }
        )

    def end(self, call: CallId, answer: m.FetchResponse | RequestFailure) -> None:
        """End the span at the response, or at its failure."""
        span = self._open.pop(call, None)
        if span is None:
            return
        if isinstance(answer, RequestFailure):
            finish(span, grpc.StatusCode.UNAVAILABLE, answer.name, is_error=True)
            return
        if answer.error is not ErrorCode.NONE:
            span.set_attribute("kraft.error", answer.error.name)
        finish(span, grpc.StatusCode.OK, is_error=False)


class StreamedWriteSpans:
    """Spans of requests on WriteStream: each from its start until its reply.

    Each sampled request is a trace of its own: the stream's headers belong to its beginning.
    """

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    def around(self, begin_write: Callable[[], PendingAnswer[T]]) -> PendingAnswer[T]:
        """Begin a write, within a span if sampled. Raises what `begin_write` raises."""
        tracing = self._tracing
        if not is_sampled(tracing.write_ratio):
            return begin_write()
        span = begin(tracing, WRITE_STREAM, SpanKind.SERVER, Context())
        try:
            with tracing.within(set_span_in_context(span)):
                reply = begin_write()
        except ValueError as error:
            finish(span, grpc.StatusCode.INVALID_ARGUMENT, str(error), is_error=False)
            raise
        reply.add_done_callback(lambda _: self._replied(span, reply))
        return reply

    def _replied(self, span: Span, reply: PendingAnswer[T]) -> None:
        if reply.cancelled():
            finish(span, grpc.StatusCode.CANCELLED, is_error=False)
            return
        if reply.exception() is not None:
            # A write that fails is a result with an error, not a failed call.
            span.set_attribute("kraft.error", str(reply.exception()))
        finish(span, grpc.StatusCode.OK, is_error=False)


class ServerSpans(grpc.aio.ServerInterceptor):
    """Spans of served calls; the handler runs with its span as the current one."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the handler of this method; a unary one runs within a span."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.request_streaming or handler.response_streaming:
            return handler
        inner: Any = handler.unary_unary
        return grpc.unary_unary_rpc_method_handler(
            self._traced(handler_call_details.method[1:], inner),
            handler.request_deserializer,
            handler.response_serializer,
        )

    def _traced(
        self, name: str, inner: Callable[[Any, ServerContext], Awaitable[Any]]
    ) -> Callable[[Any, ServerContext], Awaitable[Any]]:
        tracing = self._tracing

        async def traced(request: Any, context: ServerContext) -> Any:  # noqa: ANN401
            parent = tracing.extract(_headers(context))
            if parent is None and not is_sampled(ratio_of(name, tracing)):
                return await inner(request, context)
            parent = Context() if parent is None else parent
            asked = name_of_request(name, request, SpanKind.SERVER)
            span = begin(tracing, name, SpanKind.SERVER, parent)
            span.set_attributes(_peer(context) | request_attributes(request))
            try:
                with tracing.within(set_span_in_context(span, parent)):
                    response = await inner(request, context)
                told = response_attributes(request, response)
                span.set_attributes(told)
            except asyncio.CancelledError:
                finish(span, grpc.StatusCode.CANCELLED, is_error=False, name=asked)
                raise
            except grpc.aio.AbortError:
                code, words = _code(context), context.details()
                is_error, called = code in _SERVER_ERRORS, f"{asked}: {code.name}"
                finish(span, code, words, is_error=is_error, name=called)
                raise
            except BaseException as error:
                finish(span, grpc.StatusCode.UNKNOWN, repr(error), is_error=True)
                raise
            finish(span, grpc.StatusCode.OK, is_error=False, name=served(asked, request, told))
            return response

        return traced


def _headers(context: ServerContext) -> dict[str, str]:
    pairs = context.invocation_metadata() or ()
    return {key: value for key, value in pairs if isinstance(value, str)}


def _peer(context: ServerContext) -> dict[str, Value]:
    address = address_of(context.peer())
    if address is None:
        return {}
    return {"network.peer.address": address[0], "network.peer.port": address[1]}


def _code(context: ServerContext) -> grpc.StatusCode:
    """Return the code with which a handler has ended its call."""
    code: grpc.StatusCode | int = context.code()
    if isinstance(code, grpc.StatusCode):
        return code
    return _OF_NUMBERS.get(code, grpc.StatusCode.UNKNOWN)


# --- attributes of messages -----------------------------------------------------------------------


def name_of_request(method: str, request: Any, kind: SpanKind) -> str:  # noqa: ANN401
    """Name the request and its target node, short enough for a row in Jaeger.

    The caller knows the node. A server names none before it has accepted the request: the number of
    names must stay small, and any client may call.
    """
    match request:
        case raft_pb2.VoteRequest() if kind is SpanKind.CLIENT:
            return f"{'pre-vote' if request.pre_vote else 'vote'} {request.voter_id}"
        case raft_pb2.BeginQuorumEpochRequest() if kind is SpanKind.CLIENT:
            return f"announce {request.voter_id}"
        case _:
            return _write_of(request) or _short(method)


def _write_of(request: Any) -> str:  # noqa: ANN401
    """Return the kind of a request in an envelope, as `CreateTopics`; empty for any other."""
    if "request" not in request.DESCRIPTOR.oneofs_by_name:
        return ""
    return (request.WhichOneof("request") or "").title().replace("_", "")


def _short(method: str) -> str:
    """Return a method without its service, which `rpc.method` contains."""
    return method.rpartition("/")[2]


def served(asked: str, request: Any, told: Mapping[str, Value]) -> str:  # noqa: ANN401
    """Name an answered call at its server; a voter's name includes the vote: `votes for 1`."""
    match request:
        case raft_pb2.VoteRequest() if told["kraft.vote.granted"]:
            would = "would vote" if request.pre_vote else "votes"
            return f"{would} for {request.replica_id}"
        case raft_pb2.VoteRequest():
            return f"refuses{outcome_of(told)}"
        case raft_pb2.BeginQuorumEpochRequest() if not told:
            return f"follows {request.leader_id}"
    return asked + outcome_of(told)


def outcome_of(told: Mapping[str, Value]) -> str:
    """Return the outcome as a suffix of the name; empty for an ordinary response."""
    match told:
        case {"kraft.vote.granted": True}:
            return ": granted"
        case {"kraft.vote.reject_reason": str(word)} | {"kraft.error": str(word)}:
            # An unknown number is in the attribute only: there could be any number of names.
            return ": unknown" if word.lstrip("-").isdigit() else f": {word}"
        case {"kraft.vote.granted": False}:
            return ": refused"
        case _:
            return ""


def request_attributes(request: Any) -> dict[str, Value]:  # noqa: ANN401 - of any service
    """Return the span attributes of a request."""
    match request:
        case raft_pb2.VoteRequest():
            return {
                "kraft.vote.pre_vote": request.pre_vote,
                "kraft.vote.candidate_id": request.replica_id,
                "kraft.vote.voter_id": request.voter_id,
                # The epoch that is sought: a prospective candidate is still in the one before it.
                "kraft.epoch": request.replica_epoch + request.pre_vote,
                "kraft.log.end_offset": request.last_offset,
                "kraft.log.last_epoch": request.last_offset_epoch,
            }
        case raft_pb2.BeginQuorumEpochRequest():
            return {
                "kraft.epoch": request.leader_epoch,
                "kraft.leader.id": request.leader_id,
                "kraft.voter.id": request.voter_id,
            }
        case raft_pb2.EndQuorumEpochRequest():
            return {"kraft.epoch": request.leader_epoch, "kraft.leader.id": request.leader_id}
        case _:
            return {}


def response_attributes(request: Any, response: Any) -> dict[str, Value]:  # noqa: ANN401
    """Return the span attributes of a response; its error is not an error of the call."""
    told: dict[str, Value] = {}
    error = _error_in(response)
    if error:
        told["kraft.error"] = _name(error)
    reason = getattr(response, "reason", "")
    if reason:
        told["kraft.refusal"] = reason
    if isinstance(request, raft_pb2.VoteRequest):
        told["kraft.vote.granted"] = response.vote_granted
        if response.refusal:
            told["kraft.vote.reject_reason"] = _refusal_name(response.refusal)
    return told


def _error_in(response: Any) -> int:  # noqa: ANN401
    """Return the error code of a response, or the first of those of several writes; 0 for none."""
    for part in (response, *getattr(response, "results", ())):
        # Raft responses have `error_code` as Kafka's do, results of a write have `error`.
        code = getattr(part, "error_code", getattr(part, "error", ErrorCode.NONE))
        if isinstance(code, int) and code:
            return code
    return ErrorCode.NONE


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _refusal_name(number: raft_pb2.VoteRefusal) -> str:
    if number not in raft_pb2.VoteRefusal.values():
        return str(number)
    return raft_pb2.VoteRefusal.Name(number).removeprefix("VOTE_REFUSAL_").lower()
