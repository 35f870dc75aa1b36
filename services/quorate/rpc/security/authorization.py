"""Who calls, and whether they may: a server interceptor in front of all services of a port.

A unary call is judged by its method, where that does not say enough by its request. A stream is
judged when it begins; what a request on it needs beyond that is judged once for each kind. No
message of any size is decoded for somebody who may not call the method at all. What a method needs
is in its row (rpc/method_table.py).

A caller is who its certificate names. An identity that the settings list as a forwarder may call
for somebody else, named in a header, and is then judged as that one. From anybody else the header
is refused: ignoring it would do with the caller's own rights what somebody else had asked for.
"""

from __future__ import annotations

import logging
import time
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Never, TypeAlias, cast
from urllib.parse import quote, unquote

import grpc
import grpc.aio

from quorate.api.permissions import FORWARDING_NOT_ALLOWED, NOT_AUTHORIZED, SUBJECT_UNREADABLE
from quorate.controller.authorization.authorizer import ANONYMOUS, Caller
from quorate.h2.peer_name import client_of
from quorate.records.escaping import shown
from quorate.records.value_types import value
from quorate.rpc.callback_adapter import taken_while
from quorate.rpc.error_status import CallRefusal, abort, status_with
from quorate.rpc.limits.admission import AdmissionError
from quorate.rpc.limits.call_limits import CallPlaces
from quorate.rpc.limits.inbound_limiter import NothingSentError
from quorate.rpc.method_table import SMALL_BYTES_MAX, UNKNOWN, every_id
from quorate.rpc.peer_address import address_of
from quorate.rpc.request_decoding import MalformedRequestError, decoder

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
        Mapping,
    )

    from quorate.api.permissions import Access, Need, Needs
    from quorate.rpc.limits.admission import Admission, Place
    from quorate.rpc.method_table import IsVoter, MethodRow

log = logging.getLogger(__name__)
Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Decode: TypeAlias = "Callable[[bytes], Any]"
UnaryOfBytes: TypeAlias = "Callable[[AsyncIterator[bytes], Context], Awaitable[Any]]"
Unary: TypeAlias = "Callable[[Any, Context], Awaitable[Any]]"
Answering: TypeAlias = "Callable[[Any, Context], AsyncGenerator[Any]]"
Stream: TypeAlias = "Callable[[AsyncIterator[Any], Context], AsyncGenerator[Any]]"
FORWARDED_PRINCIPAL: Final = "quorate-forwarded-principal"

# A refusal names the caller, the method and the rights that it needs.
_REFUSAL_SHOWN_MAX: Final = 500
_NOBODY: Final = Caller(ANONYMOUS)
# The caller, for the services behind the interceptor; without one all are anonymous. Peers that
# show no names call for themselves, and are not told apart.
CALLER: ContextVar[Caller] = ContextVar("caller", default=_NOBODY)


def forwarding(principal: str) -> tuple[tuple[str, str], ...]:
    """The metadata by which a forwarder calls for `principal`."""
    return ((FORWARDED_PRINCIPAL, quote(principal, safe=" :=,+*@/")),)


@value
class Callers:
    """The callers on a listener: without `access` they may do anything, without names all are one.

    `is_voter` tells whose node ids only a caller with QuorumAction may fetch with.
    """

    access: Access | None = None
    have_names: bool = False
    is_voter: IsVoter = every_id


ANYBODY: Final = Callers()


class CallerInterceptor(grpc.aio.ServerInterceptor):
    """Decodes requests, sets CALLER for each call, and refuses what a caller may not do.

    A method that has no row needs Alter on the cluster.
    """

    def __init__(
        self, callers: Callers, methods: Mapping[str, MethodRow], places: CallPlaces | None = None
    ) -> None:
        """`methods` are rows of rpc/method_table.py by path; others may share `places`."""
        self._callers = replace(
            callers, have_names=callers.have_names or callers.access is not None
        )
        self._methods = methods
        self._guarded: dict[str, Handler] = {}
        self._places = places or CallPlaces()
        # What clients are sent that have no place, ready to be sent.
        self._refusals: dict[Admission, bytes] = {}
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
            row = self._methods.get(method, UNKNOWN)
            guard = _Guard(method, row, self._places, self._callers)
            guarded = self._guarded[method] = guard.before(handler)
        return guarded

    def admit(self, method: str, peer: str) -> Place | bytes | None:
        """A place for a call whose headers have come, or the header block that refuses it.

        None for calls whose service counts them itself.
        """
        row = self._methods.get(method, UNKNOWN)
        if row.has_own_places or row.is_of_peers:
            return None
        admission = self._places.of(row)
        place = admission.try_enter(peer)
        if place is not None:
            return place
        self.last_call_at = time.monotonic()
        _log_refusal(admission.refusal, peer)
        block = self._refusals.get(admission)
        if block is None:
            from quorate.h2.server.response import refusal_block

            block = self._refusals[admission] = refusal_block(status_with(admission.refusal))
        return block


