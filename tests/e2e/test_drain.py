"""The leader's node is drained, while a client commits all the time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.e2e.committing import Committing
from tests.e2e.operating import installed

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster
    from tests.e2e.cluster_lock import ClusterLock

pytestmark = [pytest.mark.alone, pytest.mark.weekly]
log = logging.getLogger(__name__)


def test_the_leader_moves_to_another_pod(cluster: Cluster, cluster_lock: ClusterLock) -> None:
    release, operator = installed(cluster)
    cluster_lock.acquire_alone()
    operator.await_rest(0, 1, 2)
    before = release.status()
    leader = before["LeaderId"]
    node = release.node_of(leader)
    drained = release.pod(leader)["metadata"]["uid"]

    with Committing(release.away_from(node)) as committing:
        try:
            # Nothing else of that node is moved about for a test.
            words = ("--pod-selector", release.controllers, "--delete-emptydir-data")
            cluster.kubectl("drain", node, "--ignore-daemonsets", *words, namespaced=False)
            assert release.away_from(node).leader() != leader
        finally:
            cluster.kubectl("uncordon", node, namespaced=False)
        operator.await_rest(0, 1, 2)

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    assert release.pod(leader)["metadata"]["uid"] != drained
    assert release.status()["CurrentVoters"] == before["CurrentVoters"]
