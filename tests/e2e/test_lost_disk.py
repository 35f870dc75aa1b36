"""Claims that are deleted with their pods: voters again without a hand, and no second quorum."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.e2e.committing import Committing
from tests.e2e.operating import installed

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

log = logging.getLogger(__name__)


# Pod 0 founded the quorum, and an empty disk of it might do so again.
@pytest.mark.parametrize("ordinal", [pytest.param(2, marks=pytest.mark.weekly), 0])
def test_a_lost_disk_is_replaced(cluster: Cluster, ordinal: int) -> None:
    release, operator = installed(cluster)
    before = release.status()
    kept = release.disks()

    with Committing(release) as committing:
        cluster.kubectl("delete", "pvc", f"data-{release.fullname}-{ordinal}", "--wait=false")
        cluster.kubectl("delete", "pod", f"{release.fullname}-{ordinal}")
        took_s = operator.await_reason("DiskReplaced")
        took_s += operator.await_rest(0, 1, 2)
        log.info(f"a new disk of node {ordinal} is a voter after {took_s:.1f} s")

    gap_s = committing.judge()
    log.info(f"longest time without a commit: {gap_s:.2f} s")
    after = release.disks()
    assert after[ordinal] != kept[ordinal]
    assert {node: disk for node, disk in after.items() if node != ordinal} == {
        node: disk for node, disk in kept.items() if node != ordinal
    }
    assert release.status()["ClusterId"] == before["ClusterId"]