class _Guard:
    """What stands before the handler of one method."""

    def __init__(
        self,
        method: str,
        row: MethodRow,
        places: CallPlaces,
        callers: Callers,
    ) -> None:
        self._method = method
        self._row = row
        self._access = callers.access
        self._has_names = callers.have_names
        self._is_voter = callers.is_voter
        self._admission = places.of(row)
        self._arrivals = places.arrivals_of(row)
        # A caller that has none of these may not call the method at all.
        self._any_of: Needs = tuple(need for needs in row.needs.values() for need in needs)

    def before(self, handler: Handler) -> Handler:
        """The same handler, behind this guard."""
        decode = decoder(self._method, self._row, cast("Decode", handler.request_deserializer))
        serializer = handler.response_serializer
        if handler.request_streaming and handler.response_streaming:
            stream = cast("Stream", handler.stream_stream)
            # Callers that nothing judges need no guard: each message would pass through it.
            guarded = self._stream(stream) if self._has_names else stream
            if not self._row.has_own_places:
                guarded = self._counted(guarded)
            return grpc.stream_stream_rpc_method_handler(guarded, decode, serializer)
        assert not handler.request_streaming
        # On the wire one request is a stream of one. It is taken as such here, since the call has
        # to have a place before gRPC receives the request.
        if handler.response_streaming:
            answering = self._answering(cast("Answering", handler.unary_stream), decode)
            return grpc.stream_stream_rpc_method_handler(answering, None, serializer)
        return grpc.stream_unary_rpc_method_handler(
            self._unary(cast("Unary", handler.unary_unary), decode), None, serializer
        )

    def _counted(self, inner: Stream) -> Stream:
        """A stream that has a place while it lasts."""

        async def counted(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any]:
            await self._enter(context)
            try:
                async with aclosing(inner(requests, context)) as responses:
                    async for response in responses:
                        yield response
            except MalformedRequestError as error:
                await self._refuse_malformed(error, context)

        return counted

    def _answering(self, inner: Answering, decode: Decode) -> Stream:
        """A call of one request and many answers, with a place; nobody is judged for these."""

        async def answering(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any]:
            await self._enter(context)
            data = await self._receive(requests, context)
            request = await self._decoded(decode, data, context)
            async with aclosing(inner(request, context)) as responses:
                async for response in responses:
                    yield response

        return answering

    async def _enter(self, context: Context) -> Place:
        """A place until the call has ended and its answer has left."""
        # Our own transport took it before it made the call's task.
        taken: Place | None = getattr(context, "place", None)
        if taken is not None:
            return taken
        try:
            return self._admission.enter_call(context)
        except AdmissionError as error:
            await _refuse(context, error.refusal)

    async def _receive(self, requests: AsyncIterator[bytes], context: Context) -> bytes:
        try:
            data = await self._arrivals.receive(requests, context.peer())
        except AdmissionError as error:
            await _refuse(context, error.refusal)
        except NothingSentError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the call has no request")
            raise
        # Left open it would hold the call, which holds it, when that is long over.
        await cast("AsyncGenerator[bytes]", aiter(requests)).aclose()
        return data

    async def _decoded(self, decode: Decode, data: bytes, context: Context) -> Any:  # noqa: ANN401
        try:
            return decode(data)
        except ValueError as error:
            await self._refuse_malformed(error, context)

    async def _refuse_malformed(self, error: ValueError, context: Context) -> Never:
        log.info("refused: %s", shown(str(error)), extra={"repeats": self._method})
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        raise error

    async def _hold(self, place: Place, size: int, context: Context) -> None:
        try:
            place.hold(size)
        except AdmissionError as error:
            await _refuse(context, error.refusal)

    def _unary(self, inner: Unary, decode: Decode) -> UnaryOfBytes:
        row, has_names = self._row, self._has_names
        by_requests, at_once = row.is_judged_by_requests, row.is_refused_at_once
        of_peers = row.is_of_peers

        async def answered(requests: AsyncIterator[bytes], context: Context) -> Any:  # noqa: ANN401
            # Requests that peers send in halves take no places: the oldest of those makes room.
            place = None if of_peers else await self._enter(context)
            if has_names:
                caller = await self._caller(context)
                if at_once:
                    await self._judge(caller, self._any_of, context)
                CALLER.set(caller)
            elif not of_peers:
                CALLER.set(Caller(ANONYMOUS, client=client_of(context.peer())))
            data = await self._receive(requests, context)
            if by_requests and len(data) > SMALL_BYTES_MAX and has_names:
                await self._judge(CALLER.get(), self._any_of, context)
            if place is None:
                place = await self._enter(context)
            await self._hold(place, len(data), context)
            request = await self._decoded(decode, data, context)
            del data
            if by_requests and has_names:
                await self._judge(CALLER.get(), row.needs_of(request, self._is_voter), context)
            response = await inner(request, context)
            if row.only_tells:
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

    async def _judge(self, caller: Caller, needs: Needs, context: Context) -> None:
        """End the call of somebody who has none of what it takes."""
        access = self._access
        if access is None or access.allows(caller, needs):
            return
        await self._refuse_caller(caller, needs, context)

    def _stream(self, inner: Stream) -> Stream:
        access, row = self._access, self._row

        async def guarded(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any]:
            caller = await self._caller(context)
            refused: list[Need] = []
            await self._judge(caller, self._any_of, context)
            if row.is_judged_by_requests and access is not None:
                requests = taken_while(requests, self._judging(caller, access, refused))
            CALLER.set(caller)
            async with aclosing(inner(requests, context)) as responses:
                async for response in responses:
                    yield response
            # The requests before the one that is refused have been answered by now.
            if refused:
                await self._refuse_caller(caller, refused, context)

        return guarded

    def _judging(
        self, caller: Caller, access: Access, refused: list[Need]
    ) -> Callable[[Any], bool]:
        """Judges requests up to the first that is refused; what it needs is put into `refused`."""
        row, known = self._row, set[str]()
        kind_of, is_sized, is_voter = row.kind_of, row.is_sized, self._is_voter

        def is_allowed(request: Any) -> bool:  # noqa: ANN401 - messages of several services
            message = request[0] if is_sized else request
            kind = kind_of(message, is_voter)
            if kind in known:
                return True
            needs = row.needs_of(message, is_voter)
            if access.allows(caller, needs):
                known.add(kind)
            else:
                refused.extend(needs)
            return not refused

        return is_allowed

    async def _caller(self, context: Context) -> Caller:
        """The one that the call is made for. Ends it when the header may not be there."""
        certificates = tuple(context.auth_context().get("x509_pem_cert", ()))
        try:
            connected = _principal_of(certificates[0]) if certificates else ANONYMOUS
        except ValueError as error:
            # Anonymous it is not: it has a name, which some list may have with other rights.
            code = grpc.StatusCode.PERMISSION_DENIED
            await _refuse(context, CallRefusal(code, SUBJECT_UNREADABLE, str(error), {}))
        client = client_of(context.peer())
        if self._access is None:
            return Caller(connected, client=client)
        forwarded = _forwarded(context)
        if forwarded is None:
            return Caller(connected, client=client)
        if connected not in self._access.forwarders:
            message = f"{connected} may not call for others: list it in authorizer.forwarders"
            metadata = {"principal": connected, "forwarded": forwarded}
            code = grpc.StatusCode.PERMISSION_DENIED
            await _refuse(context, CallRefusal(code, FORWARDING_NOT_ALLOWED, message, metadata))
        return Caller(forwarded, client=client)

    async def _refuse_caller(
        self, caller: Caller, needs: Iterable[Need], context: Context
    ) -> Never:
        method, principal = self._method[1:], caller.principal
        operation = " or ".join(dict.fromkeys(o for need in needs for o in need.operations))
        resource = " or ".join(dict.fromkeys(str(need.resource) for need in needs))
        message = f"{principal} may not call {method}: it needs {_in_words(needs)}"
        metadata = {
            "principal": principal,
            "operation": operation,
            "resource": resource,
            "method": method,
        }
        code = grpc.StatusCode.PERMISSION_DENIED
        await _refuse(context, CallRefusal(code, NOT_AUTHORIZED, message, metadata))


