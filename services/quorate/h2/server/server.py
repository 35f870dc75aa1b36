"""grpc.aio-compatible server."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import grpc
import grpc.aio

from quorate.h2.fair_queue import queue_of_running_loop
from quorate.h2.peer_name import client_of
from quorate.h2.protocol.limits import LAST_WORDS_S, Limits, ListenerMemory
from quorate.h2.server.acceptor import Acceptor
from quorate.h2.server.connection_limiter import AddressSlots, ConnectionStats, PendingHandshakes
from quorate.h2.server.protocol import ServerProtocol
from quorate.settings.port_checks import any_address

if TYPE_CHECKING:
    import ssl
    from collections.abc import Container, Iterable, Mapping, Sequence

    from quorate.h2.call_headers import CallDetails
    from quorate.h2.server.protocol import Gate

_BACKLOG: Final = 1024
# Bytes of one read of a connection. More data waits in the kernel, not in this process.
_READ_BYTES: Final = 32 * 1024
# One connection per this many is reserved for preferred addresses.
_RESERVED_SHARE: Final = 128
# One handshake may be in progress per this many connections, and at least some.
_HANDSHAKES_SHARE: Final = 4
_HANDSHAKES_MIN: Final = 64
# Both families, if the machine has both.
_ANY: Final = ("", "::")
_LOOK_EVERY_S: Final = 1.0


class Server(grpc.aio.Server):
    """Accepts servicers and interceptors of grpc.aio unchanged; handlers are coroutines."""

    def __init__(
        self,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        *,
        received_bytes_max: int,
        connections_max: int,
        gate: Gate | None = None,
        limits: Limits | None = None,
        preferred: Container[str] = (),
        stats: ConnectionStats | None = None,
    ) -> None:
        """Reserve some connections for `preferred` addresses (h2/peer_name.py names them)."""
        self._limits = limits or Limits()
        self._received_bytes_max = received_bytes_max
        self._gate = gate
        reserved = connections_max // _RESERVED_SHARE
        self._slots = AddressSlots(connections_max, reserved=reserved, preferred=preferred)
        handshakes_max = max(_HANDSHAKES_MIN, connections_max // _HANDSHAKES_SHARE)
        self._handshakes = PendingHandshakes(
            AddressSlots(handshakes_max, reserved=reserved, preferred=preferred)
        )
        self._stats = stats or ConnectionStats()
        self._methods: dict[str, Any] = {}
        self._generic: list[grpc.GenericRpcHandler] = []
        find: Any = self._look_up
        for interceptor in reversed(interceptors):
            find = partial(interceptor.intercept_service, find)
        self._find = find
        self._ports: list[Acceptor] = []
        self._links: set[ServerProtocol] = set()
        self._memory = ListenerMemory()
        # Shared by all connections: each copies its data out before the next one reads.
        self._read_buffer = memoryview(bytearray(_READ_BYTES))
        self._looking: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self._left, self._ended = asyncio.Event(), asyncio.Event()

    # --- services ---------------------------------------------------------------------------------

    def add_generic_rpc_handlers(
        self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]
    ) -> None:
        self._generic.extend(generic_rpc_handlers)

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: Mapping[str, Any]
    ) -> None:
        for name, handler in method_handlers.items():
            self._methods[f"/{service_name}/{name}"] = handler

    async def _look_up(self, details: CallDetails) -> Any:  # noqa: ANN401 - a method handler
        handler = self._methods.get(details.method)
        if handler is not None:
            return handler
        for generic in self._generic:
            handler = generic.service(details)
            if handler is not None:
                return handler
        return None

    # --- ports ------------------------------------------------------------------------------------

    def add_insecure_port(self, address: str) -> int:
        return self.add_port(address, None)

    def add_secure_port(self, address: str, server_credentials: grpc.ServerCredentials) -> NoReturn:
        raise TypeError("credentials of grpcio cannot be read: use add_port with a context of ssl")

    def add_port(self, address: str, context: ssl.SSLContext | None) -> int:
        """Bind a port, `HOST:PORT`; plaintext without a context. Raises RuntimeError."""
        host, _, port = address.rpartition(":")
        try:
            listening = _listen(host.removeprefix("[").removesuffix("]"), int(port))
        except OSError as error:
            raise RuntimeError(f"failed to bind to address {address}: {error.strerror}") from error
        self._ports.append(
            Acceptor(
                listening,
                context,
                make_link=self._make_link,
                established=self._slots,
                handshakes=self._handshakes,
                stats=self._stats,
            )
        )
        number: int = listening.getsockname()[1]
        return number

    async def start(self) -> None:
        for port in self._ports:
            port.start()
        self._looking = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look)

    def _make_link(self) -> ServerProtocol:
        return ServerProtocol(
            self._limits,
            message_bytes_max=self._received_bytes_max,
            read_buffer=self._read_buffer,
            queue=queue_of_running_loop(),
            gate=self._gate,
            memory=self._memory,
            find=self._find,
            admit=self._admit,
            gone=self._forget,
        )

    def _admit(self, link: ServerProtocol) -> bool:
        client = client_of(link.peer)
        if self._is_stopping or not self._slots.has_room(client):
            return False
        self._slots.take(client)
        self._links.add(link)
        return True

    def _forget(self, link: ServerProtocol) -> None:
        if link in self._links:
            self._links.discard(link)
            self._slots.give_back(client_of(link.peer))
        self._left.set()

    def _look(self) -> None:
        now_s = time.monotonic()
        for link in list(self._links):
            link.check_timeouts(now_s)
        self._looking = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look)

    # --- the end ----------------------------------------------------------------------------------

    async def stop(self, grace: float | None) -> None:
        self._is_stopping = True
        if self._looking is not None:
            self._looking.cancel()
        for port in self._ports:
            port.stop()
        arriving = self._handshakes.tasks
        for task in arriving:
            task.cancel()
        await asyncio.gather(*arriving, return_exceptions=True)
        for port in self._ports:
            port.close()
        self._ports.clear()
        for link in self._links:
            link.go_away()
        if grace is not None:
            await _settled([task for link in self._links for task in link.tasks], grace)
        tasks = [task for link in self._links for task in link.cancel_calls()]
        await _settled(tasks, LAST_WORDS_S)
        for link in list(self._links):
            link.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                while self._links:
                    self._left.clear()
                    await self._left.wait()
        for link in list(self._links):
            link.abort()
        self._ended.set()

    async def wait_for_termination(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), timeout)
        return not self._ended.is_set()


async def _settled(tasks: list[asyncio.Task[None]], limit_s: float) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=limit_s)


def _listen(host: str, port: int) -> socket.socket:
    """Create a socket that listens on this address. Raises OSError."""
    host = any_address() if host in _ANY else host
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            is_only = int(address[0] not in _ANY)
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, is_only)
        listening.bind(address)
        listening.listen(_BACKLOG)
        listening.setblocking(False)  # noqa: FBT003
    except BaseException:
        listening.close()
        raise
    return listening
