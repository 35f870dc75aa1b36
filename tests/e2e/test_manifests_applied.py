"""`helm template | kubectl apply`, again and again: one quorum, as docs/gitops.md has it."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.chart.rendering import ALONE, CLUSTER_ID, VERSION
from tests.e2e.cluster import CHART, READY_WITHIN_S, wait_for
from tests.e2e.commands import CommandFailedError
from tests.e2e.committing import Committing
from tests.e2e.operating import DISABLED, Operator

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.cluster import Cluster, Release

pytestmark = [pytest.mark.long, pytest.mark.weekly]
log = logging.getLogger(__name__)
# Helm takes the cluster for an old one otherwise, also where it asks one.
NEW: Final = ("--kube-version", VERSION)
OFFLINE: Final = (*NEW, *ALONE)
ASKING: Final = (*NEW, "--dry-run=server")
# Helm reads numbers of a values file as floating point. None of these changes what is tested here.
NUMBERS: Final[dict[str, dict[str, int]]] = {
    "config": {
        "metadata.log.segment.bytes": 9876543210,
        "metadata.max.retention.bytes": 9123456789,
        "metadata.max.retention.ms": 8765432109,
        "metadata.log.max.snapshot.interval.ms": 7654321098,
    },
    "admin": {"admin.request.timeout.ms": 6543210987},
    "operator": {"admin.request.timeout.ms": 5432109876, "autojoin.ghost.delay.ms": 4321098765},
}
CHANGED: Final = {"metadata.max.retention.ms": 1234567891}


def manifests(release: Release, *flags: str) -> str:
    """The chart as `helm template` prints it, without what only Helm can run."""
    words = ("template", release.name, str(CHART), "--no-hooks", *flags, *release.flags())
    return release.cluster.helm(*words)


def apply(release: Release, rendered: str) -> list[str]:
    """The result of kubectl for each object, such as `service/q-quorate created`."""
    return release.cluster.kubectl("apply", "--filename", "-", text=rendered).splitlines()


def stored(release: Release, rendered: str) -> list[dict[str, Any]]:
    """The objects as the API server has them, without what others write: states and annotations.

    kubectl calls an object configured also where it has sent what was there already.
    """
    found = release.cluster.kubectl("get", "--filename", "-", "--output", "json", text=rendered)
    items: list[dict[str, Any]] = json.loads(found)["items"]
    for item in items:
        item.pop("status", None)
        metadata = item["metadata"]
        item["metadata"] = {key: metadata.get(key) for key in ("name", "uid", "generation")}
    return items


def values_file(folder: Path, config: dict[str, int]) -> str:
    """The numbers as a values file, these ones of the controllers instead of others."""
    values: dict[str, Any] = {"config": NUMBERS["config"] | config}
    values |= {section: {"config": NUMBERS[section]} for section in ("admin", "operator")}
    file = folder / "values.yaml"
    # JSON is YAML.
    file.write_text(json.dumps(values))
    return str(file)


def in_force(
    cluster: Cluster, selector: str, container: str, keys: dict[str, int]
) -> list[dict[str, str]]:
    """These settings as the processes of a container log them at their start."""
    words = ("logs", "--selector", selector, "--container", container, "--tail=-1")
    lines = cluster.kubectl(*words).splitlines()
    messages = [str(json.loads(line).get("message", "")) for line in lines]
    told = [
        message.removeprefix("settings: ").split(", ")
        for message in messages
        if message.startswith("settings: ")
    ]
    return [
        {key: value for key, _, value in (each.partition("=") for each in items) if key in keys}
        for items in told
    ]


def digits(settings: dict[str, int]) -> dict[str, str]:
    """The settings in the form that a process takes."""
    return {key: str(value) for key, value in settings.items()}


def test_the_second_apply_changes_nothing_and_a_third_one_rolls(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The cluster id is set, the number is left out, and further settings have ten digits."""
    release = cluster.release("q", "replicaCount=null")
    operator = Operator(release)
    flags = (*OFFLINE, "--values", values_file(tmp_path, {}))
    made = apply(release, manifests(release, *flags))
    # No object that only Helm could run and take away.
    assert not [line for line in made if re.match(r"(job\.batch|pod)/|.*-rollback ", line)], made
    operator.await_rest(0)
    cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=3")
    operator.await_rest(0, 1, 2)
    before, claims, pods = release.status(), cluster.claims(), release.pod_uids()
    assert before["ClusterId"] == CLUSTER_ID

    with Committing(release) as committing:
        again = manifests(release, *flags)
        first = stored(release, again)
        apply(release, again)
        assert stored(release, again) == first
        assert release.pod_uids() == pods

        flags = (*OFFLINE, "--values", values_file(tmp_path, CHANGED))
        apply(release, manifests(release, *flags))

        def is_rolled() -> bool | str:
            left = pods & release.pod_uids()
            return not left or f"{len(left)} pods are of the revision before"

        took_s = wait_for("three other pods", 2 * READY_WITHIN_S, is_rolled)
        took_s += operator.await_rest(0, 1, 2)
        log.info(f"rolled by the third apply: {took_s:.1f} s")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    after = release.status()
    assert after["ClusterId"] == before["ClusterId"]
    assert after["CurrentVoters"] == before["CurrentVoters"]
    assert cluster.claims() == claims
    config, admin = NUMBERS["config"] | CHANGED, NUMBERS["admin"]
    assert in_force(cluster, release.controllers, "controller", config) == [digits(config)] * 3
    assert in_force(cluster, release.controllers, "admin", admin) == [digits(admin)] * 3
    own = digits(NUMBERS["operator"])
    told = in_force(cluster, operator.pods, "autojoin", NUMBERS["operator"])
    assert own in told
    assert all(each == own for each in told)


def test_without_a_cluster_id_the_cluster_is_asked(cluster: Cluster) -> None:
    """Helm draws an id the first time, and reads it and the number of controllers after that."""
    release = cluster.release("q", DISABLED)
    with pytest.raises(CommandFailedError, match="clusterId is needed where the chart is rendered"):
        manifests(release, *NEW)
    apply(release, manifests(release, *ASKING))
    release.await_voters(0, 1, 2)
    cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=5")
    release.await_voters(0, 1, 2, 3, 4)
    before, claims, pods = release.status(), cluster.claims(), release.pod_uids()

    with Committing(release) as committing:
        again = manifests(release, *ASKING)
        first = stored(release, again)
        apply(release, again)
        assert stored(release, again) == first
        assert release.pod_uids() == pods

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    after = release.status()
    assert after["ClusterId"] == before["ClusterId"]
    assert after["CurrentVoters"] == before["CurrentVoters"]
    assert cluster.claims() == claims
