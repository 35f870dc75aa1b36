"""Interceptor that authenticates the caller and authorizes each call.

A unary call is authorized by its method, and by its request if the method alone is not sufficient.
A stream is authorized when it begins; a request on it that needs more is authorized once per kind.
No large message is decoded for a caller that may not call the method at all. The permissions of a
method are in its row (rpc/method_table.py).

A caller is the principal of its certificate. A principal that the settings list as a forwarder may
call on behalf of another principal, named in a header, with the permissions of that principal. From
any other caller the header is rejected: ignoring it would perform the request of another principal
with the caller's own permissions.
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
from quorate.records.value_types import value_type
from quorate.rpc.callback_adapter import take_while
from quorate.rpc.error_status import ErrorStatus, abort, status_with
from quorate.rpc.limits.admission import AdmissionError
from quorate.rpc.limits.call_limits import CallLimits
from quorate.rpc.limits.inbound_limiter import EmptyCallError
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

    from quorate.api.permissions import Access, Needs, RequiredOperation
    from quorate.rpc.limits.admission import AdmissionControl, CallSlot
    from quorate.rpc.method_table import IsVoter, MethodPolicy

log = logging.getLogger(__name__)
Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Decode: TypeAlias = "Callable[[bytes], Any]"
UnaryOfBytes: TypeAlias = "Callable[[AsyncIterator[bytes], Context], Awaitable[Any]]"
Unary: TypeAlias = "Callable[[Any, Context], Awaitable[Any]]"
Answering: TypeAlias = "Callable[[Any, Context], AsyncGenerator[Any]]"
Stream: TypeAlias = "Callable[[AsyncIterator[Any], Context], AsyncGenerator[Any]]"
FORWARDED_PRINCIPAL: Final = "quorate-forwarded-principal"

# Characters: a rejection names the caller, the method and the permissions that it needs.
_REFUSAL_SHOWN_MAX: Final = 500
_NOBODY: Final = Caller(ANONYMOUS)
# The caller, for the services behind the interceptor; without one all callers are anonymous. Peers
# without principals call for themselves, and are not distinguished.
CALLER: ContextVar[Caller] = ContextVar("caller", default=_NOBODY)


def forwarding(principal: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata with which a forwarder calls for `principal`."""
    return ((FORWARDED_PRINCIPAL, quote(principal, safe=" :=,+*@/")),)


@value_type
class CallerPolicy:
    """The callers on a listener: all permissions without `access`, one principal without names.

    `is_voter` returns the node ids with which only a caller with QuorumAction may fetch.
    """

    access: Access | None = None
    have_names: bool = False
    is_voter: IsVoter = every_id


ALLOW_ALL: Final = CallerPolicy()


