"""The API server is away for a minute: the quorum does not notice, and no voter is removed."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.committing import Committing
from tests.e2e.operating import installed

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster
    from tests.e2e.cluster_lock import ClusterLock
    from tests.e2e.nodes import Nodes

pytestmark = [pytest.mark.alone, pytest.mark.weekly]
log = logging.getLogger(__name__)
AWAY_S = 60.0


def test_the_quorum_goes_on_and_a_stop_removes_nobody(
    cluster: Cluster, cluster_lock: ClusterLock, nodes: Nodes
) -> None:
    release, operator = installed(cluster)
    cluster_lock.acquire_alone()
    operator.await_rest(0, 1, 2)

    with Committing(release) as committing:
        before = release.status()
        leader = before["LeaderId"]
        node, container = release.node_of(leader), release.container_id(leader)
        with nodes.without_api_server():
            start = time.monotonic()
            # What the hook before a stop runs: it cannot look up how many replicas there are to be.
            said = nodes.run_in(node, container, "/opt/quorate/bin/quorate", "prepare-stop")
            log.info(said.strip())
            assert "leadership handed over" in said
            assert "voter removed" not in said
            time.sleep(max(0.0, AWAY_S - (time.monotonic() - start)))
        operator.await_rest(0, 1, 2)

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    after = release.status()
    assert after["CurrentVoters"] == before["CurrentVoters"]
    assert after["LeaderId"] != leader
    assert after["LeaderEpoch"] == before["LeaderEpoch"] + 1
