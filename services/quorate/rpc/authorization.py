"""Who calls, and whether they may: a server interceptor in front of all services of a port.

A unary call is judged by its method, where that does not say enough by its request. A stream is
judged when it begins; what a request on it needs beyond that is judged once for each kind. No
message of any size is decoded for somebody who may not call the method at all.

A caller is who its certificate names. An identity that the settings list as a forwarder may call
for somebody else, named in a header, and is then judged as that one. From anybody else the header
is refused: ignoring it would do with the caller's own rights what somebody else had asked for.
"""

from __future__ import annotations

import logging
import time
from contextlib import aclosing
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Never, TypeAlias, cast
from urllib.parse import quote, unquote

import grpc
import grpc.aio

from quorate.api.rights import FORWARDING_NOT_ALLOWED, NOT_AUTHORIZED, Need
from quorate.controller.authorizer import ANONYMOUS, TOPICS, Operation
from quorate.rpc.admission import AdmissionError
from quorate.rpc.arrivals import NothingSentError
from quorate.rpc.by_callback import taken_while
from quorate.rpc.decoding import SMALL_BYTES_MAX, decoder
from quorate.rpc.places import Places, is_of_peers, takes_own_places
from quorate.rpc.refusals import Refusal, abort

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Mapping,
        Sequence,
    )

    from quorate.api.rights import Access
    from quorate.rpc.admission import Place

log = logging.getLogger(__name__)
Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Decode: TypeAlias = "Callable[[bytes], Any]"
UnaryOfBytes: TypeAlias = "Callable[[AsyncIterator[bytes], Context], Awaitable[Any]]"
Unary: TypeAlias = "Callable[[Any, Context], Awaitable[Any]]"
Answering: TypeAlias = "Callable[[Any, Context], AsyncGenerator[Any]]"
Stream: TypeAlias = "Callable[[AsyncIterator[Any], Context], AsyncGenerator[Any]]"
FORWARDED_PRINCIPAL: Final = "quorate-forwarded-principal"

# Who calls, for the services behind the interceptor; without one everybody is anonymous.
CALLER: ContextVar[str] = ContextVar("caller", default=ANONYMOUS)


_PEER: Final = Need((Operation.CLUSTER_ACTION,))
_ALTER: Final = Need((Operation.ALTER,))
# What only tells something may be refused once it is made; what was done has to be told.
_READS: Final = ("/Read", "/FetchSnapshot", "/DescribeQuorum")
# What peers send by themselves and operators by hand.
_PEER_OR_ALTER: Final = Need((Operation.CLUSTER_ACTION, Operation.ALTER))
_DESCRIBE: Final = Need((Operation.DESCRIBE,))
# A caller that may fetch the log may know who leads: a rescue has a controller's certificate.
_PEER_OR_DESCRIBE: Final = Need((Operation.CLUSTER_ACTION, Operation.DESCRIBE))

_WRITES: Final[Mapping[str, Need]] = {
    "create_topics": Need((Operation.CREATE,)),
    "delete_topics": Need((Operation.DELETE,), TOPICS),
    "incremental_alter_configs": Need((Operation.ALTER_CONFIGS,)),
    "register_broker": _PEER,
    "broker_heartbeat": _PEER,
    "unregister_broker": _ALTER,
}

