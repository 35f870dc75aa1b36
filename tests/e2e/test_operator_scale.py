"""`kubectl scale` with an operator, while a client commits all the time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import Operator, installed
from tests.e2e.watching import Departures

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

pytestmark = pytest.mark.long
log = logging.getLogger(__name__)


def is_going(pod: dict[str, Any]) -> bool:
    """True if it was asked to stop."""
    return "deletionTimestamp" in pod["metadata"]


def test_voters_follow_the_replicas(cluster: Cluster) -> None:
    release, operator = installed(cluster)

    with Committing(release) as committing, Departures(release) as departures:
        for replicas in (5, 3, 1, 3):
            cluster.kubectl("scale", f"statefulset/{release.fullname}", f"--replicas={replicas}")
            took_s = operator.await_rest(*range(replicas))
            log.info(f"scaled to {replicas}: {took_s:.1f} s")
            departures.await_all_seen()
            if replicas == 5:
                # The leader is among those that go next.
                release.let_lead(4)

    gap_s = committing.judge()
    log.info(f"longest time without a commit: {gap_s:.2f} s")
    departures.judge(1, 2, 3, 4)


@pytest.mark.weekly
def test_a_scale_is_taken_back_before_it_has_ended(cluster: Cluster) -> None:
    release = cluster.release("q", "replicaCount=5")
    operator = Operator(release)
    release.install()
    operator.await_rest(0, 1, 2, 3, 4)

    with Committing(release) as committing:
        cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=2")
        # It has begun, and has not ended: one of the three is stopping.
        wait_for(
            "a pod stops", READY_WITHIN_S, lambda: any(is_going(pod) for pod in release.pods())
        )
        cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=5")
        operator.await_rest(0, 1, 2, 3, 4)

    gap_s = committing.judge()
    log.info(f"longest time without a commit: {gap_s:.2f} s")
