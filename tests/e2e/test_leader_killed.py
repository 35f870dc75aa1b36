"""SIGKILL to the leader's process, while a client commits all the time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import installed

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster
    from tests.e2e.nodes import Nodes

log = logging.getLogger(__name__)
ELECTED_WITHIN_S = 120.0


def test_another_one_leads_and_it_comes_back(cluster: Cluster, nodes: Nodes) -> None:
    release, operator = installed(cluster)
    before = release.status()
    leader = before["LeaderId"]
    killed = release.container_id(leader)

    with Committing(release) as committing:
        nodes.kill(release, leader)
        took_s = release.await_other_leader(leader, ELECTED_WITHIN_S)
        log.info(f"another leader is seen after {took_s:.1f} s")
        wait_for(
            "its container runs again",
            READY_WITHIN_S,
            lambda: release.container_id(leader) != killed,
        )
        operator.await_rest(0, 1, 2)

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    after = release.status()
    assert after["LeaderEpoch"] > before["LeaderEpoch"]
    assert after["CurrentVoters"] == before["CurrentVoters"]
