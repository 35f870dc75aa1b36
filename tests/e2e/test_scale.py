"""`kubectl scale`, up and down, while a client commits all the time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.e2e.committing import Committing
from tests.e2e.operating import DISABLED
from tests.e2e.watching import Departures

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

pytestmark = [pytest.mark.long, pytest.mark.weekly]
log = logging.getLogger(__name__)


def test_voters_follow_the_replicas(cluster: Cluster) -> None:
    release = cluster.release("q", DISABLED)
    release.install()
    release.await_voters(0, 1, 2)

    with Committing(release) as committing, Departures(release) as departures:
        for replicas in (5, 3, 1, 3):
            cluster.kubectl("scale", f"statefulset/{release.fullname}", f"--replicas={replicas}")
            took_s = release.await_voters(*range(replicas))
            log.info(f"scaled to {replicas}: {took_s:.1f} s")
            departures.await_all_seen()
            if replicas == 5:
                # The leader is among those that go next.
                release.let_lead(4)

    gap_s = committing.judge()
    log.info(f"longest time without a commit: {gap_s:.2f} s")
    departures.judge(1, 2, 3, 4)
