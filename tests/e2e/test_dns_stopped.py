"""The cluster's DNS is away for a minute while a controller restarts, then while all of them do."""

from __future__ import annotations

import json
import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import installed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.cluster import Cluster

pytestmark = pytest.mark.alone
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


@pytest.mark.parametrize("how_many", [1, 3])
def test_controllers_restart_while_no_name_is_known(cluster: Cluster, how_many: int) -> None:
    release, operator = installed(cluster)
    before = release.status()
    first = next(node for node in (2, 1) if node != before["LeaderId"])
    restarted = [first] if how_many == 1 else [0, 1, 2]
    names = [f"{release.fullname}-{ordinal}" for ordinal in restarted]
    uids = {release.pod(ordinal)["metadata"]["uid"] for ordinal in restarted}

    with Committing(release) as committing:
        with without_dns(cluster):
            start = time.monotonic()
            cluster.kubectl("delete", "pod", *names, "--wait=false")
            time.sleep(max(0.0, AWAY_S - (time.monotonic() - start)))
        took_s = operator.await_rest(0, 1, 2)
        log.info(f"three voters are ready {took_s:.1f} s after names are known again")

    longest_gap_s = 10.0 if how_many == 1 else AWAY_S + READY_WITHIN_S
    log.info(
        f"longest time without a commit: {committing.judge(longest_gap_s=longest_gap_s):.2f} s"
    )
    after = release.status()
    assert not uids & {pod["metadata"]["uid"] for pod in release.pods()}
    assert after["ClusterId"] == before["ClusterId"]
    assert after["CurrentVoters"] == before["CurrentVoters"]
