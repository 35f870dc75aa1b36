"""A pod that is scaled down and ends without its hook leaves a voter behind."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import Operator
from tests.e2e.watching import Departures

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

pytestmark = [pytest.mark.long, pytest.mark.weekly]
log = logging.getLogger(__name__)
GHOST_S = 60.0
LIFECYCLE = "/spec/template/spec/containers/0/lifecycle"


def test_a_ghost_is_removed_after_a_minute(cluster: Cluster) -> None:
    release = cluster.release("q", "replicaCount=4")
    operator = Operator(release)
    release.install()
    operator.await_rest(0, 1, 2, 3)
    kept = [voter for voter in release.status()["CurrentVoters"] if voter["id"] != 3]

    # Neither the operator nor the hook of pod 3 is there to remove its voter.
    operator.stop()
    template = cluster.get("statefulsets", release.fullname)["spec"]["template"]["spec"]
    hook = template["containers"][0]["lifecycle"]
    patch = ("patch", f"statefulset/{release.fullname}", "--type=json", "--patch")
    cluster.kubectl(*patch, json.dumps([{"op": "remove", "path": LIFECYCLE}]))
    cluster.kubectl("delete", "pod", f"{release.fullname}-3")
    release.await_voters(0, 1, 2, 3)
    assert "lifecycle" not in release.pod(3)["spec"]["containers"][0]
    release.let_lead(0)

    with Committing(release) as committing, Departures(release) as departures:
        cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=3")
        wait_for("three pods", READY_WITHIN_S, lambda: len(release.pods()) == 3)
        cluster.kubectl(*patch, json.dumps([{"op": "add", "path": LIFECYCLE, "value": hook}]))
        assert release.voters() == [0, 1, 2, 3], "there is no ghost to be removed"

        operator.start()
        took_s = operator.await_reason("GhostSeenOnce")
        assert release.voters() == [0, 1, 2, 3], "it was removed at the first sight"
        took_s += operator.await_rest(0, 1, 2, within_s=GHOST_S + READY_WITHIN_S)
        log.info(f"the ghost is gone after {took_s:.1f} s")

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    assert [ordinal for ordinal, _ in departures.seen] == [3]
    assert "Ghost" in operator.reasons()
    assert release.status()["CurrentVoters"] == kept
