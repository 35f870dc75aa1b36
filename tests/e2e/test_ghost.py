"""A pod that is scaled away and killed before its hook has run leaves a voter behind."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.e2e.cluster import wait_for
from tests.e2e.operating import ENABLED, Operator

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

log = logging.getLogger(__name__)
GHOST_S = 60.0


def test_a_ghost_is_removed_after_a_minute(cluster: Cluster) -> None:
    release = cluster.release("q", ENABLED, "replicaCount=4")
    operator = Operator(release)
    release.install()
    operator.await_rest(0, 1, 2, 3)

    # Nobody but the hook could remove it now, and the hook is not given the time.
    operator.stop()
    cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=3")
    ghost = f"{release.fullname}-3"
    cluster.kubectl("delete", "pod", ghost, "--grace-period=0", "--force")
    wait_for("three pods", 60.0, lambda: len(release.pods()) == 3 or str(len(release.pods())))
    if 3 not in release.voters():
        log.info("its hook was faster")
        return

    operator.start()
    operator.await_reason("GhostSeenOnce")
    took_s = operator.await_rest(0, 1, 2, within_s=3 * GHOST_S)
    log.info(f"the ghost is gone after {took_s:.1f} s")
    assert "Ghost" in operator.reasons()
