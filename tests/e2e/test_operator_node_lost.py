"""The node of the acting operator and of the leader loses its power: another operator acts soon."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.nodes import spread
from tests.e2e.operating import installed

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release
    from tests.e2e.cluster_lock import ClusterLock
    from tests.e2e.nodes import Nodes
    from tests.e2e.operating import Operator

pytestmark = [pytest.mark.alone, pytest.mark.weekly]
log = logging.getLogger(__name__)
ADDED_WITHIN_S = 30.0


def beside_the_operator(release: Release, operator: Operator) -> int:
    """The ordinal of a controller on the node of the operator that acts.

    If the node of the operator that acts has no controller, it is deleted, so that the other one
    acts.
    """
    found: list[int] = []

    def look() -> bool | str:
        acting = operator.acting()
        pod = release.cluster.get("pods", acting)
        node = pod["spec"]["nodeName"]
        found[:] = [each for each in range(3) if release.node_of(each) == node]
        if not found:
            release.cluster.kubectl("delete", "pod", acting, "--wait=false")
        return bool(found) or f"{acting} acts on {node}, beside no controller"

    wait_for("an operator acts beside a controller", READY_WITHIN_S, look)
    return found[0]


def test_a_new_voter_is_added_soon_after(
    cluster: Cluster, cluster_lock: ClusterLock, nodes: Nodes
) -> None:
    release, operator = installed(cluster)
    cluster_lock.acquire_alone()
    operator.await_rest(0, 1, 2)
    spread(release)
    ordinal = beside_the_operator(release, operator)
    operator.await_available("True")
    release.let_lead(ordinal)
    lost = operator.acting()
    node = release.node_of(ordinal)
    others = release.away_from(node)

    with Committing(others) as committing:
        with nodes.powered_off(node):
            lost_s = time.monotonic()
            cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=4")
            wait_for(
                "voter 3",
                READY_WITHIN_S,
                lambda: (voters := others.voters()) == [0, 1, 2, 3] or f"voters are {voters}",
            )
            took_s = time.monotonic() - lost_s
            log.info(f"voter 3 is there {took_s:.1f} s after the node was lost")
            assert operator.acting() != lost
            committing.await_more()
            # The pod on that node is there for Kubernetes, and holds up no operator of an upgrade.
            release.upgrade("podAnnotations.e2e=upgraded")
            upgraded_s = wait_for(
                "an operator of the upgrade acts", READY_WITHIN_S, operator.is_of_release
            )
            log.info(f"an operator of the upgrade acts {upgraded_s:.1f} s after it")
        others.await_voters(0, 1, 2, 3, within_s=2 * READY_WITHIN_S)

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    assert took_s <= ADDED_WITHIN_S