_RAFT: Final = "/quorate.raft.v1.Raft/"
_CONTROLLER: Final = "/quorate.controller.v1.Controller/"
_ADMIN: Final = "/quorate.admin.v1.Admin/"
_RAW: Final = "/quorate.raw.v1.RawLog/"
NEEDS: Final[Mapping[str, Need]] = {
    _RAFT + "Vote": _PEER,
    _RAFT + "BeginQuorumEpoch": _PEER,
    _RAFT + "EndQuorumEpoch": _PEER,
    _RAFT + "Fetch": _PEER,
    _RAFT + "FetchOnce": _PEER,
    _RAFT + "FetchSnapshot": _PEER,
    _RAFT + "ApiVersions": _PEER_OR_DESCRIBE,
    _RAFT + "DescribeQuorum": _PEER_OR_DESCRIBE,
    _RAFT + "UpdateRaftVoter": _PEER_OR_ALTER,
    _RAFT + "UpdateFeatures": _ALTER,
    _RAFT + "TransferLeadership": _ALTER,
    _RAFT + "TakeLeave": _ALTER,
    _ADMIN + "AddRaftVoter": _ALTER,
    _ADMIN + "RemoveRaftVoter": _ALTER,
    _ADMIN + "UpdateRaftVoter": _ALTER,
    _ADMIN + "UpdateFeatures": _ALTER,
    _ADMIN + "TransferLeadership": _ALTER,
    _ADMIN + "PrepareStop": _ALTER,
    _ADMIN + "DescribeQuorum": _DESCRIBE,
    _RAW + "Append": _PEER,
    _RAW + "AppendOnce": _PEER,
    _RAW + "RunLoad": _PEER,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": _DESCRIBE,
}
# Methods whose need is that of the alternative which is set in the request.
NEEDS_OF_REQUESTS: Final[Mapping[str, Mapping[str, Need]]] = {
    _RAFT + "AddRaftVoter": {"auto_join": _PEER_OR_ALTER, "": _ALTER},
    _RAFT + "RemoveRaftVoter": {"auto_join": _PEER_OR_ALTER, "": _ALTER},
    _CONTROLLER + "Write": _WRITES,
    _CONTROLLER + "WriteStream": _WRITES,
    _CONTROLLER + "Read": {
        "list_topics": Need((Operation.DESCRIBE,), TOPICS),
        "describe_topics": Need((Operation.DESCRIBE,), TOPICS),
        "describe_configs": Need((Operation.DESCRIBE_CONFIGS,)),
        "list_brokers": _DESCRIBE,
    },
}


def _needs_of(method: str) -> tuple[Need, ...]:
    """What any call of this method takes: one of these."""
    of_requests = NEEDS_OF_REQUESTS.get(method)
    if of_requests is None:
        return (NEEDS.get(method, _ALTER),)
    return tuple(of_requests.values())


def kind_of(request: Any) -> str:  # noqa: ANN401 - messages of several services
    """What tells requests of one method apart: the alternative that is set, "" for none."""
    if "auto_join" in request.DESCRIPTOR.fields_by_name:
        return "auto_join" if request.auto_join else ""
    return request.WhichOneof("request") or ""


def forwarding(principal: str) -> tuple[tuple[str, str], ...]:
    """The metadata by which a forwarder calls for `principal`."""
    return ((FORWARDED_PRINCIPAL, quote(principal, safe=" :=,+*@/")),)


