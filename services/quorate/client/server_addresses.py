"""Parses and formats `HOST:PORT` lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.rpc.channels import target
from quorate.settings.integers import is_whole_number
from quorate.settings.properties import PORT_MAX, host_in

if TYPE_CHECKING:
    from quorate.client.controller_calls import Address


def parse_server(text: str) -> Address:
    """Parse `HOST:PORT`, an IPv6 host in brackets. Raises ValueError with the reason."""
    before, _, port = text.strip().rpartition(":")
    host = host_in(before)
    if host is None:
        raise ValueError(f"{text!r} is no HOST:PORT")
    if not is_whole_number(port, minimum=1, maximum=PORT_MAX):
        raise ValueError(f"{text!r}: the port must be a number from 1 to {PORT_MAX}")
    return host, int(port)


def parse_servers(text: str) -> list[Address]:
    """Parse `HOST:PORT[,HOST:PORT...]`. Raises ValueError that names the part at fault."""
    return [parse_server(part) for part in text.split(",")]


def format_server(server: Address) -> str:
    """Format a server as `HOST:PORT`, as `parse_server` reads it."""
    return target(*server)
