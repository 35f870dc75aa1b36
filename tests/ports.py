"""Ports for the servers that tests start."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from itertools import cycle, islice
from random import SystemRandom
from typing import Final

HOST: Final = "127.0.0.1"
# Below the range from which the kernel takes the ports of outgoing connections. Each process in
# which pytest-xdist runs tests (gw0, gw1, ...) takes ports of its own: another one would find a
# port free, too, between the look at it and the server on it, or while the server is down. They
# are one after another, since a quorum lays its ports out from its first one on, and no other
# server takes one of those: a controller may be down, or not have begun to listen.
WORKERS: Final = 8
WORKER: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
EACH: Final = 1_000
FIRST: Final = 15_000 + 2 * WORKER * EACH
PORTS: Final = range(FIRST, FIRST + EACH)
OF_QUORUMS: Final = range(FIRST + EACH, FIRST + 2 * EACH)
# One after the other: a test that asks twice before it listens is not given one port twice.
_TURNS: Final = cycle(SystemRandom().sample(PORTS, EACH))


def free_ports(count: int) -> list[int]:
    """Ports of loopback without listeners that no outgoing connection is given."""
    free: list[int] = []
    for port in islice(_TURNS, EACH):
        with suppress(OSError), socket.create_server((HOST, port)):
            free.append(port)
        if len(free) == count:
            break
    return free
