"""The operator dies in the middle of what it does, again and again, while a client commits."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import Operator, installed
from tests.e2e.watching import Departures

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release

pytestmark = [pytest.mark.long, pytest.mark.weekly]
log = logging.getLogger(__name__)
ADDED_WITHIN_S = 300.0
ROLLED_WITHIN_S = 900.0


def has_at_least(release: Release, voters: int) -> bool:
    return len(release.voters()) >= voters


def has_at_most(release: Release, voters: int) -> bool:
    return len(release.voters()) <= voters


def are_new(release: Release, old: set[str], count: int) -> bool:
    """True if so many pods are others than those."""
    return len(release.pod_uids() - old) >= count


def test_voters_follow_however_often_it_dies_while_it_adds(cluster: Cluster) -> None:
    release = cluster.release("q", "replicaCount=1")
    operator = Operator(release)
    release.install()
    operator.await_rest(0)

    with Committing(release) as committing:
        cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=5")
        for voters in (1, 2, 3):
            # There are more to come.
            wait_for("voters", ADDED_WITHIN_S, partial(has_at_least, release, voters))
            operator.kill()
        took_s = operator.await_rest(0, 1, 2, 3, 4)
        log.info(f"scaled from 1 to 5 with three kills: {took_s:.1f} s")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")


def test_voters_follow_however_often_it_dies_while_it_removes(cluster: Cluster) -> None:
    release = cluster.release("q", "replicaCount=5")
    operator = Operator(release)
    release.install()
    operator.await_rest(0, 1, 2, 3, 4)
    release.let_lead(4)

    with Committing(release) as committing, Departures(release) as departures:
        cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=1")
        for voters in (4, 3, 2):
            wait_for("voters", ADDED_WITHIN_S, partial(has_at_most, release, voters))
            operator.kill()
        took_s = operator.await_rest(0)
        log.info(f"scaled from 5 to 1 with three kills: {took_s:.1f} s")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    departures.judge(1, 2, 3, 4)


def test_a_roll_goes_on(cluster: Cluster) -> None:
    release, operator = installed(cluster)
    before = release.status()
    old = release.pod_uids()

    with Committing(release) as committing, Departures(release) as departures:
        release.upgrade("podAnnotations.e2e=rolled")
        for count in (1, 2):
            wait_for("new pods", ROLLED_WITHIN_S, partial(are_new, release, old, count))
            operator.kill()
        wait_for("new pods", ROLLED_WITHIN_S, partial(are_new, release, old, 3))
        took_s = operator.await_rest(0, 1, 2, within_s=ROLLED_WITHIN_S)
        log.info(f"rested {took_s:.1f} s after a roll with two kills")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    # No pod is rolled twice, the leader is the last one, and transfers leadership once.
    ended = [ordinal for ordinal, _ in departures.seen]
    assert sorted(ended) == [0, 1, 2]
    assert ended[-1] == before["LeaderId"]
    after = release.status()
    assert after["LeaderEpoch"] == before["LeaderEpoch"] + 1
    assert after["CurrentVoters"] == before["CurrentVoters"]
