"""The leader's node loses its network and comes back, while a client commits."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.committing import Committing
from tests.e2e.nodes import spread
from tests.e2e.operating import Operator, installed

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster
    from tests.e2e.cluster_lock import ClusterLock
    from tests.e2e.nodes import Nodes

pytestmark = [pytest.mark.alone, pytest.mark.weekly]
log = logging.getLogger(__name__)
ELECTED_WITHIN_S = 120.0
# Longer than Kubernetes takes to believe that a node is gone, shorter than it waits to move pods.
AWAY_S = 45.0
BACK_WITHIN_S = 600.0


def test_whoever_comes_back_disturbs_nobody(
    cluster: Cluster, cluster_lock: ClusterLock, nodes: Nodes
) -> None:
    release, operator = installed(cluster)
    cluster_lock.acquire_alone()
    operator.await_rest(0, 1, 2)
    spread(release)
    before = release.status()
    leader = before["LeaderId"]
    node = release.node_of(leader)
    others = release.away_from(node)

    with Committing(others) as committing:
        with nodes.cut_off(node):
            took_s = others.await_other_leader(leader, ELECTED_WITHIN_S)
            log.info(f"another leader is seen after {took_s:.1f} s")
            time.sleep(AWAY_S)
            committing.await_more()
            away = others.status()
            assert sorted(voter["id"] for voter in away["CurrentVoters"]) == [0, 1, 2]
        took_s = Operator(others).await_rest(0, 1, 2, within_s=BACK_WITHIN_S)
        log.info(f"three voters are ready {took_s:.1f} s after its return")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    # The node that is back resolves no names until it has heard that its resolver is ready again,
    # some seconds after its controller is: so another one is asked.
    after = others.status()
    # A node that comes back has heard nothing and must not disturb the leader.
    assert (after["LeaderId"], after["LeaderEpoch"]) == (away["LeaderId"], away["LeaderEpoch"])
    assert after["CurrentVoters"] == before["CurrentVoters"]
