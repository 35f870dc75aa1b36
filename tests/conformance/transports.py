"""The transports that everything here is tried on, each as production builds it.

A transport that the settings know is tried on all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quorate.rpc.channels import MESSAGE_BYTES_MAX, make_server, open_channel
from quorate.rpc.listener import GrpcListener
from quorate.rpc.security.authorization import ALLOW_ALL, CallerInterceptor
from quorate.settings.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.rpc.security.tls_files import TlsFiles

GRPCIO: Final = Transport.GRPCIO
TRANSPORTS: Final = tuple(Transport)
# What these do wrong can be fixed here: nothing that a test asks for is forgiven them.
OURS: Final = frozenset(TRANSPORTS) - {GRPCIO}


def make_listener(transport: str, add_services: Callable[[Any], None]) -> GrpcListener:
    """A listener with these services, and without the guard that knows ours alone."""
    server = make_server((), received_bytes_max=MESSAGE_BYTES_MAX, transport=Transport(transport))
    add_services(server)
    return GrpcListener(server, CallerInterceptor(ALLOW_ALL, {}))


def connect(transport: str, host: str, port: int, *, tls: TlsFiles | None = None) -> Any:  # noqa: ANN401
    """A channel for stubs, which is a context manager."""
    return open_channel(host, port, tls=tls, transport=Transport(transport))
