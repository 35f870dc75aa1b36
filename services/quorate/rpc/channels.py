"""Creates gRPC channels and servers with options tuned for sub-second failover.

Measured reasons: with default options a peer that was down for 15 s is reached up to 10 s after it
listens again; with these within a quarter of a second. The C core sheds calls beyond 1,000 pending
unless its limits are raised; the services themselves limit admission.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Final

import grpc.aio

from quorate.h2.name_resolver import RESOLVER, is_address
from quorate.records.value_types import value_type
from quorate.rpc.limits.shared_connections import Connections
from quorate.settings.port_checks import each_of
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport
from quorate.telemetry import tracing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.h2.server.protocol import Gate
    from quorate.rpc.call_spans import FetchSpans, StreamedWriteSpans
    from quorate.rpc.security.tls_files import TlsFiles
    from quorate.settings.port_checks import Hosts
    from quorate.settings.tls import TlsSettings

MESSAGE_BYTES_MAX: Final = 8 * 1024 * 1024 + 64 * 1024
CONNECTIONS_MAX: Final = 2048

# Milliseconds. A connection takes three round trips: TCP, TLS, and the first frames of HTTP/2.
# Peers give it half of the request timeout; clients, which do not know that, use this.
CONNECT_MS: Final = 2_000
CONNECT_MIN_MS: Final = 100
KEEPALIVE_MS: Final = 10_000
KEEPALIVE_TIMEOUT_MS: Final = 2_000
# Seconds between two connections to a server that is not the expected one.
RENEW_AFTER_S: Final = 5.0
RECONNECT_MS: Final = 100
RECONNECT_MAX_MS: Final = 200

CHANNEL_OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.initial_reconnect_backoff_ms", RECONNECT_MS),
    ("grpc.max_reconnect_backoff_ms", RECONNECT_MAX_MS),
    ("grpc.dns_min_time_between_resolutions_ms", 500),
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # Channels to one address do not share a connection: closing one must not disturb another.
    ("grpc.use_local_subchannel_pool", 1),
    # Controllers are called directly, as with our own transport: a proxy that `http_proxy` in the
    # environment names is for calls that leave the site.
    ("grpc.enable_http_proxy", 0),
)

SERVER_OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    # Channels ping while they carry no call; a server without this option ends them as
    # too_many_pings.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # This keeps the unread bytes of each of a client's streams few.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.max_concurrent_streams", 1024),
    # Per listener. A silent connection costs 20 KiB, with TLS several times as much.
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
    # Peers hold a Fetch stream; a connection that carries nothing holds a descriptor.
    ("grpc.max_connection_idle_ms", 300_000),
    # A client that connects and sends nothing holds a descriptor for this long.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.server.max_pending_requests", 100_000),
    ("grpc.server.max_pending_requests_hard_limit", 200_000),
)


def target(host: str, port: int) -> str:
    """Return gRPC's target for an address; without a host, all addresses of this machine."""
    if not host:
        return f"[::]:{port}"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def resolved_target(addresses: Sequence[str], port: int) -> str:
    """Return gRPC's target for several IP addresses, which have to be of one family."""
    found = [ipaddress.ip_address(address) for address in addresses]
    if all(address.version == 4 for address in found):
        return "ipv4:" + ",".join(f"{address}:{port}" for address in found)
    mapped = (f"::ffff:{each}" if each.version == 4 else each for each in found)
    return "ipv6:" + ",".join(f"[{address}]:{port}" for address in mapped)


def open_tls(settings: TlsSettings | None) -> TlsFiles | None:
    """Open the certificates that the settings name; None for plaintext. Raises TlsError.

    The certificate reader is loaded only here: it takes 10 MiB of memory and some time.
    """
    if settings is None:
        return None
    from quorate.rpc.security.tls_files import TlsFiles

    return TlsFiles(settings)


