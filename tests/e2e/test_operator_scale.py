"""`kubectl scale` with an operator that dies in the middle of it, while a client commits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.e2e.committing import Committing
from tests.e2e.operating import ENABLED, Operator
from tests.e2e.watching import Departures

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

log = logging.getLogger(__name__)
LONGEST_GAP_S = 10.0


def test_voters_follow_the_replicas(cluster: Cluster) -> None:
    release = cluster.release("q", ENABLED)
    operator = Operator(release)
    release.install()
    operator.await_rest(0, 1, 2)

    with Committing(release) as committing, Departures(release) as departures:
        for replicas in (5, 3, 1, 3):
            cluster.kubectl("scale", f"statefulset/{release.fullname}", f"--replicas={replicas}")
            took_s = operator.await_rest(*range(replicas))
            log.info(f"scaled to {replicas}: {took_s:.1f} s")
            if replicas == 5:
                # The leader is among those that go next.
                release.quorate("metadata-quorum", "transfer-leader", "--to", "4")

    gap_s = committing.judge(longest_gap_s=LONGEST_GAP_S)
    log.info(f"longest time without a commit: {gap_s:.2f} s")
    for ordinal, voters in departures.seen:
        assert ordinal not in voters, f"pod {ordinal} went while it was a voter"


def test_a_scale_is_taken_back_before_it_has_ended(cluster: Cluster) -> None:
    release = cluster.release("q", ENABLED, "replicaCount=5")
    operator = Operator(release)
    release.install()
    operator.await_rest(0, 1, 2, 3, 4)

    with Committing(release) as committing:
        for replicas in (2, 5):
            cluster.kubectl("scale", f"statefulset/{release.fullname}", f"--replicas={replicas}")
        operator.await_rest(0, 1, 2, 3, 4)

    committing.judge(longest_gap_s=LONGEST_GAP_S)


def test_an_operator_that_is_killed_goes_on(cluster: Cluster) -> None:
    release = cluster.release("q", ENABLED, "replicaCount=1")
    operator = Operator(release)
    release.install()
    operator.await_rest(0)

    with Committing(release) as committing:
        for replicas, reason in ((5, "ScaleUp"), (1, "ScaleDown")):
            cluster.kubectl("scale", f"statefulset/{release.fullname}", f"--replicas={replicas}")
            for _ in range(3):
                operator.kill()
            took_s = operator.await_rest(*range(replicas))
            log.info(f"{reason} to {replicas} with three kills: {took_s:.1f} s")

    committing.judge(longest_gap_s=LONGEST_GAP_S)
