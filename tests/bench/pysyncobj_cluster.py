"""PySyncObj, where its package is installed: a Raft library in Python, made durable by a patch."""

from __future__ import annotations

import importlib.util
import json
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.bench.commit_load import ROUND_S, Point, Result, Subject, percentile
from tests.bench.processes import Members
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.http2_client import Load


def is_there() -> bool:
    """True if PySyncObj can be measured here."""
    return importlib.util.find_spec("pysyncobj") is not None


class PySyncObjMembers(Members):
    """Three processes; the load runs inside the one that leads."""

    name = "pysyncobj"

    def __init__(self, root: Path, count: int = 3, tick_ms: float = 1.0) -> None:
        super().__init__(root, count)
        ports = free_ports(2 * count)
        self._own, self._control = ports[:count], ports[count:]
        self._tick_ms = tick_ms

    def command(self, member: int) -> list[str]:
        addresses = [f"{HOST}:{port}" for port in self._own]
        partners = ",".join(one for i, one in enumerate(addresses) if i != member)
        journal = str(self.root / f"{self.name}-{member}.journal")
        arguments = [addresses[member], partners, journal, str(self._control[member])]
        return [sys.executable, "-m", "tests.bench.pysyncobj_node", *arguments, str(self._tick_ms)]

    def address(self, member: int) -> tuple[str, int]:
        return HOST, self._control[member]

    def find_leader(self) -> int | None:
        for member in range(self.count):
            with suppress(OSError):
                if self.ask(member, in_flight=0, duration_s=0)["leads"]:
                    return member
        return None

    def ask(self, member: int, *, in_flight: int, duration_s: float) -> dict[str, Any]:
        """Have a load run in a member; what it says of it."""
        timeout_s = duration_s + 30
        with (
            socket.create_connection(self.address(member), timeout=timeout_s) as connection,
            connection.makefile("rw") as control,
        ):
            control.write(json.dumps({"in_flight": in_flight, "duration_s": duration_s}) + "\n")
            control.flush()
            answer: dict[str, Any] = json.loads(control.readline())
            return answer


class PySyncObjSubject(Subject):
    """Appends of a hundred bytes, from inside."""

    members: PySyncObjMembers

    def open(self, point: Point, leader: int) -> Load:
        raise TypeError("PySyncObj takes no calls of clients")

    def measure(self, point: Point) -> Result:
        leader = self.members.leader()
        cpu = self.members.cpu_s()
        answer = self.members.ask(leader, in_flight=point.in_flight, duration_s=ROUND_S)
        cpu = self.members.cpu_s() - cpu
        latencies = answer["latencies_us"]
        return Result(
            percentile(latencies, 0.5),
            percentile(latencies, 0.99),
            answer["appends"] * 1e6 / answer["elapsed_us"],
            cpu * 1e6 / answer["appends"],
        )
