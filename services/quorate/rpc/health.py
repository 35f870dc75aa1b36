"""grpc.health.v1 for liveness, readiness and startup, and server reflection.

Health is plaintext on a port of its own, so that a kubelet can call it without certificates.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from quorate.rpc.channels import bind, make_server
from quorate.rpc.security.authorization import ALLOW_ALL, CallerInterceptor
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from quorate.settings.port_checks import Hosts

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
LIVENESS: Final = "liveness"
READINESS: Final = "readiness"
STARTUP: Final = "startup"
_SERVICES: Final = (LIVENESS, READINESS, STARTUP)
# The name of a service is one word.
REQUEST_BYTES_MAX: Final = 1024


class _HealthServicer(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """The statuses and their watchers. A watcher that does not read delays no other."""

    def __init__(self) -> None:
        self._statuses = {"": health_pb2.HealthCheckResponse.SERVING}
        self._changed = asyncio.Event()

    def set(self, service: str, *, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse
        self._statuses[service] = status.SERVING if serving else status.NOT_SERVING
        self._changed.set()
        self._changed = asyncio.Event()

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        if request.service not in self._statuses:
            words = f"there is no {request.service!r}: ask for one of {', '.join(_SERVICES)}"
            await context.abort(grpc.StatusCode.NOT_FOUND, words)
        return health_pb2.HealthCheckResponse(status=self._statuses[request.service])

    async def List(
        self, request: health_pb2.HealthListRequest, context: Context
    ) -> health_pb2.HealthListResponse:
        del request, context
        answer = health_pb2.HealthCheckResponse
        statuses = {name: answer(status=status) for name, status in self._statuses.items()}
        return health_pb2.HealthListResponse(statuses=statuses)

    async def Watch(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncGenerator[health_pb2.HealthCheckResponse]:
        told = None
        while True:
            changed = self._changed
            unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
            status = self._statuses.get(request.service, unknown)
            if status != told:
                told = status
                yield health_pb2.HealthCheckResponse(status=status)
            else:
                await changed.wait()


class HealthServer:
    """The health service with three statuses, each serving or not."""

    def __init__(self, transport: Transport = DEFAULT_TRANSPORT) -> None:
        self._servicer = _HealthServicer()
        # Any client may call, within the limit on calls.
        guard = CallerInterceptor(ALLOW_ALL, {})
        self._server = make_server(
            (guard,), received_bytes_max=REQUEST_BYTES_MAX, transport=transport, gate=guard
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, self._server)

    async def start(self, hosts: Hosts, port: int) -> int:
        """Listen; return the port. Raises RuntimeError if it cannot be bound."""
        bound = bind(self._server, hosts, port)
        await self._server.start()
        for service in _SERVICES:
            self._servicer.set(service, serving=False)
        return bound

    async def set(self, service: str, *, serving: bool) -> None:
        self._servicer.set(service, serving=serving)

    async def stop(self) -> None:
        await self._server.stop(grace=None)


def enable_reflection(server: grpc.aio.Server, *service_names: str) -> None:
    """Let tools such as grpcurl list the services of this server."""
    reflection.enable_server_reflection([*service_names, reflection.SERVICE_NAME], server)