class CallerInterceptor(grpc.aio.ServerInterceptor):
    """Decodes requests, sets CALLER for each call, and with `access` refuses what it may not do.

    A method that NEEDS does not have needs Alter on the cluster.
    """

    def __init__(self, access: Access | None, *, has_names: bool = True) -> None:
        """Without `access` callers may do anything; without names they are all anonymous."""
        self._access = access
        self._has_names = has_names or access is not None
        self._guarded: dict[str, Handler] = {}
        self._places = Places()
        # By the monotonic clock, in seconds.
        self.last_call_at = 0.0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """The handler of this method with a guard before it, made once."""
        self.last_call_at = time.monotonic()
        method = handler_call_details.method
        guarded = self._guarded.get(method)
        if guarded is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            guarded = self._guarded[method] = self._guard(method, handler)
        return guarded

    def _guard(self, method: str, handler: Handler) -> Handler:
        decode = decoder(method, cast("Decode", handler.request_deserializer))
        serializer = handler.response_serializer
        if handler.request_streaming and handler.response_streaming:
            stream = cast("Stream", handler.stream_stream)
            # Callers that nothing judges need no guard: each message would pass through it.
            guarded = self._stream(method, stream) if self._has_names else stream
            if not takes_own_places(method):
                guarded = self._counted(method, guarded)
            return grpc.stream_stream_rpc_method_handler(guarded, decode, serializer)
        assert not handler.request_streaming
        # On the wire one request is a stream of one. It is taken as such here, since the call has
        # to have a place before gRPC receives the request.
        if handler.response_streaming:
            answering = self._answering(method, cast("Answering", handler.unary_stream), decode)
            return grpc.stream_stream_rpc_method_handler(answering, None, serializer)
        return grpc.stream_unary_rpc_method_handler(
            self._unary(method, cast("Unary", handler.unary_unary), decode), None, serializer
        )

    def _counted(self, method: str, inner: Stream) -> Stream:
        """A stream that has a place while it lasts."""

        async def counted(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any]:
            await self._enter(method, context)
            async with aclosing(inner(requests, context)) as responses:
                async for response in responses:
                    yield response

        return counted

    def _answering(self, method: str, inner: Answering, decode: Decode) -> Stream:
        """A call of one request and many answers, with a place; nobody is judged for these."""

        async def answering(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any]:
            await self._enter(method, context)
            data = await self._receive(method, requests, context)
            request = await self._decoded(method, decode, data, context)
            async with aclosing(inner(request, context)) as responses:
                async for response in responses:
                    yield response

        return answering

    async def _enter(self, method: str, context: Context) -> Place:
        """A place until the call has ended and its answer has left."""
        try:
            return self._places.of(method).enter_call(context)
        except AdmissionError as error:
            await self._refuse(context, error.refusal)

    async def _receive(
        self, method: str, requests: AsyncIterator[bytes], context: Context
    ) -> bytes:
        try:
            data = await self._places.arrivals_of(method).receive(requests, context.peer())
        except AdmissionError as error:
            await self._refuse(context, error.refusal)
        except NothingSentError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the call has no request")
            raise
        # Left open it would hold the call, which holds it, when that is long over.
        await cast("AsyncGenerator[bytes]", aiter(requests)).aclose()
        return data

    async def _decoded(self, method: str, decode: Decode, data: bytes, context: Context) -> Any:  # noqa: ANN401
        try:
            return decode(data)
        except ValueError as error:
            log.info("refused: %s", error, extra={"repeats": method})
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    async def _hold(self, place: Place, size: int, context: Context) -> None:
        try:
            place.hold(size)
        except AdmissionError as error:
            await self._refuse(context, error.refusal)

    def _unary(self, method: str, inner: Unary, decode: Decode) -> UnaryOfBytes:
        of_requests = NEEDS_OF_REQUESTS.get(method)
        before = _needs_of(method)
        of_peers = is_of_peers(method)

        async def answered(requests: AsyncIterator[bytes], context: Context) -> Any:  # noqa: ANN401
            # What peers send in halves takes no places: the oldest of those makes room.
            place = None if of_peers else await self._enter(method, context)
            if self._has_names:
                caller = await self._caller(context)
                if of_requests is None:
                    await self._judge(caller, before, method, context)
                CALLER.set(caller)
            data = await self._receive(method, requests, context)
            if of_requests is not None and len(data) > SMALL_BYTES_MAX and self._has_names:
                await self._judge(CALLER.get(), before, method, context)
            if place is None:
                place = await self._enter(method, context)
            await self._hold(place, len(data), context)
            request = await self._decoded(method, decode, data, context)
            del data
            if of_requests is not None and self._access is not None:
                need = of_requests.get(kind_of(request), _ALTER)
                await self._judge(CALLER.get(), (need,), method, context)
            response = await inner(request, context)
            if method.endswith(_READS):
                await self._hold(place, response.ByteSize(), context)
            else:
                place.owe(response.ByteSize())
            return response

        async def guarded(requests: AsyncIterator[bytes], context: Context) -> Any:  # noqa: ANN401
            try:
                return await answered(requests, context)
            except grpc.aio.AbortError as error:
                # gRPC keeps it with the call, and it would keep the request, and all else that the
                # call held, until the garbage collector comes to them.
                error.__context__ = None
                raise error.with_traceback(None) from None

        return guarded

    async def _judge(
        self, caller: str, needs: Sequence[Need], method: str, context: Context
    ) -> None:
        """End the call of somebody who has none of what it takes."""
        if self._access is None or any(self._is_allowed(caller, need) for need in needs):
            return
        await self._refuse(context, _refusal(caller, needs, method))

    def _stream(self, method: str, inner: Stream) -> Stream:
        of_requests = None if self._access is None else NEEDS_OF_REQUESTS.get(method)
        before = _needs_of(method)

        async def guarded(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any]:
            caller = await self._caller(context)
            refused: list[Need] = []
            await self._judge(caller, before, method, context)
            if of_requests is not None:
                requests = taken_while(requests, self._allows(caller, of_requests, refused))
            CALLER.set(caller)
            async with aclosing(inner(requests, context)) as responses:
                async for response in responses:
                    yield response
            # What came before the request that is refused has been answered by now.
            if refused:
                await self._refuse(context, _refusal(caller, refused, method))

        return guarded

    def _allows(
        self, caller: str, needs: Mapping[str, Need], refused: list[Need]
    ) -> Callable[[Any], bool]:
        """Judges requests up to the first that is refused; its need is put into `refused`."""
        known = set[str]()

        def is_allowed(request: Any) -> bool:  # noqa: ANN401 - messages of several services
            # With its size: of the streams only WriteStream is judged by its requests.
            kind = kind_of(request[0])
            if kind in known:
                return True
            need = needs.get(kind, _ALTER)
            if self._is_allowed(caller, need):
                known.add(kind)
            else:
                refused.append(need)
            return not refused

        return is_allowed

    async def _caller(self, context: Context) -> str:
        """Who the call is made for. Ends it when the header may not be there."""
        certificates = tuple(context.auth_context().get("x509_pem_cert", ()))
        connected = _principal_of(certificates[0]) if certificates else ANONYMOUS
        if self._access is None:
            return connected
        forwarded = _forwarded(context)
        if forwarded is None:
            return connected
        if connected not in self._access.forwarders:
            message = f"{connected} may not call for others: list it in authorizer.forwarders"
            metadata = {"principal": connected, "forwarded": forwarded}
            code = grpc.StatusCode.PERMISSION_DENIED
            await self._refuse(context, Refusal(code, FORWARDING_NOT_ALLOWED, message, metadata))
        return forwarded

    async def _refuse(self, context: Context, refusal: Refusal) -> Never:
        # Where a bound is told, the words have numbers in them that differ from call to call.
        about = {"repeats": refusal.message if refusal.metadata else refusal.reason}
        log.info("refused: %s", refusal.message, extra=about)
        await abort(context, refusal)

    def _is_allowed(self, caller: str, need: Need) -> bool:
        assert self._access is not None
        return self._access.allows(caller, need)


def _principal_of(certificate: bytes) -> str:
    # Loaded where there are certificates: it takes ten mebibytes, and a while.
    from quorate.rpc.certificates import principal_of

    return principal_of(certificate)


def _forwarded(context: Context) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == FORWARDED_PRINCIPAL:
            return unquote(value if isinstance(value, str) else value.decode())
    return None


def _refusal(caller: str, needs: Sequence[Need], method: str) -> Refusal:
    operation = " or ".join(dict.fromkeys(o for need in needs for o in need.operations))
    resource = " or ".join(dict.fromkeys(str(need.resource) for need in needs))
    message = f"{caller} may not call {method[1:]}: it needs {operation} on {resource}"
    metadata = {
        "principal": caller,
        "operation": operation,
        "resource": resource,
        "method": method[1:],
    }
    return Refusal(grpc.StatusCode.PERMISSION_DENIED, NOT_AUTHORIZED, message, metadata)
