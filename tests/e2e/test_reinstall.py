"""`helm uninstall`, and an installation over the disks that were kept."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

log = logging.getLogger(__name__)


def test_a_quorum_goes_on_over_kept_disks(cluster: Cluster) -> None:
    release = cluster.release("q")
    release.install()
    release.await_voters(0, 1, 2)
    release.set_value("e2e.kept", "yes")
    before = release.status()

    release.uninstall()
    release.install()
    took_s = release.await_voters(0, 1, 2)
    log.info(f"installed again to three voters, all ready: {took_s:.1f} s")

    after = release.status()
    assert after["ClusterId"] == before["ClusterId"]
    assert after["CurrentVoters"] == before["CurrentVoters"]
    assert after["LeaderEpoch"] > before["LeaderEpoch"]
    assert after["HighWatermark"] > before["HighWatermark"]
    assert release.value("e2e.kept") == "yes"


def test_an_upgrade_leaves_the_number_of_controllers_alone(cluster: Cluster) -> None:
    release = cluster.release("q", "replicaCount=1")
    release.install()
    release.await_voters(0)
    cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=3")
    release.await_voters(0, 1, 2)
    before, pods = release.status(), release.pod_uids()

    release.upgrade("metrics.dashboard.enabled=true")

    release.await_voters(0, 1, 2)
    after = release.status()
    assert after["ClusterId"] == before["ClusterId"]
    assert after["CurrentVoters"] == before["CurrentVoters"]
    assert release.pod_uids() == pods, "a pod was restarted"
