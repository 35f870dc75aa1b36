"""Pod 0 founds one quorum and no second one, without DNS and without its disk."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.nodes import only_schedulable, spread
from tests.e2e.operating import DISABLED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.cluster import Cluster, Release
    from tests.e2e.cluster_lock import ClusterLock
    from tests.e2e.nodes import Nodes

log = logging.getLogger(__name__)
FAILURES_MIN = 1
# Kubernetes waits longer after each failure of an init container.
BACK_WITHIN_S = READY_WITHIN_S + 300.0


@contextmanager
def without_dns_on(cluster: Cluster, nodes: Nodes, node: str) -> Iterator[None]:
    """No pod of that node gets an answer from DNS: what it asks the service of DNS is dropped."""
    words = ("get", "service", "kube-dns", "--output", "jsonpath={.spec.clusterIP}")
    dns = cluster.kubectl("--namespace", "kube-system", *words, namespaced=False).strip()
    rules = [
        ("PREROUTING", "--destination", dns, "--protocol", protocol, "--dport", "53")
        for protocol in ("udp", "tcp")
    ]
    for rule in rules:
        nodes.execute(node, "iptables", "--table", "raw", "--insert", *rule, "--jump", "DROP")
    try:
        yield
    finally:
        for rule in rules:
            nodes.execute(node, "iptables", "--table", "raw", "--delete", *rule, "--jump", "DROP")


def record_of(release: Release) -> str:
    return f"{release.fullname}-bootstrap"


def formatting(release: Release) -> dict[str, Any]:
    """The status of pod 0's init container: its state, and its number of restarts."""
    statuses = release.pod(0)["status"].get("initContainerStatuses", [])
    return next((each for each in statuses if each["name"] == "format"), {"restartCount": 0})


def last_words(release: Release) -> str:
    """The termination message of pod 0's init container; its log goes with the container."""
    seen = formatting(release)
    ended = [seen.get(state, {}).get("terminated", {}) for state in ("state", "lastState")]
    return " ".join(each.get("message", "") for each in ended)


def lose_disk(cluster: Cluster, release: Release, node: str) -> None:
    """Pod 0 comes back with an empty disk, on this node."""

    def is_placed() -> bool:
        return bool(release.pod(0)["spec"].get("nodeName"))

    with only_schedulable(cluster, node):
        cluster.kubectl("delete", "pvc", f"data-{release.fullname}-0", "--wait=false")
        cluster.kubectl("delete", "pod", f"{release.fullname}-0")
        wait_for("pod 0 has a node", READY_WITHIN_S, is_placed)


def leader_by(cluster: Cluster, release: Release, ordinal: int) -> tuple[int, int]:
    """Leader and epoch by the word of one pod."""
    words = ("quorate", "metadata-quorum", "--bootstrap-controller", "localhost:9094")
    said = cluster.kubectl(
        *("exec", f"{release.fullname}-{ordinal}", "--container", "controller", "--"),
        *(*words, "--output", "json", "describe", "--status"),
    )
    described = json.loads(said)
    return described["LeaderId"], described["LeaderEpoch"]


def test_the_founding_is_recorded_without_an_operator(cluster: Cluster) -> None:
    release = cluster.release("q", DISABLED)
    release.install()
    release.await_voters(0, 1, 2)

    record = cluster.get("configmaps", record_of(release))

    assert record["immutable"] is True
    assert record["data"] == {
        "clusterId": release.status()["ClusterId"],
        "nodeId": "0",
        "directoryId": release.disks()[0],
    }


@pytest.mark.alone
@pytest.mark.parametrize("has_record", [pytest.param(True, marks=pytest.mark.weekly), False])
def test_a_pod_that_lost_its_disk_and_its_dns_founds_no_second_quorum(
    cluster: Cluster, cluster_lock: ClusterLock, nodes: Nodes, *, has_record: bool
) -> None:
    """Without the record as in a quorum of a release before, whose pods have not restarted.

    An operator would write it again.
    """
    release = cluster.release("q", *(() if has_record else (DISABLED,)))
    release.install()
    release.await_voters(0, 1, 2)
    cluster_lock.acquire_alone()
    spread(release)
    release.let_lead(1)
    before, node = release.disks(), release.node_of(0)
    others = release.away_from(node)
    if not has_record:
        cluster.kubectl("delete", "configmap", record_of(release))

    def has_tried() -> bool | str:
        seen = formatting(release)
        done = seen.get("state", {}).get("terminated", {}).get("exitCode") == 0
        failed = seen["restartCount"] >= FAILURES_MIN
        return (done if has_record else failed) or str(seen)

    with Committing(others) as committing:
        with without_dns_on(cluster, nodes, node):
            lose_disk(cluster, release, node)
            wait_for("pod 0 has tried to format", BACK_WITHIN_S, has_tried)
            assert release.node_of(0) == node
            committing.await_more()
            assert {id_: disk for id_, disk in others.disks().items() if id_} == {
                id_: disk for id_, disk in before.items() if id_
            }
        took_s = wait_for(
            "the new disk of pod 0 is a voter's",
            BACK_WITHIN_S,
            lambda: others.disks().get(0) not in (None, before[0]) or str(others.disks()),
        )
        took_s += others.await_voters(0, 1, 2, within_s=BACK_WITHIN_S)
        log.info(f"three voters are ready {took_s:.1f} s after names are known again")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    assert len({leader_by(cluster, release, ordinal) for ordinal in (0, 1, 2)}) == 1


def test_a_quorum_whose_disks_were_deleted_is_founded_again_only_when_its_record_is(
    cluster: Cluster,
) -> None:
    release = cluster.release("q", "replicaCount=1")
    release.install()
    release.await_voters(0)
    before = release.disks()
    release.uninstall()
    cluster.kubectl("delete", "pvc", "--selector", f"app.kubernetes.io/instance={release.name}")

    release.install()
    words = f"ConfigMap {record_of(release)} says that cluster"
    wait_for(
        "pod 0 waits and says why",
        BACK_WITHIN_S,
        lambda: words in last_words(release) or str(formatting(release)),
    )

    cluster.kubectl("delete", "configmap", record_of(release))
    took_s = release.await_voters(0, within_s=BACK_WITHIN_S)
    log.info(f"founded {took_s:.1f} s after its record was deleted")
    assert release.disks() != before
