"""Servers as people write them: `HOST:PORT`, separated by commas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from quorate.rpc.channels import target
from quorate.settings.numbers import is_whole_number
from quorate.settings.properties import PORT_MAX

if TYPE_CHECKING:
    from quorate.client.calls import Address

# No blank, and none of what stands around a host in a URL.
_HOST: Final = re.compile(r"[^\s/\[\]@,]+")


def parse_server(text: str) -> Address:
    """`HOST:PORT`, the host of IPv6 in brackets. Raises ValueError that says what is wrong."""
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not colon or _HOST.fullmatch(host) is None:
        raise ValueError(f"{text!r} is no HOST:PORT")
    if not is_whole_number(port, minimum=1, maximum=PORT_MAX):
        raise ValueError(f"{text!r}: the port must be a number from 1 to {PORT_MAX}")
    return host, int(port)


def parse_servers(text: str) -> list[Address]:
    """`HOST:PORT[,HOST:PORT...]`. Raises ValueError that names the part at fault."""
    return [parse_server(part) for part in text.split(",")]


def format_server(server: Address) -> str:
    """`HOST:PORT` as `parse_server` reads it."""
    return target(*server)
