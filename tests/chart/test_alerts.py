"""Each alert fires for what it is about, and for nothing else; a healthy quorum is silent."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.chart.monitoring import Rule, rules_of
from tests.chart.quorum_series import (
    DAY_S,
    END_S,
    EVERY_S,
    Series,
    at,
    commits,
    constant,
    during,
    growing,
    healthy,
    late,
    of_backups,
    of_operator,
    operator,
    points,
    samples_of,
)
from tests.promql import Samples

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chart.rendering import Helm
    from tests.promql import Labels

# What is otherwise than in a healthy quorum, and all alerts that fire then.
CASES: Final[dict[str, tuple[Series, set[str]]]] = {
    "healthy": ({}, set()),
    "no leader": (at(0, "active_controller", late(0, 1, 120)), {"QuorateNoActiveController"}),
    "no leader for long": (
        at(0, "active_controller", late(0, 1, 900))
        | {
            key: each
            for pod in range(3)
            for key, each in at(
                pod, "last_applied_record_lag_seconds", lambda t: max(0, t - END_S + 900)
            ).items()
        },
        {"QuorateNoActiveController"},
    ),
    "a short election": (at(0, "active_controller", late(0, 1, 20)), set()),
    "two leaders": (
        at(1, "active_controller", late(1)),
        {"QuorateSeveralActiveControllers"},
    ),
    "one of three lost": (
        at(0, "number_of_offline_voters", late(1)),
        {"QuorateVoterMissing", "QuorateMajorityAtRisk"},
    ),
    "one of five lost": (
        at(0, "number_of_offline_voters", late(1)) | at(0, "number_of_voters", constant(5)),
        {"QuorateVoterMissing"},
    ),
    "a pod that restarts": (at(0, "number_of_offline_voters", late(1, 0, 90)), set()),
    "one of two voters": (
        at(0, "number_of_offline_voters", late(1))
        | {
            key: each
            for pod in range(3)
            for key, each in at(pod, "number_of_voters", constant(2)).items()
        },
        {"QuorateVoterMissing"},
    ),
    "not ready": (at(2, "is_ready", late(0, 1)), {"QuorateControllerNotReady"}),
    "many elections": (
        at(1, "current_epoch", lambda t: 4 + t // 300),
        {"QuorateElectionsTooFrequent", "QuorateElectionsRepeated"},
    ),
    "an election": (at(1, "current_epoch", late(5, 4)), set()),
    "two elections within an hour": (
        at(1, "current_epoch", lambda t: 4 + (t > END_S - 3000) + (t > END_S - 600)),
        {"QuorateElectionsRepeated"},
    ),
    "a controller that joins in a late epoch": (at(2, "current_epoch", late(40)), set()),
    "a contradiction": (
        at(2, "leader_contradictions_total", late(1)),
        {"QuorateLeaderContradiction"},
    ),
    "far behind": (
        at(2, "last_applied_record_offset", lambda t: min(10 * t, 10 * (END_S - 1500))),
        {"QuorateControllerBehind"},
    ),
    "a thousand records behind": (at(2, "metadata_log_lag", late(1000)), set()),
    "more than a thousand records behind": (
        at(2, "metadata_log_lag", late(1001)),
        {"QuorateControllerBehind"},
    ),
    "a controller without a leader": (
        at(2, "last_applied_record_lag_seconds", lambda t: max(0, t - END_S + 400)),
        {"QuorateControllerBehind"},
    ),
    "a controller that has just lost its leader": (
        at(2, "last_applied_record_lag_seconds", lambda t: max(0, t - END_S + 300)),
        set(),
    ),
    "a scrape that is later than another": (
        at(2, "last_applied_record_offset", lambda t: 10 * t - 9000),
        set(),
    ),
    "a change that is stuck": (
        at(0, "uncommitted_voter_change", late(1)),
        {"QuorateVoterChangeStuck"},
    ),
    "slow commits": (commits((0.9, 0.95, 1.0, 1.0)), {"QuorateCommitsSlow"}),
    "a slow disk": (at(1, "flush_p99_seconds", late(0.6)), {"QuorateDiskSlow"}),
    "a disk that hangs": (at(1, "disk_call_age_seconds", late(5, 0, 60)), {"QuorateDiskHangs"}),
    "a full disk": (at(1, "disk_free_bytes", late(2e8, 1e10)), {"QuorateDiskFull"}),
    "snapshots that take nearly as long": (
        at(1, "snapshot_generation_duration_seconds_sum", growing(9.9 / 1200)),
        set(),
    ),
    "slow snapshots": (
        at(1, "snapshot_generation_duration_seconds_sum", growing(12 / 1200)),
        {"QuorateSnapshotsSlow"},
    ),
    "stalls": (
        at(1, "event_loop_stalls_total", lambda t: 1 + max(0, t - END_S + 300) // 60),
        {"QuorateEventLoopStalls"},
    ),
    "a busy loop": (at(0, "poll_idle_ratio", late(0.05, 0.8, 900)), {"QuorateEventLoopBusy"}),
    "defects": (at(0, "metadata_errors_total", late(1)), {"QuorateMetadataErrors"}),
    "brokers lost": (at(0, "offline_partitions", late(7)), {"QuorateOfflinePartitions"}),
    "a certificate": (
        at(1, "certificate_expiry_timestamp_seconds", constant(6 * DAY_S)),
        {"QuorateCertificateExpires"},
    ),
    "a sidecar's certificate": (
        at(1, "admin_certificate_expiry_timestamp_seconds", constant(6 * DAY_S)),
        {"QuorateCertificateExpires"},
    ),
    "a StatefulSet that cannot be read": (
        at(1, "admin_statefulset_unread_seconds", late(200)),
        {"QuorateStatefulSetUnread"},
    ),
    "an API server that restarts": (
        at(1, "admin_statefulset_unread_seconds", late(50, 0, 120)),
        set(),
    ),
    "a backup of the day before yesterday": (
        of_backups("status_last_successful_time", -DAY_S * 1.3),
        {"QuorateBackupOld"},
    ),
    "a backup of last night": (of_backups("status_last_successful_time", -DAY_S), set()),
    "an operator that stands": (
        of_operator("last_pass_timestamp_seconds", lambda t: min(t, END_S - 660)),
        {"QuorateOperatorStalled"},
    ),
    "an operator that waits": (
        of_operator("waiting", late(1, 0, 1800), reason="ObserverLags"),
        {"QuorateOperatorWaits"},
    ),
    "an operator of a quorum that is scaled to zero": (
        of_operator("waiting", constant(1), reason="NoReplicas"),
        set(),
    ),
    "an operator that stands by": (
        {
            # When it acted last.
            ("quorate_autojoin_last_pass_timestamp_seconds", operator("b2c4")): constant(600),
            ("quorate_autojoin_waiting", operator("b2c4", reason="InStep")): constant(0),
        },
        set(),
    ),
    "an operator that is paused": (of_operator("waiting", constant(1), reason="Paused"), set()),
}


# Of the numbers that KRaft is usually watched by: what happens, the alert that fires for it, and
# when it does; at the end of the time all of it is over.
PASSING: Final[dict[str, tuple[Series, str, float]]] = {
    "ActiveControllerCount 0": (
        at(0, "active_controller", during(0, 1, 3000, 3120)),
        "QuorateNoActiveController",
        3120,
    ),
    "ActiveControllerCount 2": (
        at(1, "active_controller", during(1, 0, 3000, 3120)),
        "QuorateSeveralActiveControllers",
        3120,
    ),
    "LeaderElectionRate": (
        at(0, "current_epoch", lambda t: 4 + (t >= 3000) + (t >= 3600)),
        "QuorateElectionsRepeated",
        3600,
    ),
    "LeaderElectionRate of a quorum that finds no rest": (
        at(0, "current_epoch", lambda t: 4 + min(max(0, t - 3000) // 240, 6)),
        "QuorateElectionsTooFrequent",
        4560,
    ),
    "MetadataLogLag": (
        at(2, "metadata_log_lag", during(1001, 0, 3000, 3600)),
        "QuorateControllerBehind",
        3300,
    ),
    "MetadataLogLag of one that hears no leader": (
        at(2, "last_applied_record_offset", lambda t: 10 * (t if t > 4500 else min(t, 3000))),
        "QuorateControllerBehind",
        4500,
    ),
    "LastAppliedRecordLag of one that hears no leader": (
        at(2, "last_applied_record_lag_seconds", lambda t: t - 3000 if 3000 < t < 3600 else 0.0),
        "QuorateControllerBehind",
        3420,
    ),
    "SnapshotGenerationTime": (
        at(1, "snapshot_generation_duration_seconds_sum", lambda t: min(t, 600) / 60 + t / 600),
        "QuorateSnapshotsSlow",
        600,
    ),
    "MetadataErrorCount": (
        at(0, "metadata_errors_total", lambda t: float(t >= 3000)),
        "QuorateMetadataErrors",
        3060,
    ),
}


@pytest.fixture(scope="module")
def rules(helm: Helm) -> list[Rule]:
    return rules_of(helm)


@pytest.mark.parametrize("case", CASES)
def test_an_alert_fires_for_what_it_is_about(rules: list[Rule], case: str) -> None:
    otherwise, expected = CASES[case]
    samples = samples_of(healthy() | otherwise)
    fired = {rule.name for rule in rules if rule.firing(samples, END_S, EVERY_S)}
    assert fired == expected


@pytest.mark.parametrize("case", PASSING)
def test_an_alert_fires_and_resolves(rules: list[Rule], case: str) -> None:
    passing, expected, fires_s = PASSING[case]
    (rule,) = (rule for rule in rules if rule.name == expected)
    samples = samples_of(healthy() | passing)
    assert not rule.firing(samples, 540, EVERY_S) or fires_s <= 600
    assert rule.firing(samples, fires_s, EVERY_S)
    assert not rule.firing(samples, END_S, EVERY_S)


def test_a_leader_of_the_release_before_is_seen_while_an_upgrade_goes_on(rules: list[Rule]) -> None:
    (rule,) = (rule for rule in rules if rule.name == "QuorateNoActiveController")
    follows = at(0, "active_controller", constant(0))
    for leads in (0, 1):
        told = at(1, "active_controller_count", constant(leads))
        for seen in (follows | told, told):
            assert bool(rule.firing(samples_of(seen), END_S, EVERY_S)) == (not leads)


def test_what_is_not_scraped_is_missed(rules: list[Rule]) -> None:
    fired = {rule.name for rule in rules if rule.firing(Samples(), END_S, EVERY_S)}
    assert fired == {"QuorateNoActiveController", "QuorateOperatorStalled"}


def test_a_schedule_that_never_succeeded_is_noticed(rules: list[Rule]) -> None:
    (rule,) = (rule for rule in rules if rule.name == "QuorateBackupOld")

    assert not rule.firing(samples_of(of_backups("created", 0)), END_S, EVERY_S)
    assert rule.firing(samples_of(of_backups("created", -DAY_S * 2)), END_S, EVERY_S)


def test_every_alert_has_a_case(rules: list[Rule]) -> None:
    tried = set(itertools.chain.from_iterable(expected for _, expected in CASES.values()))
    assert {rule.name for rule in rules} == tried


def test_rules_without_an_operator_name_no_operator(helm: Helm) -> None:
    names = {rule.name for rule in rules_of(helm, "--set", "operator.enabled=false")}
    assert not [name for name in names if "Operator" in name]


def test_prometheus_agrees(rules: list[Rule], tmp_path: Path) -> None:
    """Its own program on the same samples: which alerts fire, and with which labels."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not in PATH; Debian's package prometheus has it")
    groups = [
        {
            "alert": rule.name,
            "expr": rule.expression,
            "for": f"{rule.for_s:.0f}s",
            "labels": rule.labels,
        }
        for rule in rules
    ]
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "q", "rules": groups}]}))
    tests = [_as_promtool_has_it(rules, otherwise) for otherwise, _ in CASES.values()]
    spec = {"rule_files": ["rules.yaml"], "evaluation_interval": f"{EVERY_S}s", "tests": tests}
    (tmp_path / "tests.yaml").write_text(json.dumps(spec))

    command = [promtool, "test", "rules", "tests.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _as_promtool_has_it(rules: list[Rule], otherwise: Series) -> dict[str, object]:
    series = healthy() | otherwise
    samples = samples_of(series)
    return {
        "interval": f"{EVERY_S}s",
        "input_series": [
            {"series": _written(name, labels), "values": " ".join(map(_number, values))}
            for (name, labels), values in points(series).items()
        ],
        "alert_rule_test": [
            {
                "eval_time": f"{END_S}s",
                "alertname": rule.name,
                "exp_alerts": [
                    {"exp_labels": {k: v for k, v in labels if k != "alertname"}}
                    for labels in rule.firing(samples, END_S, EVERY_S)
                ],
            }
            for rule in rules
        ],
    }


def _written(name: str, labels: Labels) -> str:
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in labels) + "}"


def _number(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)
