"""One gRPC listener: it takes its port, listens, and ends once, however often it is told to."""

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
from quorate.rpc.security.authorization import ANYBODY, CallerInterceptor
from quorate.rpc.service import add_service
from quorate.settings.port_checks import own_addresses
from quorate.settings.properties import ConfigError
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    import grpc.aio

    from quorate.rpc.limits.call_limits import CallPlaces
    from quorate.rpc.limits.shared_connections import Connections
    from quorate.rpc.security.authorization import Callers
    from quorate.rpc.security.tls import TlsFiles
    from quorate.rpc.service import Service
    from quorate.settings.port_checks import Hosts

log = logging.getLogger(__name__)
# How long the lookup of an own name may take.
_LOOKUP_S: Final = 10.0
# Without a call for this long, no other waits to be taken.
_QUIET_S: Final = 0.05


async def bound_addresses(setting: str, host: str, port: int) -> tuple[str, ...]:
    """All IP addresses of a host to listen on, so that taking the port waits for no lookup.

    An empty host stays as it is. An address that this machine lacks is left out if there are
    others: `localhost` has one of IPv6 also where that is switched off.
    Raises ConfigError that names the setting.
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
    """One port with services behind it."""

    @classmethod
    def serving(
        cls,
        services: Sequence[Service],
        callers: Callers = ANYBODY,
        *,
        has_reflection: bool,
        transport: Transport = DEFAULT_TRANSPORT,
        places: CallPlaces | None = None,
        connections: Connections | None = None,
    ) -> Self:
        """With these services, none of whose methods takes more than its requests need.

        Several listeners of a process may share their `places` and `connections`.
        """
        methods = dict(REFLECTION_METHODS)
        for service in services:
            methods |= service.methods
        guard = CallerInterceptor(callers, methods, places)
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
        """Take the port on each address; returns it. Raises RuntimeError if it cannot be had."""
        return bind(self._server, hosts, port, tls=tls)

    async def start(self) -> None:
        """Listen."""
        await self._server.start()

    async def ended_unasked(self) -> bool:
        """Wait for its end; whether nobody had told it to.

        grpc.aio ends a server for good when it cannot read what a client sent, a path that is no
        text for instance. It says why in the log.
        """
        with suppress(Exception):
            await self._server.wait_for_termination()
        return self._stopping is None

    async def stop(self, grace_s: float | None = None) -> None:
        """Take no new call at once, without a grace.

        With one calls are taken, and refused by their services in words that clients know, until
        none comes any more or the grace is over; those under way may end within another.
        A second caller waits for the first, with the grace of the first.
        """
        if self._stopping is None:
            # Of two stops at once the second may cancel the calls of a server that the first has
            # destroyed: gRPC reads address 0 then, and the process is gone.
            self._stopping = asyncio.ensure_future(self._end(grace_s))
        await asyncio.shield(self._stopping)

    async def _end(self, grace_s: float | None) -> None:
        if grace_s is not None:
            await self._fall_silent(grace_s)
        await self._server.stop(grace=grace_s)

    async def _fall_silent(self, limit_s: float) -> None:
        """Calls that have come, and that nobody has taken yet, end without a word at the stop.

        To the client of a write that is an unknown outcome, where a refusal sends it elsewhere.
        """
        begun = time.monotonic()
        while True:
            now = time.monotonic()
            quiet_at = max(self._guard.last_call_at, begun) + _QUIET_S
            left_s = min(quiet_at, begun + limit_s) - now
            if left_s <= 0:
                return
            await asyncio.sleep(left_s)
