"""grpc.aio-compatible channel.

A call on a channel without a connection waits for one. If the connection fails the call fails, and
so do calls within a short time after it. The next call tries again.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

import grpc
import grpc.aio

from quorate.h2.client.call import ClientCall, Method
from quorate.h2.client.intercepted_call import InterceptedCall
from quorate.h2.client.protocol import ClientProtocol
from quorate.h2.name_resolver import RESOLVER
from quorate.records.value_types import keyword_value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_UNAVAILABLE: Final = grpc.StatusCode.UNAVAILABLE
_LAST_WORDS_S: Final = 1.0


@keyword_value_type
class ChannelTimes:
    """Timeouts and intervals in seconds."""

    connect_s: float
    backoff_s: float
    backoff_max_s: float
    ping_every_s: float
    ping_patience_s: float


class Channel(grpc.aio.Channel):
    """Calls to one address, on one connection at a time."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        times: ChannelTimes,
        message_bytes_max: int,
        context: ssl.SSLContext | None = None,
        interceptors: Sequence[grpc.aio.UnaryUnaryClientInterceptor] = (),
    ) -> None:
        """Use plaintext without a context."""
        self._host, self._port = host, port
        self._times = times
        self._message_bytes_max = message_bytes_max
        self._context = context
        self._interceptors = tuple(interceptors)
        self._link: ClientProtocol | None = None
        self._links: set[ClientProtocol] = set()
        self._connecting: asyncio.Task[None] | None = None
        # Calls that are not assigned to a connection yet, in order.
        self._waiting: dict[ClientCall, None] = {}
        self._calls: set[ClientCall] = set()
        self._backoff_s = times.backoff_s
        self._quiet_until_s = 0.0
        self._failure = ""
        self._is_closed = False
        self._changed = asyncio.Event()

    # --- calls ------------------------------------------------------------------------------------

    def start(self, call: ClientCall) -> None:
        """Begin a call, now or when connected. Raises UsageError if the channel is closed."""
        if self._is_closed:
            raise grpc.aio.UsageError("Channel is closed.")
        self._calls.add(call)
        link = self._link
        if link is not None and not link.is_leaving and link.has_room and not self._waiting:
            call.begin(link, bytes_max=self._message_bytes_max)
            return
        self._waiting[call] = None
        if link is not None and not link.is_leaving:
            return
        if self._connecting is None:
            now_s = asyncio.get_running_loop().time()
            if now_s < self._quiet_until_s:
                self._fail_waiting()
                return
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
            self._tell_changed()

    def call_ended(self, call: ClientCall) -> None:
        """Remove a call; another one may take its place."""
        self._calls.discard(call)
        self._waiting.pop(call, None)
        if call.link is not None:
            call.link.ended(call.stream_id)
        if self._waiting:
            self._begin_waiting()

    def _begin_waiting(self) -> None:
        # A connection that is going away reports the ends of its calls, too.
        while self._waiting and (link := self._link) is not None and not link.is_leaving:
            if not link.has_room:
                return
            call = next(iter(self._waiting))
            del self._waiting[call]
            call.begin(link, bytes_max=self._message_bytes_max, has_waited=True)

    def _fail_waiting(self) -> None:
        waiting = list(self._waiting)
        self._waiting.clear()
        for call in waiting:
            call.fail(_UNAVAILABLE, self._failure)

    # --- the connection ---------------------------------------------------------------------------

    async def _connect(self) -> None:
        times = self._times
        loop = asyncio.get_running_loop()
        try:
            link = await RESOLVER.connect(
                self._host or "localhost", self._open, limit_s=times.connect_s
            )
        except Exception as error:
            # After any error the next call tries again. Not all are socket errors: uvloop has its
            # own error for a socket that is closed during the set-up.
            self._connecting = None
            address = f"{self._host}:{self._port}"
            self._failure = f"failed to connect to {address}: {_reason(error)}"
            self._quiet_until_s = loop.time() + self._backoff_s
            self._backoff_s = min(self._backoff_s * 2, times.backoff_max_s)
            self._fail_waiting()
        except asyncio.CancelledError:
            self._connecting = None
            raise
        else:
            self._link, self._connecting = link, None
            self._backoff_s = times.backoff_s
            self._begin_waiting()
        finally:
            self._tell_changed()

    async def _open(self, address: str) -> ClientProtocol:
        """Open a connection to one address of the host, on which calls may begin."""
        times = self._times
        link = ClientProtocol(
            ping_every_s=times.ping_every_s,
            ping_patience_s=times.ping_patience_s,
            gone=self._lost,
            widened=self._begin_waiting,
        )
        self._links.add(link)
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: link,
                address,
                self._port,
                ssl=self._context,
                server_hostname=self._host if self._context is not None else None,
            )
            await link.ready
            link.check()
        except BaseException:
            self._links.discard(link)
            link.discard()
            raise
        return link

    def _lost(self, link: ClientProtocol) -> None:
        if self._link is link:
            self._link = None
            if self._waiting and not self._is_closed and self._connecting is None:
                self._connecting = asyncio.get_running_loop().create_task(self._connect())
        if not link.is_open:
            self._links.discard(link)
        self._tell_changed()

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # --- the interface of grpc.aio ----------------------------------------------------------------

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:  # noqa: FBT001, FBT002
        if self._is_closed:
            return grpc.ChannelConnectivity.SHUTDOWN
        if self._link is not None:
            return grpc.ChannelConnectivity.READY
        loop = asyncio.get_running_loop()
        is_quiet = loop.time() < self._quiet_until_s
        if try_to_connect and self._connecting is None and not is_quiet:
            self._connecting = loop.create_task(self._connect())
        if self._connecting is not None:
            return grpc.ChannelConnectivity.CONNECTING
        if is_quiet:
            return grpc.ChannelConnectivity.TRANSIENT_FAILURE
        return grpc.ChannelConnectivity.IDLE

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        while self.get_state() is last_observed_state:
            await self._changed.wait()

    async def channel_ready(self) -> None:
        while self.get_state(try_to_connect=True) is not grpc.ChannelConnectivity.READY:
            changed, wait_s = self._changed, self._times.backoff_max_s
            try:
                async with asyncio.timeout(wait_s):
                    await changed.wait()
            except TimeoutError:
                continue

    async def close(self, grace: float | None = None) -> None:
        self._is_closed = True
        if grace is not None and self._calls:
            done = asyncio.Event()

            def look(_: object) -> None:
                if not self._calls:
                    done.set()

            for call in list(self._calls):
                call.add_done_callback(look)
            with suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), grace)
        for call in list(self._calls):
            call.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        for link in list(self._links):
            link.close()
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                while self._links:
                    await self._changed.wait()
        except TimeoutError:
            for link in list(self._links):
                link.abort()
        self._tell_changed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _method(self, path: str, encode: Any, decode: Any) -> Method:  # noqa: ANN401
        host = f"[{self._host}]" if ":" in self._host else self._host
        scheme = b"http" if self._context is None else b"https"
        return Method(path, encode, decode, scheme=scheme, authority=f"{host}:{self._port}")

    def _call(self, method: Method, timeout: float | None, metadata: Any) -> ClientCall:  # noqa: ANN401
        return ClientCall(method, metadata, timeout, has_ended=self.call_ended)

    def _of_one(self, method: Method) -> Callable[..., ClientCall]:
        """Create the function that begins calls with one request."""

        def begin(
            request: Any,  # noqa: ANN401 - a message of any service
            *,
            timeout: float | None = None,
            metadata: Any = None,  # noqa: ANN401
            **_: object,
        ) -> ClientCall:
            call = self._call(method, timeout, metadata)
            call.send_only(request)
            self.start(call)
            return call

        return begin

    def _of_many(self, method: Method) -> Callable[..., ClientCall]:
        """Create the function that begins calls with a stream of requests."""

        def begin(
            request_iterator: Any = None,  # noqa: ANN401 - of messages of any service
            timeout: float | None = None,
            metadata: Any = None,  # noqa: ANN401
            **_: object,
        ) -> ClientCall:
            call = self._call(method, timeout, metadata)
            self.start(call)
            if request_iterator is not None:
                call.send_all(request_iterator)
            return call

        return begin

    def unary_unary(
        self,
        method: str,
        request_serializer: Any = None,  # noqa: ANN401
        response_deserializer: Any = None,  # noqa: ANN401
        _registered_method: bool | None = False,  # noqa: FBT001, FBT002
    ) -> Any:  # noqa: ANN401 - what stubs call
        begin = self._of_one(self._method(method, request_serializer, response_deserializer))
        if not self._interceptors:
            return begin
        return lambda request, **how: InterceptedCall(
            self._interceptors, begin, method, request, how
        )

    def unary_stream(
        self,
        method: str,
        request_serializer: Any = None,  # noqa: ANN401
        response_deserializer: Any = None,  # noqa: ANN401
        _registered_method: bool | None = False,  # noqa: FBT001, FBT002
    ) -> Any:  # noqa: ANN401 - what stubs call
        return self._of_one(self._method(method, request_serializer, response_deserializer))

    def stream_unary(
        self,
        method: str,
        request_serializer: Any = None,  # noqa: ANN401
        response_deserializer: Any = None,  # noqa: ANN401
        _registered_method: bool | None = False,  # noqa: FBT001, FBT002
    ) -> Any:  # noqa: ANN401 - what stubs call
        return self._of_many(self._method(method, request_serializer, response_deserializer))

    def stream_stream(
        self,
        method: str,
        request_serializer: Any = None,  # noqa: ANN401
        response_deserializer: Any = None,  # noqa: ANN401
        _registered_method: bool | None = False,  # noqa: FBT001, FBT002
    ) -> Any:  # noqa: ANN401 - what stubs call
        return self._of_many(self._method(method, request_serializer, response_deserializer))


def _reason(error: Exception) -> str:
    """Return the reason of a failed connection, in gRPC's wording."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if "ostname mismatch" in error.verify_message or "IP address" in error.verify_message:
            return f"hostname verification failed: {error.verify_message}"
        return f"CERTIFICATE_VERIFY_FAILED: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ConnectionRefusedError) or f"Errno {errno.ECONNREFUSED}" in str(error):
        return "Connection refused"
    return str(error) or "Socket closed"
