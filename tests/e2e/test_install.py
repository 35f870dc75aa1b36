"""A user installs a quorum with helm on a cluster that they do not know well."""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.chart.rendering import ALONE
from tests.e2e.cluster import CHART, READY_WITHIN_S, wait_for
from tests.e2e.commands import CommandFailedError, run

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

log = logging.getLogger(__name__)
# What the operator has, a controller with TLS, or one that has taken a snapshot.
ELSEWHERE = re.compile(r"quorate_(autojoin|certificate|admin_certificate|latest_snapshot)_.*")


@pytest.mark.parametrize("values", [(), ("tls.enabled=true",)], ids=["plaintext", "mutual-tls"])
def test_three_controllers_become_one_quorum(cluster: Cluster, values: tuple[str, ...]) -> None:
    release = cluster.release("q", *values)
    start = time.monotonic()
    release.install()

    release.await_voters(0, 1, 2, within_s=READY_WITHIN_S)
    took_s = time.monotonic() - start
    log.info(f"install to three voters, all ready: {took_s:.1f} s")

    def one_leads() -> bool | str:
        state = re.compile(r"^quorate_current_state\{.*state=\"leader\"\} (\S+)", re.MULTILINE)
        told = sorted(found for pod in range(3) for found in state.findall(release.metrics(pod)))
        return told == ["0.0", "0.0", "1.0"] or str(told)

    wait_for("metrics that tell of one leader", READY_WITHIN_S, one_leads)
    assert release.status()["CurrentObservers"] == []
    cluster.helm("test", "q", "--timeout", f"{READY_WITHIN_S}s")
    assert all(
        status.get("restartCount") == 0
        for pod in release.pods()
        for status in (
            *pod["status"]["containerStatuses"],
            *pod["status"]["initContainerStatuses"],
        )
    )


def test_what_alerts_and_the_dashboard_name_is_on_a_running_pod(cluster: Cluster) -> None:
    release = cluster.release("q")
    release.install()
    release.await_voters(0, 1, 2)

    texts: list[str] = []

    def all_tell() -> bool | str:
        # A pod is ready without its sidecar.
        try:
            texts[:] = [release.metrics(pod, port) for pod in range(3) for port in (9464, 9465)]
        except CommandFailedError as error:
            return str(error)
        return True

    wait_for("metrics of controllers and sidecars", READY_WITHIN_S, all_tell)
    there = {
        sample.name
        for text in texts
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    values = str(CHART / "ci" / "monitoring-values.yaml")
    named = set(
        re.findall(
            r"\bquorate_[a-z0-9_]+",
            run(
                "helm",
                "template",
                "q",
                str(CHART),
                "--kube-version",
                "1.34.0",
                *ALONE,
                "--values",
                values,
                "--show-only",
                "templates/prometheusrule.yaml",
                "--show-only",
                "templates/dashboard.yaml",
            ),
        )
    )
    assert {name for name in named if not ELSEWHERE.fullmatch(name)} <= there


@pytest.mark.parametrize("name", sorted(path.name for path in (CHART / "ci").glob("*.yaml")))
def test_the_api_server_takes_the_manifests(cluster: Cluster, name: str) -> None:
    rendered = run(
        *("helm", "template", "q", str(CHART), "--namespace", cluster.namespace),
        *("--kube-version", "1.34.0", *ALONE, "--values", str(CHART / "ci" / name)),
    )
    # Kinds of other projects are not known to every cluster.
    own = [
        document
        for document in yaml.safe_load_all(rendered)
        if document
        and document["apiVersion"].partition("/")[0]
        not in ("monitoring.coreos.com", "cert-manager.io")
    ]

    cluster.kubectl("apply", "--dry-run=server", "--filename", "-", text=yaml.safe_dump_all(own))
