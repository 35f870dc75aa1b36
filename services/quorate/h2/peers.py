"""The name of a peer, as gRPC writes it."""

from __future__ import annotations

from typing import Any


def peer_of(address: tuple[Any, ...] | None) -> str:
    """The name for a socket's address: IPv6 in escaped brackets, mapped IPv4 as IPv4."""
    if not address:
        return "unknown:"
    host, port = str(address[0]), address[1]
    host = host.removeprefix("::ffff:") if "." in host else host
    return f"ipv6:%5B{host}%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"


def client_of(peer: str) -> str:
    """The name without the port, which all connections of one address share."""
    return peer.rpartition(":")[0]
