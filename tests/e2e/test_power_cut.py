"""The leader's node loses its power, while a client commits all the time."""

from __future__ import annotations

import logging
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
BACK_WITHIN_S = 600.0


def test_another_one_leads_and_nobody_is_removed(
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
        with nodes.powered_off(node):
            took_s = others.await_other_leader(leader, ELECTED_WITHIN_S)
            log.info(f"another leader is seen after {took_s:.1f} s")
            committing.await_more()
            # A voter may not be removed because its machine is away.
            assert others.voters() == [0, 1, 2]
        took_s = Operator(others).await_rest(0, 1, 2, within_s=BACK_WITHIN_S)
        log.info(f"three voters are ready {took_s:.1f} s after its boot")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    # On the node that has booted names may not be resolved yet: another one is asked.
    assert others.status()["CurrentVoters"] == before["CurrentVoters"]
