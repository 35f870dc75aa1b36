"""One PySyncObj process, as a comparison: it flushes like Quorate, and the leader makes the load.

    python -m tests.bench.pysyncobj_node SELF PARTNER,PARTNER JOURNAL CONTROL_PORT TICK_MS

The library never flushes its journal. Here a follower flushes before it acknowledges and a leader
at the end of its tick, so that what counts as committed is on a majority of disks. The library has
no calls for clients either: a line on the control port starts the load inside the leader's process.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections import deque
from typing import Any, Final

from pysyncobj import SyncObj, SyncObjConf, replicated

RECORD: Final = b"x" * 100
_LATENCIES_MAX: Final = 1000


class DurableLog(SyncObj):  # type: ignore[misc]
    """Counts what is appended; the records themselves stay in the journal."""

    def __init__(self, own: str, partners: list[str], journal: str, tick_s: float) -> None:
        self.count = 0
        config = SyncObjConf(
            autoTick=False,
            journalFile=journal,
            appendEntriesPeriod=tick_s,
            appendEntriesUseBatch=True,
            logCompactionMinEntries=1 << 40,
            logCompactionMinTime=1 << 40,
        )
        super().__init__(own, partners, conf=config)
        self._tick_s = tick_s
        self._file = os.open(journal, os.O_RDWR)

    @replicated  # type: ignore[untyped-decorator]
    def append(self, data: bytes) -> None:
        del data
        self.count += 1

    def tick(self) -> None:
        """One turn of the library's loop; a leader's records are durable when it is over."""
        before = self._SyncObj__raftLog[-1][1]
        self.doTick(self._tick_s)
        if self._SyncObj__raftLog[-1][1] != before and self._isLeader():
            os.fdatasync(self._file)

    def _SyncObj__sendNextNodeIdx(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
        """Make a follower's entries durable before it acknowledges them."""
        os.fdatasync(self._file)
        self._acknowledge(*arguments, **named)


DurableLog._acknowledge = SyncObj._SyncObj__sendNextNodeIdx


class Load:
    """Keeps `in_flight` appends in flight: when one is applied, the next one starts."""

    def __init__(self, log: DurableLog, in_flight: int, duration_s: float) -> None:
        self._log = log
        self._open: deque[float] = deque()
        self._latencies: list[float] = []
        self._began = time.perf_counter()
        self._deadline = self._began + duration_s
        for _ in range(in_flight):
            self._append()

    def _append(self) -> None:
        self._open.append(time.perf_counter())
        self._log.append(RECORD, callback=self._applied)

    def _applied(self, _result: object, error: object) -> None:
        assert not error, f"an append has failed: {error}"
        now = time.perf_counter()
        self._latencies.append(now - self._open.popleft())
        if now < self._deadline:
            self._append()

    def run(self) -> dict[str, Any]:
        """The result, once nothing is in flight any more."""
        while self._open:
            self._log.tick()
        latencies = sorted(int(latency * 1e6) for latency in self._latencies)
        return {
            "appends": len(latencies),
            "elapsed_us": int((time.perf_counter() - self._began) * 1e6),
            "latencies_us": latencies[:: max(1, len(latencies) // _LATENCIES_MAX)],
        }


def main() -> None:
    """Serve until killed."""
    own, partners, journal, port, tick_ms = sys.argv[1:]
    log = DurableLog(own, partners.split(","), journal, float(tick_ms) / 1000)
    with socket.create_server(("127.0.0.1", int(port))) as server:
        server.settimeout(0)
        while True:
            log.tick()
            try:
                connection, _ = server.accept()
            except BlockingIOError:
                continue
            with connection, connection.makefile("rw") as control:
                connection.settimeout(None)
                asked = json.loads(control.readline())
                answer: dict[str, Any] = {"leads": bool(log._isLeader())}
                if answer["leads"] and asked["in_flight"]:
                    answer |= Load(log, asked["in_flight"], asked["duration_s"]).run()
                control.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
