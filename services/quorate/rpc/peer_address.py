"""Addresses in gRPC's names of peers: `ipv4:127.0.0.1:4711`, IPv6 in escaped brackets."""

from __future__ import annotations

from urllib.parse import unquote


def address_of(peer: str) -> tuple[str, int] | None:
    """Its IP address as people write it, and its port; None for what has none."""
    family, _, rest = unquote(peer).partition(":")
    host, _, port = rest.rpartition(":")
    if family not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    return host.removeprefix("[").removesuffix("]"), int(port)
