"""The operator's Deployment is available while all is in step, and Helm waits for that."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from tests.e2e.cluster import READY_WITHIN_S, is_ready, wait_for
from tests.e2e.operating import ENABLED, Operator

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

log = logging.getLogger(__name__)


def test_it_is_available_while_all_is_in_step(cluster: Cluster) -> None:
    release = cluster.release("q", ENABLED)
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
