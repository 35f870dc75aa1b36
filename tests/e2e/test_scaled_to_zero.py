"""`kubectl scale --replicas=0` and back: a pause, during which an upgrade starts no pod."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.commands import CommandFailedError
from tests.e2e.committing import Committing
from tests.e2e.operating import DISABLED

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release

pytestmark = [pytest.mark.long, pytest.mark.weekly]
log = logging.getLogger(__name__)
CHANGED = "config.num\\.partitions=3"


def await_seen(release: Release) -> None:
    """Until Kubernetes has acted on the newest StatefulSet: a pod that it wants is made by then."""

    def look() -> bool | str:
        found = release.stateful_set()
        seen = found["status"]["observedGeneration"], found["metadata"]["generation"]
        return seen[0] == seen[1] or f"generation {seen[0]} of {seen[1]}"

    wait_for("the StatefulSet is seen", READY_WITHIN_S, look)


@pytest.mark.parametrize(
    "values",
    [pytest.param((DISABLED,), id="by-themselves"), pytest.param((), id="operator")],
)
def test_a_quorum_goes_on_after_a_pause(cluster: Cluster, values: tuple[str, ...]) -> None:
    release = cluster.release("q", *values)
    release.install()
    release.await_voters(0, 1, 2)
    before, claims = release.status(), cluster.claims()
    assert len(claims) == 3
    stateful_set = f"statefulset/{release.fullname}"

    with Committing(release) as committing:
        cluster.kubectl("scale", stateful_set, "--replicas=0")
        took_s = wait_for("no pod is left", READY_WITHIN_S, lambda: not release.pods())
        log.info(f"no pod is left after {took_s:.1f} s")

        said = release.upgrade(CHANGED)
        await_seen(release)
        assert "NOTE: the StatefulSet is scaled to zero, and stays so" in said
        assert release.stateful_set()["spec"]["replicas"] == 0
        assert release.pods() == [], "an upgrade has started pods of a quorum that is paused"

        cluster.kubectl("scale", stateful_set, "--replicas=3")
        took_s = release.await_voters(0, 1, 2)
        log.info(f"three voters are ready again after {took_s:.1f} s")
        # The revision that was made in that time has a 0.
        pods = release.pod_uids()
        with pytest.raises(CommandFailedError) as refused:
            cluster.helm("rollback", release.name, "2")
        assert "has 3 replicas, and this revision has 0 replicas" in str(refused.value)
        await_seen(release)
        assert release.pod_uids() == pods, "a rollback that was refused has stopped a pod"
        # While none runs nothing is committed; whatever was is there.
        gap_s = committing.judge(longest_gap_s=READY_WITHIN_S)

    log.info(f"longest time without a commit: {gap_s:.2f} s, the pause included")
    after = release.status()
    assert after["ClusterId"] == before["ClusterId"]
    assert after["CurrentVoters"] == before["CurrentVoters"], "a disk is another one"
    assert after["LeaderEpoch"] > before["LeaderEpoch"]
    assert cluster.claims() == claims, "a number deleted a disk"
