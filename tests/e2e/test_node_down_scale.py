"""`kubectl scale` from five to three while the node of two controllers is cut off: 0, and 4."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.nodes import only_schedulable, spread
from tests.e2e.operating import DISABLED

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release
    from tests.e2e.cluster_lock import ClusterLock
    from tests.e2e.nodes import Nodes

pytestmark = pytest.mark.alone
log = logging.getLogger(__name__)
# The hook has 45 s; without it nothing is committed before the node is back.
LONGEST_GAP_S = 30.0
# The first four have a node each; the scheduler could put two on the same one.
APART = tuple(
    f"topologySpreadConstraints[0].{field}"
    for field in (
        "maxSkew=1",
        "topologyKey=kubernetes.io/hostname",
        "whenUnsatisfiable=DoNotSchedule",
    )
)


def put_beside(release: Release, ordinal: int, new: int) -> str:
    """Scale up by one controller, which lands on the node of another one; the node's name."""
    node = release.node_of(ordinal)
    cluster = release.cluster
    with only_schedulable(cluster, node):
        cluster.kubectl("scale", f"statefulset/{release.fullname}", f"--replicas={new + 1}")
        release.await_voters(*range(new + 1))
    assert release.node_of(new) == node
    return node


# The leader takes the two for alive in the first moments.
@pytest.mark.parametrize(
    ("away_s", "values"),
    [
        pytest.param(15.0, (DISABLED,), id="long"),
        pytest.param(0.0, (DISABLED,), id="now", marks=pytest.mark.weekly),
        pytest.param(0.0, (), id="operator", marks=pytest.mark.weekly),
    ],
)
def test_three_of_five_stay_a_majority(
    cluster: Cluster,
    cluster_lock: ClusterLock,
    nodes: Nodes,
    away_s: float,
    values: tuple[str, ...],
) -> None:
    release = cluster.release("q", "replicaCount=4", *APART, *values)
    release.install()
    cluster_lock.acquire_alone()
    release.await_voters(0, 1, 2, 3)
    spread(release)
    node = put_beside(release, 0, 4)
    others = release.away_from(node)
    claims = cluster.claims()

    with Committing(others) as committing:
        with nodes.cut_off(node):
            time.sleep(away_s)
            cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=3")
            took_s = wait_for(
                "voters 0, 1 and 2",
                READY_WITHIN_S,
                lambda: (voters := others.voters()) == [0, 1, 2] or f"voters are {voters}",
            )
            log.info(f"three voters {took_s:.1f} s after the scale")
            committing.await_more()
        took_s = release.await_voters(0, 1, 2, within_s=2 * READY_WITHIN_S)
        log.info(f"three ready ones {took_s:.1f} s after the node is back")

    gap_s = committing.judge(longest_gap_s=LONGEST_GAP_S)
    log.info(f"longest time without a commit: {gap_s:.2f} s")
    assert claims.items() <= cluster.claims().items(), "a number deleted a disk"
