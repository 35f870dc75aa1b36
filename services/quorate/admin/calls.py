"""What is kept of the calls: a line in the log for each, and counters for a scrape."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter

from quorate.rpc.admin_server import OK

if TYPE_CHECKING:
    from quorate.rpc.admin_server import CallRecord

log = logging.getLogger(__name__)
_LABELS: Final = ("method", "outcome")


class CallLog:
    """Who asked for what, what came of it, and how long it took."""

    def __init__(self, node_id: int) -> None:
        self.registry = CollectorRegistry()
        labels = ("node_id", *_LABELS)
        self._node_id = str(node_id)
        self._calls = Counter(
            "quorate_admin_calls", "Calls of the admin API", labels, registry=self.registry
        )
        self._seconds = Counter(
            "quorate_admin_call_seconds",
            "How long they took together",
            labels,
            registry=self.registry,
        )

    def record(self, call: CallRecord) -> None:
        """One call has ended."""
        labels = (self._node_id, call.method, call.outcome)
        self._calls.labels(*labels).inc()
        self._seconds.labels(*labels).inc(call.duration_s)
        is_done = call.outcome == OK
        log.log(
            logging.INFO if is_done else logging.WARNING,
            f"{call.method}: {'done' if is_done else call.message}",
            extra={
                "method": call.method,
                "principal": call.principal,
                "host": call.host,
                "request": call.request,
                "outcome": call.outcome,
                "duration_ms": int(call.duration_s * 1000),
            },
        )
