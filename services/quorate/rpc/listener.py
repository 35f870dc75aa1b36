"""One gRPC listener: bind, serve, stop; a repeated stop waits for the first."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from quorate.h2.name_resolver import RESOLVER, NameLookupError
from quorate.rpc.channels import bind, make_server, server_spans
from quorate.rpc.health import enable_reflection
from quorate.rpc.method_table import REFLECTION_METHODS
from quorate.rpc.security.authorization import ALLOW_ALL, CallerInterceptor
from quorate.rpc.service import add_service
from quorate.settings.port_checks import own_addresses
from quorate.settings.properties import ConfigError
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    import grpc.aio

    from quorate.rpc.limits.call_limits import CallLimits
    from quorate.rpc.limits.shared_connections import Connections
    from quorate.rpc.security.authorization import CallerPolicy
    from quorate.rpc.security.tls_files import TlsFiles
    from quorate.rpc.service import Service
    from quorate.settings.port_checks import Hosts

log = logging.getLogger(__name__)
# Time limit in seconds for the lookup of an own name.
_LOOKUP_S: Final = 10.0
# Seconds without a call after which no further calls are expected.
_QUIET_S: Final = 0.05


async def bound_addresses(setting: str, host: str, port: int) -> tuple[str, ...]:
    """Resolve a host to listen on to all its IP addresses, so that binding needs no lookup.

    An empty host stays as it is. An address that this machine lacks is left out if there are
    others: `localhost` has an IPv6 address also if IPv6 is switched off. Raises ConfigError that
    names the setting.
    """
    if not host:
        return (host,)
    try:
        found = await RESOLVER.resolve(host, limit_s=_LOOKUP_S)
    except NameLookupError as error:
        raise ConfigError(
            f"{setting}: {host}:{port} cannot be listened on: {error}: choose another address"
        ) from error
    own = own_addresses(found)
    if not own:
        return found
    for foreign in sorted({*found} - {*own}):
        log.warning(f"{setting}: {host} does not listen on {foreign}: this machine lacks it")
    return own


class GrpcListener:
    """One port with its services."""

    @classmethod
    def serving(
        cls,
        services: Sequence[Service],
        caller_policy: CallerPolicy = ALLOW_ALL,
        *,
        has_reflection: bool,
        transport: Transport = DEFAULT_TRANSPORT,
        places: CallLimits | None = None,
        connections: Connections | None = None,
    ) -> Self:
        """Create a listener for services; request sizes are limited to what their methods need.

        Several listeners of a process may share their `places` and `connections`.
        """
        methods = dict(REFLECTION_METHODS)
        for service in services:
            methods |= service.methods
        guard = CallerInterceptor(caller_policy, methods, places)
        server = make_server(
            (guard, *server_spans()),
            received_bytes_max=max(row.request_bytes_max for row in methods.values()),
            transport=transport,
            gate=guard,
            connections=connections,
        )
        for service in services:
            add_service(service, server)
        if has_reflection:
            enable_reflection(server, *(service.descriptor.full_name for service in services))
        return cls(server, guard)

    def __init__(self, server: grpc.aio.Server, guard: CallerInterceptor) -> None:
        self._server = server
        self._guard = guard
        self._stopping: asyncio.Future[None] | None = None

    def bind(self, hosts: Hosts, port: int, *, tls: TlsFiles | None = None) -> int:
        """Bind the port on each address; return it. Raises RuntimeError if it cannot be bound."""
        return bind(self._server, hosts, port, tls=tls)

    async def start(self) -> None:
        """Start serving."""
        await self._server.start()

    async def wait_unexpected_stop(self) -> bool:
        """Wait for its end; True if `stop` was not called.

        grpc.aio ends a server permanently when it cannot read a client's request, for instance a
        path that is not text. It logs the reason.
        """
        with suppress(Exception):
            await self._server.wait_for_termination()
        return self._stopping is None

    async def stop(self, grace_s: float | None = None) -> None:
        """Stop; without a grace period no further call is accepted.

        With one, calls are accepted and rejected by their services with a status that clients know,
        until no more arrive or the period is over; calls in progress may take another one to end. A
        second caller waits for the first, with the grace period of the first.
        """
        if self._stopping is None:
            # If two stops ran at the same time, the second could cancel the calls of a server that
            # the first has destroyed: gRPC would then read address 0 and crash the process.
            self._stopping = asyncio.ensure_future(self._end(grace_s))
        await asyncio.shield(self._stopping)

    async def _end(self, grace_s: float | None) -> None:
        if grace_s is not None:
            await self._fall_silent(grace_s)
        await self._server.stop(grace=grace_s)

    async def _fall_silent(self, limit_s: float) -> None:
        """Wait for queued calls, which would otherwise end without a status at the stop.

        To the client of a write that is an unknown outcome, whereas a rejection sends it elsewhere.
        """
        begun = time.monotonic()
        while True:
            now = time.monotonic()
            quiet_at = max(self._guard.last_call_at, begun) + _QUIET_S
            left_s = min(quiet_at, begun + limit_s) - now
            if left_s <= 0:
                return
            await asyncio.sleep(left_s)
