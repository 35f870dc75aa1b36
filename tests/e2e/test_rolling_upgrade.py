"""A new revision: followers first, the leader last, and at most one leadership transfer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import is_ready
from tests.e2e.committing import Committing
from tests.e2e.operating import installed
from tests.e2e.watching import Departures

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster
    from tests.e2e.operating import Operator

pytestmark = pytest.mark.long
log = logging.getLogger(__name__)


def hand_overs(operator: Operator) -> list[str]:
    """Reported transfers: done, or not as asked, if another voter than the named one leads.

    The named one was away for its own roll a moment ago; the old leader's word may miss it.
    """
    return [each for each in operator.reasons() if each in {"LeaderBeforeRoll", "NotDone"}]


def test_the_leader_is_rolled_last(cluster: Cluster, next_image: str) -> None:
    release, operator = installed(cluster)

    with Committing(release) as committing, Departures(release) as departures:
        before, pods = release.status(), release.pod_uids()
        repository, _, tag = next_image.rpartition(":")
        release.upgrade(f"image.repository={repository}", f"image.tag={tag}", waits=True)
        # Helm returns at the end of the roll, not at its beginning.
        assert not pods & release.pod_uids()
        assert all(is_ready(pod) for pod in release.pods())
        assert operator.conditions()["MembersInStep"] == (True, "InStep")
        assert hand_overs(operator)
        operator.await_rest(0, 1, 2)

    gap_s = committing.judge()
    log.info(f"longest time without a commit: {gap_s:.2f} s")
    ended = [ordinal for ordinal, _ in departures.seen]
    assert sorted(ended) == [0, 1, 2]
    assert ended[-1] == before["LeaderId"]
    assert {pod["spec"]["containers"][0]["image"] for pod in release.pods()} == {next_image}
    after = release.status()
    assert after["LeaderEpoch"] == before["LeaderEpoch"] + 1
    assert after["CurrentVoters"] == before["CurrentVoters"]