class CallerInterceptor(grpc.aio.ServerInterceptor):
    """Decodes requests, sets CALLER for each call, and rejects unauthorized calls.

    A method without a row needs Alter on the cluster.
    """

    def __init__(
        self,
        caller_policy: CallerPolicy,
        methods: Mapping[str, MethodPolicy],
        places: CallLimits | None = None,
    ) -> None:
        """`methods` are rows of rpc/method_table.py by path; `places` may be shared."""
        self._caller_policy = replace(
            caller_policy, have_names=caller_policy.have_names or caller_policy.access is not None
        )
        self._methods = methods
        self._guarded: dict[str, Handler] = {}
        self._places = places or CallLimits()
        # The encoded rejections of clients without a slot.
        self._refusals: dict[AdmissionControl, bytes] = {}
        # Seconds of the monotonic clock.
        self.last_call_at = 0.0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the handler of this method behind its guard, created once."""
        self.last_call_at = time.monotonic()
        method = handler_call_details.method
        guarded = self._guarded.get(method)
        if guarded is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            row = self._methods.get(method, UNKNOWN)
            guard = _MethodAuthorizer(method, row, self._places, self._caller_policy)
            guarded = self._guarded[method] = guard.before(handler)
        return guarded

    def admit(self, method: str, peer: str) -> CallSlot | bytes | None:
        """Acquire a slot for a call whose headers have arrived, or return a rejecting header block.

        None for calls that their service counts itself.
        """
        row = self._methods.get(method, UNKNOWN)
        if row.has_own_places or row.is_peer_method:
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


class _MethodAuthorizer:
    """The checks in front of the handler of one method."""

    def __init__(
        self,
        method: str,
        row: MethodPolicy,
        places: CallLimits,
        caller_policy: CallerPolicy,
    ) -> None:
        self._method = method
        self._row = row
        self._access = caller_policy.access
        self._has_names = caller_policy.have_names
        self._is_voter = caller_policy.is_voter
        self._admission_control = places.of(row)
        self._inbound_limiter = places.arrivals_of(row)
        # A caller with none of these permissions may not call the method at all.
        self._any_of: Needs = tuple(need for needs in row.needs.values() for need in needs)

    def before(self, handler: Handler) -> Handler:
        """Return the handler behind this guard."""
        decode = decoder(self._method, self._row, cast("Decode", handler.request_deserializer))
        serializer = handler.response_serializer
        if handler.request_streaming and handler.response_streaming:
            stream = cast("Stream", handler.stream_stream)
            # Without authorization a guard is superfluous: each message would pass through it.
            guarded = self._stream(stream) if self._has_names else stream
            if not self._row.has_own_places:
                guarded = self._counted(guarded)
            return grpc.stream_stream_rpc_method_handler(guarded, decode, serializer)
        assert not handler.request_streaming
        # On the wire one request is a stream of one. It is handled as such here, since the call
        # needs a slot before gRPC receives the request.
        if handler.response_streaming:
            answering = self._answering(cast("Answering", handler.unary_stream), decode)
            return grpc.stream_stream_rpc_method_handler(answering, None, serializer)
        return grpc.stream_unary_rpc_method_handler(
            self._unary(cast("Unary", handler.unary_unary), decode), None, serializer
        )

    def _counted(self, inner: Stream) -> Stream:
        """Wrap a stream so that it holds a slot while it lasts."""

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
        """Wrap a call of one request and many responses with a slot; it is not authorized."""

        async def answering(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any]:
            await self._enter(context)
            data = await self._receive(requests, context)
            request = await self._decoded(decode, data, context)
            async with aclosing(inner(request, context)) as responses:
                async for response in responses:
                    yield response

        return answering

    async def _enter(self, context: Context) -> CallSlot:
        """Acquire a slot until the call has ended and its response has been sent."""
        # Our own transport acquired it before it created the call's task.
        taken: CallSlot | None = getattr(context, "place", None)
        if taken is not None:
            return taken
        try:
            return self._admission_control.acquire_for_call(context)
        except AdmissionError as error:
            await _refuse(context, error.refusal)

    async def _receive(self, requests: AsyncIterator[bytes], context: Context) -> bytes:
        try:
            data = await self._inbound_limiter.receive(requests, context.peer())
        except AdmissionError as error:
            await _refuse(context, error.refusal)
        except EmptyCallError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the call has no request")
            raise
        # Left open, the iterator and the call would keep each other alive long after the end.
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

    async def _hold(self, call_slot: CallSlot, size: int, context: Context) -> None:
        try:
            call_slot.hold(size)
        except AdmissionError as error:
            await _refuse(context, error.refusal)

    def _unary(self, inner: Unary, decode: Decode) -> UnaryOfBytes:
        row, has_names = self._row, self._has_names
        by_requests, at_once = row.needs_request_authorization, row.can_reject_before_request
        of_peers = row.is_peer_method

        async def answered(requests: AsyncIterator[bytes], context: Context) -> Any:  # noqa: ANN401
            # Partially received requests of peers hold no slots: the oldest of them is evicted.
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
                await self._judge(
                    CALLER.get(), row.required_permissions(request, self._is_voter), context
                )
            response = await inner(request, context)
            if row.only_tells:
                await self._hold(place, response.ByteSize(), context)
            else:
                place.charge(response.ByteSize())
            return response

        async def guarded(requests: AsyncIterator[bytes], context: Context) -> Any:  # noqa: ANN401
            try:
                return await answered(requests, context)
            except grpc.aio.AbortError as error:
                # gRPC keeps the error with the call. It would keep the request, and all else that
                # the call held, until a garbage collection.
                error.__context__ = None
                raise error.with_traceback(None) from None

        return guarded

    async def _judge(self, caller: Caller, needs: Needs, context: Context) -> None:
        """End the call of a caller that has none of the permissions."""
        access = self._access
        if access is None or access.allows(caller, needs):
            return
        await self._refuse_caller(caller, needs, context)

    def _stream(self, inner: Stream) -> Stream:
        access, row = self._access, self._row

        async def guarded(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any]:
            caller = await self._caller(context)
            refused: list[RequiredOperation] = []
            await self._judge(caller, self._any_of, context)
            if row.needs_request_authorization and access is not None:
                requests = take_while(requests, self._judging(caller, access, refused))
            CALLER.set(caller)
            async with aclosing(inner(requests, context)) as responses:
                async for response in responses:
                    yield response
            # The requests before the rejected one have been answered by now.
            if refused:
                await self._refuse_caller(caller, refused, context)

        return guarded

    def _judging(
        self, caller: Caller, access: Access, refused: list[RequiredOperation]
    ) -> Callable[[Any], bool]:
        """Create the check of a stream's requests, which ends at the first rejected one.

        The permissions that the rejected request needs are put into `refused`.
        """
        row, known = self._row, set[str]()
        kind_of, is_sized, is_voter = row.kind_of, row.is_sized, self._is_voter

        def is_allowed(request: Any) -> bool:  # noqa: ANN401 - messages of several services
            message = request[0] if is_sized else request
            kind = kind_of(message, is_voter)
            if kind in known:
                return True
            needs = row.required_permissions(message, is_voter)
            if access.allows(caller, needs):
                known.add(kind)
            else:
                refused.extend(needs)
            return not refused

        return is_allowed

    async def _caller(self, context: Context) -> Caller:
        """Return the caller of a call; end the call if the forwarding header is not allowed."""
        certificates = tuple(context.auth_context().get("x509_pem_cert", ()))
        try:
            connected = _principal_of(certificates[0]) if certificates else ANONYMOUS
        except ValueError as error:
            # It is not anonymous: it has a name, which may have other permissions.
            code = grpc.StatusCode.PERMISSION_DENIED
            await _refuse(context, ErrorStatus(code, SUBJECT_UNREADABLE, str(error), {}))
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
            await _refuse(context, ErrorStatus(code, FORWARDING_NOT_ALLOWED, message, metadata))
        return Caller(forwarded, client=client)

    async def _refuse_caller(
        self, caller: Caller, needs: Iterable[RequiredOperation], context: Context
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
        await _refuse(context, ErrorStatus(code, NOT_AUTHORIZED, message, metadata))


def _in_words(needs: Iterable[RequiredOperation]) -> str:
    """Format permissions as `ClusterAction or Alter on Cluster:kafka-cluster`.

    Each resource is named once.
    """
    by_resource: dict[str, dict[str, None]] = {}
    for need in needs:
        by_resource.setdefault(str(need.resource), {}).update(dict.fromkeys(need.operations))
    return " or ".join(
        f"{' or '.join(operations)} on {resource}" for resource, operations in by_resource.items()
    )


async def _refuse(context: Context, refusal: ErrorStatus) -> Never:
    _log_refusal(refusal, context.peer())
    await abort(context, refusal)


def _log_refusal(refusal: ErrorStatus, peer: str) -> None:
    # The message contains a caller's name, or numbers that differ from call to call.
    named = refusal.metadata.get
    key = (refusal.reason, named("method"), shown(named("principal", "")))
    about: dict[str, object] = {"repeats": key}
    address = address_of(peer)
    if address is not None:
        about["host"] = address[0]
    log.info("refused: %s", shown(refusal.message, _REFUSAL_SHOWN_MAX), extra=about)


def _principal_of(certificate: bytes) -> str:
    """Return the principal of a certificate. Raises ValueError (CertificateError)."""
    # Loaded only if there are certificates: it takes 10 MiB of memory and some time.
    from quorate.rpc.security.certificates import principal_of

    return principal_of(certificate)


def _forwarded(context: Context) -> str | None:
    for key, said in context.invocation_metadata() or ():
        if key == FORWARDED_PRINCIPAL:
            return unquote(said if isinstance(said, str) else said.decode())
    return None