def _in_words(needs: Iterable[Need]) -> str:
    """`ClusterAction or Alter on Cluster:kafka-cluster`, each resource once."""
    by_resource: dict[str, dict[str, None]] = {}
    for need in needs:
        by_resource.setdefault(str(need.resource), {}).update(dict.fromkeys(need.operations))
    return " or ".join(
        f"{' or '.join(operations)} on {resource}" for resource, operations in by_resource.items()
    )


async def _refuse(context: Context, refusal: CallRefusal) -> Never:
    _log_refusal(refusal, context.peer())
    await abort(context, refusal)


def _log_refusal(refusal: CallRefusal, peer: str) -> None:
    # The words have a caller's name in them, or numbers that differ from call to call.
    named = refusal.metadata.get
    key = (refusal.reason, named("method"), shown(named("principal", "")))
    about: dict[str, object] = {"repeats": key}
    address = address_of(peer)
    if address is not None:
        about["host"] = address[0]
    log.info("refused: %s", shown(refusal.message, _REFUSAL_SHOWN_MAX), extra=about)


def _principal_of(certificate: bytes) -> str:
    """The names in a certificate. Raises ValueError (CertificateError)."""
    # Loaded where there are certificates: it takes ten mebibytes, and a while.
    from quorate.rpc.security.certificates import principal_of

    return principal_of(certificate)


def _forwarded(context: Context) -> str | None:
    for key, said in context.invocation_metadata() or ():
        if key == FORWARDED_PRINCIPAL:
            return unquote(said if isinstance(said, str) else said.decode())
    return None
