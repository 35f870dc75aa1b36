"""Access log and metrics of admin calls."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Gauge, Histogram

from quorate.records.escaping import shown
from quorate.rpc.admin.servicer import METHODS, OK
from quorate.telemetry.logs import REPEATS
from quorate.telemetry.metrics import new_registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.rpc.admin.servicer import CallRecord

log = logging.getLogger(__name__)
# From a description to a change that waits for a voter to catch up until the caller's time is over.
DESCRIPTION: Final = "DescribeQuorum"
_BOUNDS_S: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class CallLog:
    """Logs each call with caller, outcome and duration, and counts it."""

    def __init__(
        self,
        node_id: int,
        expires_s: Callable[[], float | None] = lambda: None,
        unread_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`expires_s` returns when the own certificate expires, None without one.

        `unread_s` returns for how many seconds the pod's StatefulSet could not be read.
        """
        self.registry = new_registry()
        self._node_id = str(node_id)
        self._calls = Counter(
            "quorate_admin_calls",
            "Calls that have ended",
            ("node_id", "method", "outcome"),
            registry=self.registry,
        )
        self._durations = Histogram(
            "quorate_admin_call_duration_seconds",
            "One call",
            ("node_id", "method"),
            buckets=_BOUNDS_S,
            registry=self.registry,
        )
        # A rate needs a value from before the first call.
        for method in METHODS:
            self._calls.labels(self._node_id, method, OK)
            self._durations.labels(self._node_id, method)
        unread = Gauge(
            "quorate_admin_statefulset_unread_seconds",
            "For how long it could not read the StatefulSet of its pod; 0 when it could",
            ("node_id",),
            registry=self.registry,
        )
        unread.labels(self._node_id).set_function(unread_s)
        if expires_s() is not None:
            expiry = Gauge(
                "quorate_admin_certificate_expiry_timestamp_seconds",
                "When its own certificate ends; with TLS only",
                ("node_id",),
                registry=self.registry,
            )
            expiry.labels(self._node_id).set_function(lambda: expires_s() or 0.0)

    def record(self, call: CallRecord) -> None:
        """Record a call that has ended."""
        self._calls.labels(self._node_id, call.method, call.outcome).inc()
        self._durations.labels(self._node_id, call.method).observe(call.duration_s)
        is_done = call.outcome == OK
        # Every completed change is logged; rejected calls may come at any rate.
        is_change = is_done and call.method != DESCRIPTION
        key = None if is_change else (call.method, call.outcome, shown(call.principal))
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
                REPEATS: key,
            },
        )
