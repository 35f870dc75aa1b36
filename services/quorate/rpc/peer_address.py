"""Parses the peer address of a call as gRPC reports it.

The formats are `ipv4:127.0.0.1:4711`, and IPv6 in escaped brackets.
"""

from __future__ import annotations

from urllib.parse import unquote


def address_of(peer: str) -> tuple[str, int] | None:
    """Return the IP address in its usual form, and the port; None for other kinds of peers."""
    family, _, rest = unquote(peer).partition(":")
    host, _, port = rest.rpartition(":")
    if family not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    return host.removeprefix("[").removesuffix("]"), int(port)
