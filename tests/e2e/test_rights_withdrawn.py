"""The pods' account loses its right to read the StatefulSet, which is scaled from five to one."""

from __future__ import annotations

import json
import logging
import re
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import DISABLED

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release

pytestmark = [pytest.mark.long, pytest.mark.weekly]
log = logging.getLogger(__name__)
UNREAD = re.compile(r"^quorate_admin_statefulset_unread_seconds\S* ([\d.e+]+)$", re.MULTILINE)
# Much less than the 40 s for which a voter waits that cannot be spared.
HELD_S = 20.0


def unread_s(release: Release, pod: int) -> float:
    """For how long a sidecar could not read the StatefulSet, as Prometheus would read it."""
    found = UNREAD.search(release.metrics(pod, 9465))
    assert found is not None
    return float(found[1])


def test_pods_that_cannot_know_are_no_majority_that_goes(cluster: Cluster) -> None:
    release = cluster.release("q", DISABLED, "replicaCount=5")
    release.install()
    release.await_voters(0, 1, 2, 3, 4)
    binding = cluster.get("rolebindings", release.fullname)
    for field in ("creationTimestamp", "resourceVersion", "uid"):
        del binding["metadata"][field]
    stateful_set = f"statefulset/{release.fullname}"

    with Committing(release) as committing:
        cluster.kubectl("delete", "rolebinding", release.fullname)
        wait_for("it is noticed", READY_WITHIN_S, lambda: unread_s(release, 0) > 0.0)
        cluster.kubectl("scale", stateful_set, "--replicas=3")
        wait_for("three pods", READY_WITHIN_S, lambda: len(release.pods()) == 3)
        # Two restarts, for all that the pods know: three live voters of five.
        assert release.voters() == [0, 1, 2, 3, 4]
        cluster.kubectl("scale", stateful_set, "--replicas=1")
        time.sleep(HELD_S)
        assert len(release.pods()) == 3, "a pod went that the majority needs"
        committing.await_more()
        cluster.kubectl("apply", "--filename", "-", text=json.dumps(binding))
        took_s = release.await_voters(0)
        log.info(f"one voter {took_s:.1f} s after the rights are back")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
