"""Prometheus finds every port with metrics once, by either kind of monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.chart.rendering import CHART

if TYPE_CHECKING:
    from tests.chart.rendering import Helm

Object = dict[str, Any]
# The ports of a controller's pod, and that of the operator.
EVERY = {("StatefulSet", "metrics"), ("StatefulSet", "admin-metrics"), ("Deployment", "metrics")}


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def ports_of(objects: list[Object], selector: dict[str, str]) -> set[tuple[str, str]]:
    """The named ports of the pods that a selector finds."""
    found = set()
    for each in objects:
        if each["kind"] not in ("StatefulSet", "Deployment"):
            continue
        template = each["spec"]["template"]
        if selects(selector, template["metadata"]["labels"]):
            pod = template["spec"]
            for container in (*pod.get("initContainers", ()), *pod["containers"]):
                found |= {(each["kind"], port["name"]) for port in container.get("ports", ())}
    return found


def test_a_pod_monitor_finds_every_port_once(helm: Helm) -> None:
    objects = helm.objects("--values", CHART / "ci" / "monitoring-values.yaml")

    found: list[tuple[str, str]] = []
    for monitor in (each for each in objects if each["kind"] == "PodMonitor"):
        spec = monitor["spec"]
        names = {end["port"] for end in spec["podMetricsEndpoints"]}
        ports = ports_of(objects, spec["selector"]["matchLabels"])
        found += [port for port in ports if port[1] in names]
        assert names <= {name for _, name in ports}
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert sorted(found) == sorted(EVERY)


def test_a_service_monitor_finds_every_port_once(helm: Helm) -> None:
    objects = helm.objects("--values", CHART / "ci" / "service-monitor-values.yaml")

    (monitor,) = (each for each in objects if each["kind"] == "ServiceMonitor")
    spec = monitor["spec"]
    names = {end["port"] for end in spec["endpoints"]}
    found: list[tuple[str, str]] = []
    for service in (each for each in objects if each["kind"] == "Service"):
        if not selects(spec["selector"]["matchLabels"], service["metadata"]["labels"]):
            continue
        assert service["spec"]["publishNotReadyAddresses"], "the sick are watched, too"
        targets = {p["targetPort"] for p in service["spec"]["ports"] if p["name"] in names}
        ports = ports_of(objects, service["spec"]["selector"])
        found += [port for port in ports if port[1] in targets]
    assert sorted(found) == sorted(EVERY)
    assert monitor["metadata"]["labels"]["release"] == "prometheus"


@pytest.mark.parametrize("kind", ["podMonitor", "serviceMonitor"])
def test_without_an_operator_none_is_looked_for(helm: Helm, kind: str) -> None:
    objects = helm.objects("--set", f"metrics.{kind}.enabled=true,operator.enabled=false")

    assert not [each for each in objects if each["metadata"]["name"].endswith("-autojoin")]
