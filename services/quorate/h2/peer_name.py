"""Names of peers in gRPC's format, and the client to which all limits attribute a peer.

A client is an IPv4 address, or an IPv6 network of 64 bits: one host usually has such a network of
its own, and could otherwise open each connection from another address.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address
from typing import Any, Final
from urllib.parse import unquote

# Clients whose network is cached: each call asks for it.
_CACHED_MAX: Final = 1024
_PREFIX_BITS: Final = 64
_HOST_BITS: Final = 128 - _PREFIX_BITS


def peer_of(address: tuple[Any, ...] | None) -> str:
    """Return the name for a socket's address: IPv6 in escaped brackets, mapped IPv4 as IPv4."""
    if not address:
        return "unknown:"
    host, port = str(address[0]), address[1]
    host = host.removeprefix("::ffff:") if "." in host else host
    return f"ipv6:%5B{host}%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"


def client_of(peer: str) -> str:
    """Return the client of a peer: `ipv4:10.0.0.1`, or `ipv6:2001:db8:0:1::/64`.

    `peer` is its name in gRPC. All limits for one client, and its turns, use this name.
    """
    if peer.startswith("ipv4:"):
        return peer.rpartition(":")[0]
    if peer.startswith("ipv6:"):
        return _network_of(peer.rpartition(":")[0])
    return peer


@lru_cache(maxsize=_CACHED_MAX)
def _network_of(name: str) -> str:
    """Return the client for an IPv6 name without its port; the name itself if it is malformed."""
    host = unquote(name.removeprefix("ipv6:")).removeprefix("[").removesuffix("]")
    try:
        address = IPv6Address(host)
    except ValueError:
        return name
    if address.ipv4_mapped is not None:
        return f"ipv4:{address.ipv4_mapped}"
    network = IPv6Address(int(address) >> _HOST_BITS << _HOST_BITS)
    return f"ipv6:{network}/{_PREFIX_BITS}"
