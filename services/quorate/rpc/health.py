"""grpc.health.v1 with the services `liveness`, `readiness` and `startup`, and reflection.

Health is plaintext on a port of its own, so that a kubelet can ask without certificates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from quorate.rpc.channels import bind, make_server

if TYPE_CHECKING:
    import grpc.aio

LIVENESS: Final = "liveness"
READINESS: Final = "readiness"
STARTUP: Final = "startup"


class HealthServer:
    """Three answers, each serving or not."""

    def __init__(self) -> None:
        self._servicer = health.aio.HealthServicer()
        self._server = make_server()
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, self._server)

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises RuntimeError when it cannot be bound."""
        bound = bind(self._server, host, port)
        await self._server.start()
        for service in (LIVENESS, READINESS, STARTUP):
            await self.set(service, serving=False)
        return bound

    async def set(self, service: str, *, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse
        await self._servicer.set(service, status.SERVING if serving else status.NOT_SERVING)

    async def stop(self) -> None:
        await self._server.stop(grace=None)


def enable_reflection(server: grpc.aio.Server, *service_names: str) -> None:
    """Let tools such as grpcurl list what this server offers."""
    reflection.enable_server_reflection([*service_names, reflection.SERVICE_NAME], server)
