"""A server for gRPC's generated servicers on asyncio, with the interface of grpc.aio's."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import grpc
import grpc.aio

from quorate.h2.fair_queue import queue_of_running_loop
from quorate.h2.limits import PREFACE_S, Limits, ListenerMemory
from quorate.h2.server_link import ServerLink

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Mapping, Sequence

    from quorate.h2.requests import CallDetails
    from quorate.h2.server_link import Gate

log = logging.getLogger(__name__)
_BACKLOG: Final = 1024
# Descriptors or memory are short: others may give some back.
_SHORTAGE_S: Final = 0.2
# Both families, where the machine has both.
_ANY: Final = ("", "::")
_LOOK_EVERY_S: Final = 1.0
# For the tasks of calls that were cancelled, and for bytes that are still on their way.
_LAST_WORDS_S: Final = 1.0


class Server(grpc.aio.Server):
    """Takes servicers and interceptors of grpc.aio as they are; handlers are coroutines."""

    def __init__(
        self,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        *,
        received_bytes_max: int,
        connections_max: int,
        gate: Gate | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._received_bytes_max = received_bytes_max
        self._connections_max = connections_max
        self._gate = gate
        self._methods: dict[str, Any] = {}
        self._generic: list[grpc.GenericRpcHandler] = []
        find: Any = self._look_up
        for interceptor in reversed(interceptors):
            find = partial(interceptor.intercept_service, find)
        self._find = find
        self._ports: list[tuple[socket.socket, ssl.SSLContext | None]] = []
        self._accepting: list[asyncio.Task[None]] = []
        # Handshakes under way.
        self._arriving: set[asyncio.Task[None]] = set()
        self._links: set[ServerLink] = set()
        self._memory = ListenerMemory()
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
        """Take a port, `HOST:PORT`; plaintext without a context. Raises RuntimeError."""
        host, _, port = address.rpartition(":")
        try:
            listening = _listen(host.removeprefix("[").removesuffix("]"), int(port))
        except OSError as error:
            raise RuntimeError(f"failed to bind to address {address}: {error.strerror}") from error
        self._ports.append((listening, context))
        number: int = listening.getsockname()[1]
        return number

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for listening, context in self._ports:
            self._accepting.append(loop.create_task(self._accept(listening, context)))
        self._looking = loop.call_later(_LOOK_EVERY_S, self._look)

    def _make_link(self) -> ServerLink:
        return ServerLink(
            self._limits,
            message_bytes_max=self._received_bytes_max,
            queue=queue_of_running_loop(),
            gate=self._gate,
            memory=self._memory,
            find=self._find,
            admit=self._admit,
            gone=self._forget,
        )

    async def _accept(self, listening: socket.socket, context: ssl.SSLContext | None) -> None:
        """Take connections, those included whose handshake has only begun, up to the bound."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:
                words = "no connection can be taken now: %s"
                log.warning(words, error.strerror, extra={"repeats": error.errno})
                await asyncio.sleep(_SHORTAGE_S)
                continue
            if len(self._links) + len(self._arriving) >= self._connections_max:
                accepted.close()
                words = "a connection is refused: %s are the most"
                log.warning(words, self._connections_max, extra={"repeats": words})
                continue
            task = loop.create_task(self._arrive(accepted, context))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)

    async def _arrive(self, accepted: socket.socket, context: ssl.SSLContext | None) -> None:
        is_tls = context is not None
        link = self._make_link()
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: link,
                accepted,
                ssl=context,
                ssl_handshake_timeout=PREFACE_S if is_tls else None,
                ssl_shutdown_timeout=_LAST_WORDS_S if is_tls else None,
            )
        except (OSError, RuntimeError) as error:
            # Also what ssl says of a handshake, and uvloop of a socket closed as it begins.
            log.debug("a connection has ended before it began: %s", error)
            accepted.close()
        except asyncio.CancelledError:
            link.give_up()
            accepted.close()
            raise

    def _admit(self, link: ServerLink) -> bool:
        if self._is_stopping:
            return False
        self._links.add(link)
        return True

    def _forget(self, link: ServerLink) -> None:
        self._links.discard(link)
        self._left.set()

    def _look(self) -> None:
        now_s = time.monotonic()
        for link in list(self._links):
            link.look(now_s)
        self._looking = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look)

    # --- the end ----------------------------------------------------------------------------------

    async def stop(self, grace: float | None) -> None:
        self._is_stopping = True
        if self._looking is not None:
            self._looking.cancel()
        tasks = [*self._accepting, *self._arriving]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listening, _ in self._ports:
            listening.close()
        self._ports.clear()
        for link in self._links:
            link.leave()
        if grace is not None:
            await _settled([task for link in self._links for task in link.tasks], grace)
        tasks = [task for link in self._links for task in link.abandon()]
        await _settled(tasks, _LAST_WORDS_S)
        for link in list(self._links):
            link.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                while self._links:
                    self._left.clear()
                    await self._left.wait()
        for link in list(self._links):
            link.cut()
        self._ended.set()

    async def wait_for_termination(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), timeout)
        return not self._ended.is_set()


async def _settled(tasks: list[asyncio.Task[None]], limit_s: float) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=limit_s)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this address. Raises OSError."""
    if host in _ANY and not socket.has_ipv6:
        host = "0.0.0.0"  # noqa: S104 - what was asked for, on a machine without IPv6
    found = socket.getaddrinfo(host or "::", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
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
