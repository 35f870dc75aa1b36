"""Alerts are silent while all is well, fire when pods stop, and end when they come back."""

from __future__ import annotations

import json
import logging
import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.chart.monitoring import Rule, rules_of
from tests.chart.rendering import Helm
from tests.e2e.cluster import wait_for
from tests.e2e.operating import installed
from tests.e2e.scraping import EVERY_S, Scraping

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release

pytestmark = [pytest.mark.long, pytest.mark.weekly]
log = logging.getLogger(__name__)
# Some wait for five minutes, which is long for a test.
FOR_S_MAX = 30.0
# What a busy machine does to others is not asked here.
OF_PODS = {
    "QuorateControllerNotReady",
    "QuorateLeaderContradiction",
    "QuorateMajorityAtRisk",
    "QuorateNoActiveController",
    "QuorateOperatorStalled",
    "QuorateSeveralActiveControllers",
    "QuorateVoterChangeStuck",
    "QuorateVoterMissing",
}
FIRES_WITHIN_S = 300.0
NO_IMAGE = "localhost/there-is-none:1"


def firing(rules: list[Rule], scraping: Scraping) -> set[str]:
    """The names of the alerts that fire now."""
    samples, now_s = scraping.samples(), time.time()
    return {rule.name for rule in rules if rule.firing(samples, now_s, EVERY_S)}


def await_firing(rules: list[Rule], scraping: Scraping, *names: str) -> float:
    """Until at least these fire; the seconds that it took."""

    def look() -> bool | str:
        found = firing(rules, scraping)
        return found >= set(names) or f"firing are {sorted(found)}"

    return wait_for(f"the alerts {', '.join(names)}", FIRES_WITHIN_S, look)


def run_image(release: Release, ordinal: int, image: str) -> None:
    """Let the controller's container run another image; one that there is not keeps it down."""
    container = {"name": "controller", "image": image}
    patch = json.dumps({"spec": {"containers": [container]}})
    release.cluster.kubectl("patch", "pod", f"{release.fullname}-{ordinal}", "--patch", patch)


def test_alerts_fire_when_pods_stop(cluster: Cluster) -> None:
    program = shutil.which("helm")
    assert program is not None
    rules = [
        replace(rule, for_s=min(rule.for_s, FOR_S_MAX))
        for rule in rules_of(Helm(program))
        if rule.name in OF_PODS
    ]
    assert len(rules) == len(OF_PODS)
    release, operator = installed(cluster)
    first, second = (node for node in range(3) if node != release.leader())

    with Scraping(release) as scraping:
        # Long enough for whatever has to hold for a while.
        time.sleep(FOR_S_MAX + 10)
        assert firing(rules, scraping) == set()

        run_image(release, first, NO_IMAGE)
        took_s = await_firing(rules, scraping, "QuorateVoterMissing", "QuorateMajorityAtRisk")
        log.info(f"one pod stopped: alerts after {took_s:.1f} s")
        assert "QuorateNoActiveController" not in firing(rules, scraping)

        run_image(release, second, NO_IMAGE)
        took_s = await_firing(rules, scraping, "QuorateNoActiveController")
        log.info(f"two pods stopped: QuorateNoActiveController after {took_s:.1f} s")

        for ordinal in (first, second):
            run_image(release, ordinal, cluster.image)
        operator.await_rest(0, 1, 2)
        took_s = wait_for(
            "no alert but of elections",
            FIRES_WITHIN_S,
            lambda: (
                firing(rules, scraping) <= {"QuorateElectionsTooFrequent"}
                or str(firing(rules, scraping))
            ),
        )
        log.info(f"all pods run: no alert after {took_s:.1f} s")
