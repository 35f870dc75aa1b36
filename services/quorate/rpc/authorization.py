"""Who calls, and whether they may: a server interceptor in front of all services of a port.

A unary call is judged by its method, where that does not say enough by its request. A stream is
judged when it begins; what a request on it needs beyond that is judged once for each kind.

A caller is who its certificate names. An identity that the settings list as a forwarder may call
for somebody else, named in a header, and is then judged as that one. From anybody else the header
is refused: ignoring it would do with the caller's own rights what somebody else had asked for.
"""

from __future__ import annotations

import logging
import time
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Never, TypeAlias, cast
from urllib.parse import quote, unquote

import grpc
import grpc.aio

from quorate.controller.authorizer import ANONYMOUS, CLUSTER, TOPICS, Operation, Resource
from quorate.rpc.refusals import Refusal, abort

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping

    from google.protobuf.message import Message

    from quorate.rpc.access import Access

log = logging.getLogger(__name__)
Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Unary: TypeAlias = "Callable[[Any, Context], Awaitable[Any]]"
Stream: TypeAlias = "Callable[[AsyncIterator[Any], Context], AsyncGenerator[Any]]"
FORWARDED_PRINCIPAL: Final = "quorate-forwarded-principal"
REMARKS_S: Final = 60.0
REMARKS_MAX: Final = 1000
NOT_AUTHORIZED: Final = "NOT_AUTHORIZED"
FORWARDING_NOT_ALLOWED: Final = "FORWARDING_NOT_ALLOWED"

# Who calls, for the services behind the interceptor; without one everybody is anonymous.
CALLER: ContextVar[str] = ContextVar("caller", default=ANONYMOUS)


@dataclass(frozen=True, slots=True)
class Need:
    """Any one of these operations on a resource."""

    operations: tuple[Operation, ...]
    resource: Resource = CLUSTER


_PEER: Final = Need((Operation.CLUSTER_ACTION,))
_ALTER: Final = Need((Operation.ALTER,))
# What peers send by themselves and operators by hand.
_PEER_OR_ALTER: Final = Need((Operation.CLUSTER_ACTION, Operation.ALTER))
_DESCRIBE: Final = Need((Operation.DESCRIBE,))
# Whoever may fetch the log may know who leads: a rescue asks with a controller's certificate.
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


def kind_of(request: Any) -> str:  # noqa: ANN401 - messages of several services
    """What tells requests of one method apart: the alternative that is set, "" for none."""
    if "auto_join" in request.DESCRIPTOR.fields_by_name:
        return "auto_join" if request.auto_join else ""
    return request.WhichOneof("request") or ""


def forwarding(principal: str) -> tuple[tuple[str, str], ...]:
    """The metadata by which a forwarder calls for `principal`."""
    return ((FORWARDED_PRINCIPAL, quote(principal, safe=" :=,+*@/")),)


class CallerInterceptor(grpc.aio.ServerInterceptor):
    """Sets CALLER for each call, and with `access` refuses what the caller may not do.

    A method that NEEDS does not have needs Alter on the cluster.
    """

    def __init__(self, access: Access | None) -> None:
        """Without `access` callers have names and may do anything."""
        self._access = access
        self._guarded: dict[str, Handler] = {}
        self._remarks = _Remarks()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """The handler of this method with a guard before it, made once."""
        method = handler_call_details.method
        guarded = self._guarded.get(method)
        if guarded is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            guarded = self._guarded[method] = self._guard(method, handler)
        return guarded

    def _guard(self, method: str, handler: Handler) -> Handler:
        if handler.request_streaming and handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._stream(method, cast("Stream", handler.stream_stream)),
                handler.request_deserializer,
                handler.response_serializer,
            )
        assert not handler.request_streaming
        assert not handler.response_streaming, f"{method} is of a kind that nobody guards"
        return grpc.unary_unary_rpc_method_handler(
            self._unary(method, cast("Unary", handler.unary_unary)),
            handler.request_deserializer,
            handler.response_serializer,
        )

    def _unary(self, method: str, inner: Unary) -> Unary:
        of_requests = NEEDS_OF_REQUESTS.get(method)
        fixed = NEEDS.get(method, _ALTER)

        async def guarded(request: Message, context: Context) -> Any:  # noqa: ANN401
            caller = await self._caller(context)
            if self._access is not None:
                need = fixed if of_requests is None else of_requests.get(kind_of(request), _ALTER)
                if not self._is_allowed(caller, need):
                    await self._refuse(context, _refusal(caller, need, method))
            CALLER.set(caller)
            return await inner(request, context)

        return guarded

    def _stream(self, method: str, inner: Stream) -> Stream:
        of_requests = None if self._access is None else NEEDS_OF_REQUESTS.get(method)
        fixed = NEEDS.get(method, _ALTER)

        async def guarded(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[Any]:
            caller = await self._caller(context)
            refused: list[Need] = []
            if of_requests is not None:
                requests = self._allowed(requests, caller, of_requests, refused)
            elif self._access is not None and not self._is_allowed(caller, fixed):
                await self._refuse(context, _refusal(caller, fixed, method))
            CALLER.set(caller)
            async with aclosing(inner(requests, context)) as responses:
                async for response in responses:
                    yield response
            # What came before the request that is refused has been answered by now.
            if refused:
                await self._refuse(context, _refusal(caller, refused[0], method))

        return guarded

    async def _allowed(
        self,
        requests: AsyncIterator[Any],
        caller: str,
        needs: Mapping[str, Need],
        refused: list[Need],
    ) -> AsyncIterator[Any]:
        """The requests up to the first that is refused; its need is put into `refused`."""
        known = set[str]()
        async for request in requests:
            kind = kind_of(request)
            if kind not in known:
                need = needs.get(kind, _ALTER)
                if not self._is_allowed(caller, need):
                    refused.append(need)
                    return
                known.add(kind)
            yield request

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
        self._remarks.make(refusal.message)
        await abort(context, refusal)

    def _is_allowed(self, caller: str, need: Need) -> bool:
        assert self._access is not None
        authorizer = self._access.authorizer
        return any(
            authorizer.authorize(caller, operation, need.resource) for operation in need.operations
        )


def _principal_of(certificate: bytes) -> str:
    # Loaded where there are certificates: it takes ten mebibytes, and a while.
    from quorate.rpc.certificates import principal_of

    return principal_of(certificate)


class _Remarks:
    """Says each refusal once a minute: a peer that is refused comes again and again."""

    def __init__(self) -> None:
        self._made: set[str] = set()
        self._since_s = time.monotonic()

    def make(self, message: str) -> None:
        now_s = time.monotonic()
        if now_s - self._since_s >= REMARKS_S:
            self._made.clear()
            self._since_s = now_s
        if message not in self._made and len(self._made) < REMARKS_MAX:
            self._made.add(message)
            log.info("refused: %s", message)


def _forwarded(context: Context) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == FORWARDED_PRINCIPAL:
            return unquote(value if isinstance(value, str) else value.decode())
    return None


def _refusal(caller: str, need: Need, method: str) -> Refusal:
    operation = " or ".join(need.operations)
    message = f"{caller} may not call {method[1:]}: it needs {operation} on {need.resource}"
    metadata = {
        "principal": caller,
        "operation": operation,
        "resource": str(need.resource),
        "method": method[1:],
    }
    return Refusal(grpc.StatusCode.PERMISSION_DENIED, NOT_AUTHORIZED, message, metadata)
