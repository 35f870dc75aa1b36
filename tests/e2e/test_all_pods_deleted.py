"""All controllers' pods are deleted together: what was committed is there."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import READY_WITHIN_S, wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import installed

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

pytestmark = pytest.mark.weekly
log = logging.getLogger(__name__)


def test_the_same_quorum_comes_back(cluster: Cluster) -> None:
    release, operator = installed(cluster)
    before = release.status()
    deleted = release.pod_uids()

    with Committing(release) as committing:
        cluster.kubectl("delete", "pod", "--selector", release.controllers, "--wait=false")

        def all_new() -> bool | str:
            there = release.pod_uids()
            return (len(there) == 3 and not there & deleted) or f"{len(there & deleted)} are old"

        wait_for("three other pods", READY_WITHIN_S, all_new)
        operator.await_rest(0, 1, 2)

    # While none runs nothing is committed; whatever was is there.
    log.info(
        f"longest time without a commit: {committing.judge(longest_gap_s=READY_WITHIN_S):.2f} s"
    )
    after = release.status()
    assert after["ClusterId"] == before["ClusterId"]
    assert after["CurrentVoters"] == before["CurrentVoters"]
