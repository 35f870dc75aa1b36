"""Opens and closes all listeners of a controller, with their certificates.

All listeners pass requests to the same handlers and share their limits. A protocol other than gRPC
needs an opener of its own here.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from quorate.api.authorization_settings import QUORUM_ACTION
from quorate.api.permissions import PEER
from quorate.controller.authorization.authorizer import ANONYMOUS, Caller
from quorate.rpc.channels import open_tls
from quorate.rpc.limits.call_limits import CallLimits
from quorate.rpc.limits.shared_connections import Connections
from quorate.rpc.listener import GrpcListener
from quorate.rpc.method_table import every_id
from quorate.rpc.security.authorization import CallerPolicy
from quorate.settings.listeners import SecurityProtocol
from quorate.settings.port_checks import binding_port, require_free

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from quorate.rpc.method_table import IsVoter
    from quorate.rpc.security.tls_files import TlsFiles
    from quorate.rpc.service import Service
    from quorate.server.config import ControllerConfig
    from quorate.settings.listeners import ListenerSettings
    from quorate.settings.tls import TlsSettings

log = logging.getLogger(__name__)


class ServedListener(Protocol):
    """One port, for any protocol."""

    def bind(self, host: str, port: int, *, tls: TlsFiles | None = None) -> int:
        """Bind the port. Raises RuntimeError if it cannot be bound."""
        ...

    async def start(self) -> None: ...

    async def wait_unexpected_stop(self) -> bool:
        """Wait for its end; True if `stop` was not called."""
        ...

    async def stop(self, grace_s: float | None = None) -> None: ...


class ListenerCertificates:
    """The certificates of all listeners; equal settings are opened once."""

    def __init__(self, listeners: Iterable[ListenerSettings]) -> None:
        """Raises TlsError."""
        self._files: dict[TlsSettings, TlsFiles] = {}
        for listener in listeners:
            if listener.tls is not None and listener.tls not in self._files:
                opened = open_tls(listener.tls)
                assert opened is not None
                self._files[listener.tls] = opened

    def of(self, listener: ListenerSettings) -> TlsFiles | None:
        """Certificates of a listener; None if it does not use TLS."""
        return None if listener.tls is None else self._files[listener.tls]

    def expiry_warnings(self) -> list[str]:
        """Warnings that are due now about certificates that expire soon."""
        warnings = (files.expiry_warning() for files in self._files.values())
        return [warning for warning in warnings if warning is not None]

    @property
    def expires_s(self) -> float | None:
        """The earliest expiry in seconds since 1970; None without certificates."""
        ends = (files.expires_s for files in self._files.values())
        return min((end for end in ends if end is not None), default=None)


class Listeners:
    """All listeners of one node."""

    def __init__(
        self,
        config: ControllerConfig,
        listener_certificates: ListenerCertificates,
        services: Callable[[str], Sequence[Service]],
        is_voter: IsVoter = every_id,
        connections: Connections | None = None,
    ) -> None:
        """`services` makes the services for a listener by name; "" if it is the only listener.

        `is_voter` returns whether a voter set that may be in effect contains a node id.
        """
        self.connections = connections or Connections()
        self._config = config
        self._is_voter = is_voter
        self._listener_certificates = listener_certificates
        self._services = services
        # Shared by all listeners, so that the limits do not grow with their number.
        self._places = CallLimits()
        self._open = [(each, _OPENERS[each.protocol](self, each)) for each in config.listeners]
        self._endings: list[asyncio.Future[bool]] = []
        _check_own(config, listener_certificates.of(config.peers))

    def grpc(self, listener: ListenerSettings) -> GrpcListener:
        """Create a gRPC listener."""
        config, tls = self._config, self._listener_certificates.of(listener)
        name = listener.name if len(config.listeners) > 1 else ""
        return GrpcListener.serving(
            self._services(name),
            # Without certificates callers have no principals.
            CallerPolicy(config.access, have_names=tls is not None, is_voter=self._is_voter),
            has_reflection=config.has_reflection,
            transport=config.transport,
            places=self._places,
            connections=self.connections,
        )

    def bind(self) -> None:
        """Bind all ports, or none. Raises ConfigError that names the one that cannot be bound."""
        for settings, _ in self._open:
            # A grpc.aio server that has not started does not release its port.
            with binding_port("listeners", settings.hosts, settings.bound.port):
                require_free(settings.hosts, settings.bound.port)
        for settings, listener in self._open:
            hosts, port = settings.hosts, settings.bound.port
            with binding_port("listeners", hosts, port):
                listener.bind(hosts, port, tls=self._listener_certificates.of(settings))

    async def start(self) -> None:
        """Start serving on all listeners."""
        for settings, listener in self._open:
            await listener.start()
            where = {"listener": str(settings.bound), "advertised": str(settings.advertised)}
            log.info("serving", extra=where)

    async def wait_unexpected_stop(self) -> bool:
        """Wait until a listener ends; True if `stop` was not called."""
        # None of the futures is cancelled: a grpc.aio server's stop waits for the same one.
        self._endings = [
            asyncio.ensure_future(each.wait_unexpected_stop()) for _, each in self._open
        ]
        done, _ = await asyncio.wait(self._endings, return_when=asyncio.FIRST_COMPLETED)
        return any(ending.result() for ending in done)

    async def stop(self, grace_s: float | None = None) -> None:
        """Stop all listeners, as `GrpcListener.stop` does with one."""
        await asyncio.gather(*(listener.stop(grace_s) for _, listener in self._open))


# Constructors of listeners by protocol; settings/listeners.py offers no other protocol.
_OPENERS: Final[
    Mapping[SecurityProtocol, Callable[[Listeners, ListenerSettings], GrpcListener]]
] = {
    SecurityProtocol.GRPC: Listeners.grpc,
    SecurityProtocol.GRPC_SSL: Listeners.grpc,
}


def _check_own(config: ControllerConfig, tls: TlsFiles | None) -> None:
    """Warn if this node's own settings would not allow it to call its peers."""
    if config.access is None:
        return
    pair = None if tls is None else tls.current().pair
    own = (
        ANONYMOUS
        if pair is None or tls is None or not tls.requires_client_certificates
        else pair.principal
    )
    if not config.access.allows(Caller(own), PEER):
        log.warning(
            "this node calls its peers as %s, which may not do so by its own settings: add it to "
            "super.users or %s",
            own,
            QUORUM_ACTION,
        )
