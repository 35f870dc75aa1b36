"""A well-behaved client: twenty writes a second on one connection, each with its latency.

Writes are due at fixed times, whether earlier ones were answered or not, and a latency runs from
the time at which the write was due. A write without an answer counts with the time that it
has waited.
"""

from __future__ import annotations

import select
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.records.errors import ErrorCode
from quorate.rpc.gen.controller.v1 import controller_pb2
from tests.bench import payloads
from tests.bench.commit_load import percentile
from tests.bench.http2_client import Connection, header_block, message

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench.quorate_cluster import QuorateMembers

WRITES_PER_S: Final = 20
_PERIOD_S: Final = 1 / WRITES_PER_S
_WAIT_S: Final = 0.01
_RECONNECT_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Service:
    """The service that a neighbour got. The gap is the longest time without a commit."""

    committed: int
    refused: int
    p50_ms: float
    max_ms: float
    gap_ms: float


class Neighbour:
    """Writes settings of one topic to the leader, and follows it."""

    def __init__(self, members: QuorateMembers, leader: int, topic: str) -> None:
        self._members = members
        self._member = leader
        self._make = payloads.config_writes([topic])
        self._connection: Connection | None = None
        self._quiet_until_s = 0.0
        self._told: int | None = None
        # When each write was due, by stream.
        self._due_s: dict[int, float] = {}
        self._clear()

    def _clear(self) -> None:
        self._latencies_s: list[float] = []
        self._refused = 0
        self._committed_s = self._begun_s = time.monotonic()
        self._gap_s = 0.0

    def run(self, is_over: Callable[[], bool]) -> Service:
        """Write until it is over."""
        self._clear()
        next_s = self._begun_s
        while not is_over():
            now_s = time.monotonic()
            if now_s >= next_s:
                self._write(next_s)
                next_s += _PERIOD_S
            self._receive(max(0.0, min(next_s - time.monotonic(), _WAIT_S)))
        return self._service()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _service(self) -> Service:
        now_s = time.monotonic()
        committed = len(self._latencies_s)
        waiting = [now_s - due_s for due_s in self._due_s.values()]
        latencies_us = sorted(int(s * 1e6) for s in (*self._latencies_s, *waiting)) or [0]
        return Service(
            committed=committed,
            refused=self._refused,
            p50_ms=percentile(latencies_us, 0.5) / 1000,
            max_ms=latencies_us[-1] / 1000,
            gap_ms=max(self._gap_s, now_s - self._committed_s) * 1000,
        )

    def _write(self, due_s: float) -> None:
        connection = self._connect()
        if connection is None:
            self._refused += 1
            return
        block = header_block(payloads.WRITE_ONCE_PATH, connection.authority)
        try:
            stream = connection.begin(block)
            self._due_s[stream] = due_s
            connection.send(stream, message(self._make(1)), is_last=True)
            connection.flush()
        except OSError:
            self._lose()

    def _connect(self) -> Connection | None:
        if self._connection is None and time.monotonic() >= self._quiet_until_s:
            with suppress(OSError):
                self._connection = Connection(*self._members.address(self._member))
                self._connection.calls = self
        return self._connection

    def _lose(self) -> None:
        """The connection has ended: writes in flight are lost, another controller is asked."""
        self._quiet_until_s = time.monotonic() + _RECONNECT_S
        self._turn_to((self._member + 1) % self._members.count)

    def _turn_to(self, member: int) -> None:
        self._refused += len(self._due_s)
        self._due_s.clear()
        self.close()
        self._member = member

    def _receive(self, wait_s: float) -> None:
        connection = self._connection
        if connection is None:
            time.sleep(wait_s)
            return
        if not select.select([connection.socket], [], [], wait_s)[0]:
            return
        try:
            connection.receive()
            connection.flush()
        except OSError:
            self._lose()
        if self._told not in (None, self._member):
            self._turn_to(self._told)
        self._told = None

    # --- calls of the connection ------------------------------------------------------------------

    def received(self, stream_id: int, data: bytes) -> None:
        """An answer, which is one frame."""
        response = controller_pb2.WriteResponse.FromString(data[5:])
        result = response.results[0]
        altered = result.incremental_alter_configs.resources
        if result.error == 0 and all(resource.error == 0 for resource in altered):
            now_s = time.monotonic()
            self._latencies_s.append(now_s - self._due_s.pop(stream_id))
            self._gap_s = max(self._gap_s, now_s - self._committed_s)
            self._committed_s = now_s
        elif result.error == ErrorCode.NOT_CONTROLLER and result.leader.HasField("id"):
            self._told = result.leader.id - 1

    def ended(self, stream_id: int, *, had_data: bool) -> None:
        """A write that was not committed has been refused."""
        if self._due_s.pop(stream_id, None) is not None:
            self._refused += 1
