"""The operator's Deployment is available while all is in step, and Helm waits for that."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import READY_WITHIN_S, is_ready, wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import DISABLED, Operator

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

log = logging.getLogger(__name__)


def test_it_is_available_while_all_is_in_step(cluster: Cluster) -> None:
    release = cluster.release("q")
    operator = Operator(release)
    start_s = time.monotonic()
    release.install(waits=True)
    log.info(f"helm waited for {time.monotonic() - start_s:.1f} s")
    assert release.voters() == [0, 1, 2]
    assert [is_ready(pod) for pod in release.pods()] == [True] * 3
    operator.await_available("True")

    name = f"statefulset/{release.fullname}"
    cluster.kubectl("annotate", name, "quorate/paused=true")
    operator.await_available("False")
    cluster.kubectl("annotate", name, "quorate/paused-")
    operator.await_available("True")

    operator.stop()
    wait_for(
        "nobody says that all is in step",
        READY_WITHIN_S,
        lambda: (
            (said := operator.conditions()).get("MembersInStep") == (False, "OperatorStopped")
            or str(said)
        ),
    )


@pytest.mark.weekly
def test_it_comes_and_goes_by_an_upgrade(cluster: Cluster) -> None:
    release = cluster.release("q", DISABLED)
    operator = Operator(release)
    release.install()
    release.await_voters(0, 1, 2)
    before, pods = release.status(), release.pod_uids()

    with Committing(release) as committing:
        release.upgrade("operator.enabled=true", waits=True)
        with_operator = release.pod_uids()
        assert not pods & with_operator
        assert release.voters() == [0, 1, 2]
        assert operator.conditions()["MembersInStep"] == (True, "InStep")

        release.upgrade()

        def is_rolled() -> bool | str:
            left = with_operator & release.pod_uids()
            return not left or f"{len(left)} pods are of the revision before"

        wait_for("three other pods", 2 * READY_WITHIN_S, is_rolled)
        release.await_voters(0, 1, 2)

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    assert release.status()["CurrentVoters"] == before["CurrentVoters"]
