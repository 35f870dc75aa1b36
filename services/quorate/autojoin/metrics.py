"""Prometheus metrics of the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Gauge, Histogram

from quorate.autojoin.actions import Wait, WaitReason
from quorate.telemetry.metrics import new_registry

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from quorate.autojoin.reconciler import Reconciliation

# From an observation without action to an action that waits for a voter to catch up.
PASS_BOUNDS_S: Final = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
OUTCOMES: Final = ("done", "refused", "failed")


class Meters:
    """Counters and gauges of one operator. Label values come from fixed lists."""

    def __init__(self, stateful_set: str, now_s: float) -> None:
        """`now_s` is used as the time of the last pass until there is one, so a hang shows."""
        self.registry = new_registry()
        self._name = stateful_set
        labels = ("statefulset",)
        prefix = "quorate_autojoin_"
        registry = self.registry
        self._passes = Counter(
            f"{prefix}passes", "Passes by how they ended", (*labels, "outcome"), registry=registry
        )
        self._actions = Counter(
            f"{prefix}actions",
            "Actions by what, why and how they ended",
            (*labels, "action", "cause", "outcome"),
            registry=registry,
        )
        self._waiting = Gauge(
            f"{prefix}waiting",
            "1 for each reason to wait that the last pass had",
            (*labels, "reason"),
            registry=registry,
        )
        self._desired = Gauge(
            f"{prefix}desired_replicas", "Replicas that are wanted", labels, registry=registry
        )
        self._voters = Gauge(
            f"{prefix}voters", "Voters in the leader's set", labels, registry=registry
        )
        self._holds = Gauge(
            f"{prefix}lease_held", "1 while this operator may act", labels, registry=registry
        )
        self._last = Gauge(
            f"{prefix}last_pass_timestamp_seconds",
            "When the last pass ended; before the first, when the operator began",
            labels,
            registry=registry,
        )
        self._durations = Histogram(
            f"{prefix}pass_duration_seconds",
            "One pass, its action included",
            labels,
            buckets=PASS_BOUNDS_S,
            registry=registry,
        )
        for reason in WaitReason:
            self._waiting.labels(stateful_set, reason.value).set(0)
        for outcome in OUTCOMES:
            self._passes.labels(stateful_set, outcome)
        self._durations.labels(stateful_set)
        self._last.labels(stateful_set).set(now_s)
        self.lease(held=False)

    def time_pass(self) -> AbstractContextManager[object]:
        """Time the pass within, also if it fails."""
        return self._durations.labels(self._name).time()

    def lease(self, *, held: bool) -> None:
        """Record if this operator holds the Lease, and clear the gauges of a standby."""
        self._holds.labels(self._name).set(held)
        if not held:
            for reason in WaitReason:
                self._waiting.labels(self._name, reason.value).set(0)
            self._desired.clear()
            self._voters.clear()

    def failed(self) -> None:
        """Record a pass that failed."""
        self._passes.labels(self._name, "failed").inc()

    def passed(self, done: Reconciliation, now_s: float) -> None:
        """Record a completed pass."""
        self._passes.labels(self._name, "done" if done.error is None else "refused").inc()
        self._last.labels(self._name).set(now_s)
        if done.desired is not None:
            self._desired.labels(self._name).set(done.desired.replicas)
        if done.seen is not None and done.seen.quorum is not None:
            self._voters.labels(self._name).set(len(done.seen.quorum.voters))
        waits = () if done.decision is None else done.decision.waits
        reasons = {each.why for each in waits}
        for reason in WaitReason:
            self._waiting.labels(self._name, reason.value).set(reason in reasons)
        step = None if done.decision is None else done.decision.step
        if step is not None and not isinstance(step, Wait):
            outcome = "done" if done.error is None else "failed"
            labels = (type(step).__name__, step.cause.value, outcome)
            self._actions.labels(self._name, *labels).inc()
