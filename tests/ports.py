"""Ports for the servers that tests start."""

from __future__ import annotations

import socket
from contextlib import suppress
from random import SystemRandom
from typing import Final

HOST: Final = "127.0.0.1"
# Below the range from which the kernel takes the ports of outgoing connections.
PORTS: Final = range(15_000, 31_000)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on, and that no outgoing connection is given."""
    free: list[int] = []
    for port in SystemRandom().sample(PORTS, len(PORTS)):
        with suppress(OSError), socket.create_server((HOST, port)):
            free.append(port)
        if len(free) == count:
            break
    return free
