"""A new revision: followers first, the leader last, and one hand-over at most."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.e2e.committing import Committing
from tests.e2e.operating import ENABLED, Operator

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release

log = logging.getLogger(__name__)
LONGEST_GAP_S = 10.0
ROLL_S = 300.0


def uids(release: Release) -> list[str]:
    """Which pods these are."""
    return [pod["metadata"]["uid"] for pod in release.pods()]


def test_the_leader_is_rolled_last(cluster: Cluster) -> None:
    release = cluster.release("q", ENABLED)
    operator = Operator(release)
    release.install()
    operator.await_rest(0, 1, 2)
    before, pods = release.status(), uids(release)

    with Committing(release) as committing:
        release.upgrade("podAnnotations.e2e=rolled")
        operator.await_reason("LeaderBeforeRoll", within_s=ROLL_S)
        # Those that do not lead are new by then.
        new = [pod for pod, uid in enumerate(uids(release)) if uid not in pods]
        assert new == [node for node in range(3) if node != before["LeaderId"]]
        # An operator that begins in the middle of it ends it.
        operator.kill()
        took_s = operator.await_rest(0, 1, 2, within_s=ROLL_S)
        log.info(f"the rest of the roll took {took_s:.1f} s")

    committing.judge(longest_gap_s=LONGEST_GAP_S)
    assert not set(pods) & set(uids(release))
    assert operator.reasons().count("LeaderBeforeRoll") == 1
    assert release.status()["CurrentVoters"] == before["CurrentVoters"]
