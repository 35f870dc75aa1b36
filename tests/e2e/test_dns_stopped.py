"""The cluster's DNS is away for a minute while controllers restart."""

from __future__ import annotations

import json
import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import installed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.cluster import Cluster, Release
    from tests.e2e.cluster_lock import ClusterLock
    from tests.e2e.operating import Operator

pytestmark = [pytest.mark.alone, pytest.mark.weekly]
log = logging.getLogger(__name__)
AWAY_S = 60.0
SYSTEM = ("--namespace", "kube-system")
DNS = "k8s-app=kube-dns"
NOWHERE = {"e2e.quorate/no-such-node": "true"}


@contextmanager
def without_dns(cluster: Cluster) -> Iterator[None]:
    """No DNS server runs, whether it is a Deployment or a DaemonSet."""

    def select(nodes: dict[str, str | None]) -> None:
        patch = json.dumps({"spec": {"template": {"spec": {"nodeSelector": nodes}}}})
        words = ("patch", "daemonset", "coredns", "--patch", patch)
        cluster.kubectl(*SYSTEM, *words, namespaced=False)

    def scale(replicas: int) -> None:
        words = ("scale", "deployment/coredns", f"--replicas={replicas}")
        cluster.kubectl(*SYSTEM, *words, namespaced=False)

    def servers() -> list[str]:
        words = ("get", "pods", "--selector", DNS, "--output", "json")
        found = json.loads(cluster.kubectl(*SYSTEM, *words, namespaced=False))
        return [pod["metadata"]["name"] for pod in found["items"]]

    names = cluster.kubectl(*SYSTEM, "get", "daemonsets", "--output", "name", namespaced=False)
    is_daemon_set = "daemonset.apps/coredns" in names.split()
    words = ("get", "deployments", "--selector", DNS, "--output", "json")
    found = json.loads(cluster.kubectl(*SYSTEM, *words, namespaced=False))["items"]
    replicas = found[0]["spec"]["replicas"] if found else 0
    if is_daemon_set:
        select(dict(NOWHERE))
    else:
        scale(0)
    try:
        wait_for("no DNS server", READY_WITHIN_S, lambda: not servers() or str(servers()))
        yield
    finally:
        if is_daemon_set:
            select(dict.fromkeys(NOWHERE))
        else:
            scale(replicas)
        wait_for("a DNS server", READY_WITHIN_S, lambda: bool(servers()))


@dataclass(frozen=True)
class Quorum:
    """An installation at rest, and the controllers of it that restart."""

    release: Release
    operator: Operator
    restarted: tuple[int, ...]
    longest_gap_s: float

    @property
    def pods(self) -> list[str]:
        """The names of the pods that restart."""
        return [f"{self.release.fullname}-{ordinal}" for ordinal in self.restarted]

    def uids(self) -> set[str]:
        """Identify those pods, so that a restart is seen."""
        return {self.release.pod(ordinal)["metadata"]["uid"] for ordinal in self.restarted}


def test_controllers_restart_while_no_name_is_known(
    cluster: Cluster, cluster_lock: ClusterLock
) -> None:
    """A voter of one quorum restarts, and all voters of another one."""
    (one, operator_of_one), (all_, operator_of_all) = (
        installed(cluster, name=name) for name in ("one", "all")
    )
    cluster_lock.acquire_alone()
    for operator in (operator_of_one, operator_of_all):
        operator.await_rest(0, 1, 2)
    before = {release: release.status() for release in (one, all_)}
    voter = next(node for node in (2, 1) if node != before[one]["LeaderId"])
    quorums = (
        Quorum(one, operator_of_one, (voter,), 10.0),
        Quorum(all_, operator_of_all, (0, 1, 2), AWAY_S + READY_WITHIN_S),
    )
    uids = {quorum.release: quorum.uids() for quorum in quorums}

    with Committing(one) as load_of_one, Committing(all_) as load_of_all:
        with without_dns(cluster):
            start = time.monotonic()
            pods = [pod for quorum in quorums for pod in quorum.pods]
            cluster.kubectl("delete", "pod", *pods, "--wait=false")
            time.sleep(max(0.0, AWAY_S - (time.monotonic() - start)))
        for quorum in quorums:
            took_s = quorum.operator.await_rest(0, 1, 2)
            log.info(f"{quorum.release.name}: at rest {took_s:.1f} s after names are known again")

    for quorum, load in zip(quorums, (load_of_one, load_of_all), strict=True):
        release = quorum.release
        gap_s = load.judge(longest_gap_s=quorum.longest_gap_s)
        log.info(f"{release.name}: longest time without a commit: {gap_s:.2f} s")
        after = release.status()
        assert not uids[release] & quorum.uids()
        assert after["ClusterId"] == before[release]["ClusterId"]
        assert after["CurrentVoters"] == before[release]["CurrentVoters"]