def connect_ms(request_timeout_ms: int) -> int:
    """Return the connect timeout between peers with that request timeout, in milliseconds."""
    return max(CONNECT_MIN_MS, request_timeout_ms // 2)


def channel_options(connect_timeout_ms: int) -> tuple[tuple[str, int], ...]:
    """Return the options of a channel with that connect timeout.

    In gRPC the shortest backoff between two attempts is also the time limit of an attempt. A
    refused attempt ends immediately, and the next one follows after a fifth of a second at most.
    """
    return (
        *CHANNEL_OPTIONS,
        ("grpc.min_reconnect_backoff_ms", connect_timeout_ms),
        ("grpc.keepalive_timeout_ms", max(KEEPALIVE_TIMEOUT_MS, connect_timeout_ms)),
    )


@value_type
class ChannelKind:
    """The transport and certificates for a client's channels: plaintext without `tls`."""

    tls: TlsFiles | None = None
    transport: Transport = DEFAULT_TRANSPORT


def open_channel(
    host: str,
    port: int,
    *,
    addresses: Sequence[str] = (),
    tls: TlsFiles | None = None,
    connect_timeout_ms: int = CONNECT_MS,
    transport: Transport = DEFAULT_TRANSPORT,
) -> grpc.aio.Channel:
    """Open a channel that reconnects quickly; plaintext without `tls`.

    With `addresses` grpcio does not resolve the host; our own transport resolves it itself.
    """
    if transport is Transport.H2:
        return _own_channel(host, port, tls, connect_timeout_ms)
    options: list[tuple[str, int | str]] = [*channel_options(connect_timeout_ms)]
    name = target(host, port)
    if addresses:
        # Calls and certificates still name the host.
        options.append(("grpc.default_authority", name))
        if tls is not None:
            options.append(("grpc.ssl_target_name_override", host))
        name = resolved_target(addresses, port)
    spans = _client_spans(host, port)
    if tls is None:
        return grpc.aio.insecure_channel(name, options=options, interceptors=spans)
    credentials = tls.channel_credentials()
    return grpc.aio.secure_channel(name, credentials, options=options, interceptors=spans)


def _own_channel(
    host: str, port: int, tls: TlsFiles | None, connect_timeout_ms: int
) -> grpc.aio.Channel:
    # Loaded only if this transport is chosen.
    from quorate.h2.client.channel import Channel, ChannelTimes

    context = None
    if tls is not None:
        from quorate.rpc.security.ssl_contexts import client_context

        context = client_context(tls)
    times = ChannelTimes(
        connect_s=connect_timeout_ms / 1000,
        backoff_s=RECONNECT_MS / 1000,
        backoff_max_s=RECONNECT_MAX_MS / 1000,
        ping_every_s=KEEPALIVE_MS / 1000,
        ping_patience_s=max(KEEPALIVE_TIMEOUT_MS, connect_timeout_ms) / 1000,
    )
    return Channel(
        host,
        port,
        times=times,
        message_bytes_max=MESSAGE_BYTES_MAX,
        context=context,
        interceptors=_client_spans(host, port),
    )


def _client_spans(host: str, port: int) -> tuple[grpc.aio.UnaryUnaryClientInterceptor, ...]:
    """Create the span interceptor of a channel; empty if tracing is off."""
    active = tracing.active()
    if active is None:
        return ()
    from quorate.rpc.call_spans import ClientSpans

    return (ClientSpans(active, host, port),)


def server_spans() -> tuple[grpc.aio.ServerInterceptor, ...]:
    """Create the span interceptor of a server, to run after authorization."""
    active = tracing.active()
    if active is None:
        return ()
    from quorate.rpc.call_spans import ServerSpans

    return (ServerSpans(active),)


def fetch_spans() -> FetchSpans | None:
    """Create the spans of requests on Fetch streams; None if none is recorded."""
    active = tracing.active()
    if active is None or not active.fetch_ratio:
        return None
    from quorate.rpc.call_spans import FetchSpans

    return FetchSpans(active)


def write_spans() -> StreamedWriteSpans | None:
    """Create the spans of requests on WriteStream; None if none is recorded."""
    active = tracing.active()
    if active is None or not active.write_ratio:
        return None
    from quorate.rpc.call_spans import StreamedWriteSpans

    return StreamedWriteSpans(active)


async def drain(channel: grpc.aio.Channel, grace_s: float) -> None:
    """Close a channel when its last call has ended, at the latest after `grace_s`."""
    try:
        await channel.close(grace_s)
    finally:
        # A cancelled wait ends the calls, too; after a complete wait nothing is left.
        await channel.close()


class ChannelPool:
    """A channel for each address. After a change of the certificates calls get a new channel.

    So do calls to a server that is not the expected one. The old channel is drained: it ends when
    its last call has, at the latest after `drain_s`.
    """

    def __init__(
        self,
        tls: TlsFiles | None = None,
        *,
        drain_s: float,
        transport: Transport = DEFAULT_TRANSPORT,
    ) -> None:
        self._tls = tls
        self._transport = transport
        self._drain_s = drain_s
        self._channels: dict[tuple[str, int], grpc.aio.Channel] = {}
        self._opened_s: dict[tuple[str, int], float] = {}
        self._generation = 0
        self._draining: set[asyncio.Task[None]] = set()

    def get(self, host: str, port: int) -> grpc.aio.Channel:
        """Return the channel for new calls to this address."""
        generation = 0 if self._tls is None else self._tls.current().generation
        if generation != self._generation:
            self._generation = generation
            for channel in self._channels.values():
                self._drain(channel)
            self._channels.clear()
        address = (host, port)
        if address not in self._channels:
            self._channels[address] = open_channel(
                host, port, tls=self._tls, transport=self._transport
            )
            self._opened_s[address] = asyncio.get_running_loop().time()
        return self._channels[address]

    def renew(self, host: str, port: int, *, keeps_address: bool = False) -> None:
        """Let the next call resolve the name again, because it may have moved to another server.

        A channel younger than RENEW_AFTER_S stays. `keeps_address` is for a server that may be the
        right one: its last good address still replaces a failed lookup.
        """
        address, now_s = (host, port), asyncio.get_running_loop().time()
        if is_address(host) or address not in self._channels:
            return
        if now_s - self._opened_s[address] >= RENEW_AFTER_S:
            if not keeps_address:
                RESOLVER.forget(host)
            self._drain(self._channels.pop(address))

    def _drain(self, channel: grpc.aio.Channel) -> None:
        task = asyncio.get_running_loop().create_task(drain(channel, self._drain_s))
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    async def close(self) -> None:
        """End all channels immediately, including those that drain."""
        for task in list(self._draining):
            task.cancel()
        await asyncio.gather(*self._draining, return_exceptions=True)
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()


def make_server(
    interceptors: Sequence[grpc.aio.ServerInterceptor],
    *,
    received_bytes_max: int,
    transport: Transport = DEFAULT_TRANSPORT,
    gate: Gate | None = None,
    connections: Connections | None = None,
) -> grpc.aio.Server:
    """Create a server without services or ports, with a limit on received messages.

    gRPC checks the length prefix of a message; it receives all shorter ones, expected or not. Our
    own transport calls `gate` before it creates anything for a call, and it alone uses
    `connections`.
    """
    if transport is Transport.H2:
        # Loaded only if this transport is chosen.
        from quorate.h2.server.server import Server

        connections = connections or Connections()
        return Server(
            interceptors,
            received_bytes_max=received_bytes_max,
            connections_max=CONNECTIONS_MAX,
            gate=gate,
            preferred=connections.preferred,
            stats=connections.stats,
        )
    options = (*SERVER_OPTIONS, ("grpc.max_receive_message_length", received_bytes_max))
    return grpc.aio.server(options=options, interceptors=interceptors)


def bind(server: grpc.aio.Server, hosts: Hosts, port: int, *, tls: TlsFiles | None = None) -> int:
    """Bind a port, the same on each address, for a server that has not started.

    Plaintext without `tls`. Returns the port. Raises RuntimeError if it cannot be bound.
    """
    for host in each_of(hosts):
        port = _bind_one(server, target(host, port), tls)
    return port


def _bind_one(server: grpc.aio.Server, address: str, tls: TlsFiles | None) -> int:
    if tls is None:
        return server.add_insecure_port(address)
    from quorate.h2.server.server import Server

    if isinstance(server, Server):
        from quorate.rpc.security.ssl_contexts import server_context

        return server.add_port(address, server_context(tls))
    return server.add_secure_port(address, tls.server_credentials())
