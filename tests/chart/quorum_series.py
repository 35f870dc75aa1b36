"""Series of a healthy quorum over some hours, and of what may happen to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from tests.chart.monitoring import NAMESPACE, STATEFUL_SET
from tests.promql import Samples, labels_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.promql import Labels

EVERY_S: Final = 60
# Longer than the longest range of a rule.
END_S: Final = 11_400
DAY_S: Final = 86_400
COMMIT_BOUNDS: Final = ("0.1", "0.5", "1", "+Inf")

Series: TypeAlias = "dict[tuple[str, Labels], Callable[[float], float]]"


def constant(value: float) -> Callable[[float], float]:
    return lambda _: value


def growing(a_second: float) -> Callable[[float], float]:
    return lambda t: a_second * t


def late(value: float, before: float = 0.0, within_s: float = 300.0) -> Callable[[float], float]:
    """`value` for the last minutes only."""
    return lambda t: value if t >= END_S - within_s else before


def during(value: float, usual: float, begin_s: float, end_s: float) -> Callable[[float], float]:
    """`value` between two moments, both included."""
    return lambda t: value if begin_s <= t <= end_s else usual


def controller(pod: int, **more: str) -> Labels:
    return labels_of(
        {"namespace": NAMESPACE, "pod": f"{STATEFUL_SET}-{pod}", "node_id": str(pod), **more}
    )


def operator(suffix: str = "7d9f", **more: str) -> Labels:
    pod = f"{STATEFUL_SET}-autojoin-{suffix}"
    return labels_of({"namespace": NAMESPACE, "pod": pod, "statefulset": STATEFUL_SET, **more})


def healthy() -> Series:
    """Three controllers of which 0 leads, their sidecars, and an operator with nothing to do."""
    series: Series = {}
    for pod in range(3):
        same: dict[str, Callable[[float], float]] = {
            "current_epoch": constant(4),
            "number_of_voters": constant(3),
            "is_ready": constant(1),
            "active_controller": constant(pod == 0),
            "leader_contradictions_total": constant(0),
            "high_watermark": growing(10),
            "last_applied_record_offset": growing(10),
            "log_end_offset": growing(10),
            "metadata_log_lag": constant(0),
            "last_applied_record_lag_seconds": constant(0),
            "flush_p99_seconds": constant(0.002),
            "disk_call_age_seconds": constant(0),
            "disk_free_bytes": constant(1e10),
            "snapshot_generation_duration_seconds_sum": growing(1 / 600),
            "snapshot_generation_duration_seconds_count": growing(1 / 1200),
            "event_loop_stalls_total": constant(1),
            "poll_idle_ratio": constant(0.8),
            "metadata_errors_total": constant(0),
            "offline_partitions": constant(0),
            "certificate_expiry_timestamp_seconds": constant(90 * DAY_S),
            "admin_certificate_expiry_timestamp_seconds": constant(90 * DAY_S),
            "admin_statefulset_unread_seconds": constant(0),
        }
        series |= {(f"quorate_{name}", controller(pod)): value for name, value in same.items()}
    for name in ("number_of_offline_voters", "uncommitted_voter_change"):
        series[f"quorate_{name}", controller(0)] = constant(0)
    won = {"cause": "startup"}
    series |= at(0, "last_election_won_timestamp_seconds", constant(600), **won)
    series |= commits((0.9, 1.0, 1.0, 1.0))
    series["quorate_autojoin_last_pass_timestamp_seconds", operator()] = lambda t: t - 5
    # A backup was made at the beginning, and the schedule long before.
    series |= of_backups("status_last_successful_time", 0) | of_backups("created", -DAY_S * 10)
    for reason in ("InStep", "ObserverLags", "Paused"):
        labels = operator(reason=reason)
        series["quorate_autojoin_waiting", labels] = constant(reason == "InStep")
    return series


def commits(parts: tuple[float, ...]) -> Series:
    """Commits of the leader, and which part of them is not above each bound."""
    name = "quorate_commit_latency_seconds_bucket"
    return {
        (name, controller(0, le=bound)): growing(100 * part)
        for bound, part in zip(COMMIT_BOUNDS, parts, strict=True)
    }


def at(pod: int, name: str, value: Callable[[float], float], **more: str) -> Series:
    return {(f"quorate_{name}", controller(pod, **more)): value}


def of_operator(name: str, value: Callable[[float], float], **more: str) -> Series:
    return {(f"quorate_autojoin_{name}", operator(**more)): value}


def of_backups(name: str, at_s: float) -> Series:
    """A time of the schedule that kube-state-metrics reports."""
    labels = {"namespace": NAMESPACE, "cronjob": f"{STATEFUL_SET}-backup"}
    return {(f"kube_cronjob_{name}", labels_of(labels)): constant(at_s)}


def points(series: Series) -> dict[tuple[str, Labels], list[float]]:
    """Integers where they are, so that both evaluations calculate with the same numbers."""
    times = range(0, END_S + 1, EVERY_S)
    return {key: [float(value(t)) for t in times] for key, value in series.items()}


def samples_of(series: Series) -> Samples:
    samples = Samples()
    for (name, labels), values in points(series).items():
        for number, value in enumerate(values):
            samples.add(number * EVERY_S, name, dict(labels), value)
    return samples
