"""The leader's pod is deleted, while a client commits all the time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import installed

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

log = logging.getLogger(__name__)


def test_it_hands_over_and_stays_a_voter(cluster: Cluster) -> None:
    release, operator = installed(cluster)
    before = release.status()
    leader = before["LeaderId"]
    deleted = release.pod(leader)["metadata"]["uid"]

    with Committing(release) as committing:
        cluster.kubectl("delete", "pod", f"{release.fullname}-{leader}")
        wait_for(
            "another pod in its place",
            READY_WITHIN_S,
            lambda: release.pod(leader)["metadata"]["uid"] != deleted,
        )
        operator.await_rest(0, 1, 2)

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    after = release.status()
    # It was restarted, not scaled down: it transfers leadership, and stays a voter with its disk.
    epochs = after["LeaderEpoch"] - before["LeaderEpoch"]
    # A leader that leads again was elected again.
    assert epochs > (after["LeaderId"] == leader)
    assert after["CurrentVoters"] == before["CurrentVoters"]
