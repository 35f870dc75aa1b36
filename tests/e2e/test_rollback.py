"""`helm rollback` to a revision that was made before a `kubectl scale`: the number stays."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import CHART, READY_WITHIN_S, wait_for
from tests.e2e.commands import CommandFailedError
from tests.e2e.committing import Committing
from tests.e2e.operating import DISABLED

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release

pytestmark = [pytest.mark.long, pytest.mark.weekly]
log = logging.getLogger(__name__)
SETTING = "num.partitions=3"


def installed_and_scaled(cluster: Cluster, *values: str, first: int, then: int) -> Release:
    """Revision 1, then a scale."""
    release = cluster.release("q", DISABLED, *values)
    release.install()
    release.await_voters(*range(first))
    cluster.kubectl("scale", f"statefulset/{release.fullname}", f"--replicas={then}")
    release.await_voters(*range(then))
    return release


def has_setting(release: Release) -> bool:
    """True if the controllers have the setting that revision 2 adds."""
    told = release.cluster.get("configmaps", release.fullname)["data"]["controller.properties"]
    return SETTING in told.splitlines()


def change(release: Release) -> None:
    """Revision 2: a setting, by which the pods are made again one after the other."""
    release.upgrade(f"config.{SETTING.replace('.', chr(92) + '.')}")
    assert has_setting(release)


def await_rolled(release: Release) -> float:
    """Until all pods are of the newest revision; the seconds that it took."""

    def look() -> bool | str:
        found = release.stateful_set()
        status, wanted = found["status"], found["spec"]["replicas"]
        return (
            status["observedGeneration"] == found["metadata"]["generation"]
            and status["currentRevision"] == status["updateRevision"]
            and status.get("updatedReplicas") == wanted
        ) or str(status)

    return wait_for("all pods are of the newest revision", 2 * READY_WITHIN_S, look)


def test_a_rollback_that_would_scale_is_refused_and_an_upgrade_goes_back(cluster: Cluster) -> None:
    release = installed_and_scaled(cluster, first=3, then=5)
    claims = cluster.claims()

    with Committing(release) as committing:
        change(release)
        generation = release.stateful_set()["metadata"]["generation"]
        with pytest.raises(CommandFailedError) as refused:
            cluster.helm("rollback", release.name, "1")
        said = str(refused.value)
        assert "has 5 replicas, and this revision has 3 replicas: a rollback would scale" in said
        assert release.stateful_set()["metadata"]["generation"] == generation
        assert has_setting(release), "a rollback that was refused has changed something"

        # As the refusal says.
        clear = ("delete", "secret", "--selector")
        selector = f"owner=helm,name={release.name},status=pending-rollback"
        assert f"{' '.join(clear)} {selector}" in " ".join(said.split())
        cluster.kubectl(*clear, selector)
        values = cluster.helm("get", "values", release.name, "--revision", "1", "--output", "yaml")
        reset = ("--reset-values", "--values", "-")
        cluster.helm("upgrade", release.name, str(CHART), *reset, text=values)
        assert not has_setting(release)
        took_s = await_rolled(release) + release.await_voters(0, 1, 2, 3, 4)
        log.info(f"five voters run revision 1 again after {took_s:.1f} s")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    assert cluster.claims() == claims, "a rollback deleted a disk"


def test_a_rollback_leaves_a_number_alone_that_no_revision_has(cluster: Cluster) -> None:
    release = installed_and_scaled(cluster, "replicaCount=null", first=1, then=3)
    claims = cluster.claims()

    with Committing(release) as committing:
        change(release)
        cluster.helm("rollback", release.name, "1")
        assert not has_setting(release)
        took_s = await_rolled(release) + release.await_voters(0, 1, 2)
        log.info(f"three voters run revision 1 again after {took_s:.1f} s")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    assert cluster.claims() == claims, "a rollback deleted a disk"
