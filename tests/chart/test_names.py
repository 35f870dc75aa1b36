"""Names of pods and services: they resolve in every cluster, and certificates are good for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.chart.looked_up import There, cluster_id, looked_up, stateful_set
from tests.chart.rendering import CHART, Helm, one

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TLS = ("--set", "tls.enabled=true")
DOMAIN = ("--set", "clusterDomain=other.example")
# Every pod searches these below its cluster's domain, which may be any.
POD = "$(POD_NAME).q-quorate-headless.default.svc"
# What the certificates of earlier revisions were made for, in this order.
WITH_DOMAIN = [
    "*.q-quorate-headless.default.svc.cluster.local",
    "*.q-quorate-headless.default.svc",
    "q-quorate-headless.default.svc.cluster.local",
    "q-quorate.default.svc.cluster.local",
    "q-quorate.default.svc",
    "q-quorate.default",
    "q-quorate",
    "localhost",
]


def advertised(objects: list[dict[str, Any]]) -> str:
    """The listener of a controller."""
    pod = one(objects, "StatefulSet")["spec"]["template"]["spec"]
    told = {each["name"]: each.get("value", "") for each in pod["containers"][0]["env"]}
    return str(told["QUORATE_ADVERTISED_LISTENERS"])


def asked_first(objects: list[dict[str, Any]]) -> list[str]:
    """The hosts of the bootstrap servers."""
    text = one(objects, "ConfigMap", "q-quorate")["data"]["controller.properties"]
    (line,) = (each for each in text.splitlines() if "bootstrap.servers" in each)
    return [each.rpartition(":")[0] for each in line.partition("=")[2].split(",")]


def certified(objects: list[dict[str, Any]]) -> list[str]:
    """The names that the Job makes a certificate for."""
    pod = one(objects, "Job", "q-quorate-issuer")["spec"]["template"]["spec"]
    told = {each["name"]: each.get("value", "") for each in pod["containers"][0]["env"]}
    found: list[str] = json.loads(told["DNS_NAMES"])
    return found


def is_covered(host: str, names: Iterable[str]) -> bool:
    """As TLS compares: a star stands for the first label."""
    return host in names or f"*.{host.partition('.')[2]}" in names


def test_names_have_no_domain_unless_it_is_given(helm: Helm) -> None:
    objects = helm.objects()
    assert advertised(objects) == f"GRPC://{POD}:9094"
    assert asked_first(objects)[-1] == "q-quorate.default.svc"
    assert "cluster.local" not in helm.render()

    objects = helm.objects(*DOMAIN)
    assert advertised(objects) == f"GRPC://{POD}.other.example:9094"
    assert asked_first(objects)[-1] == "q-quorate.default.svc.other.example"


@pytest.mark.parametrize("words", [(), DOMAIN], ids=["without", "with-domain"])
def test_certificates_are_good_for_every_name_that_is_called(
    helm: Helm, words: tuple[str, ...]
) -> None:
    objects = helm.objects(*TLS, *words)

    called = [advertised(objects).partition("://")[2].rpartition(":")[0], *asked_first(objects)]
    for host in called:
        assert is_covered(host.replace("$(POD_NAME)", "q-quorate-0"), certified(objects)), host


def test_while_a_revision_with_a_domain_is_replaced_both_names_are_good(helm: Helm) -> None:
    """Controllers of either are called by their own names, and no certificate is made again."""
    assert certified(helm.objects(*TLS)) == WITH_DOMAIN
    assert certified(helm.objects(*TLS, "--set", "clusterDomain=cluster.local")) == WITH_DOMAIN
    values = ("--values", CHART / "ci" / "cert-manager-values.yaml")
    assert one(helm.objects(*values), "Certificate")["spec"]["dnsNames"] == WITH_DOMAIN


@pytest.mark.parametrize("source", ["tls", "cert-manager"])
@pytest.mark.parametrize(
    ("before", "after"),
    [("", "b.example"), ("a.example", ""), ("a.example", "b.example"), ("a.example", "a.example")],
)
def test_while_the_domain_changes_certificates_are_good_for_both(
    helm: Helm, tmp_path: Path, source: str, before: str, after: str
) -> None:
    values = ("--values", CHART / "ci" / f"{source}-values.yaml")
    there = There((stateful_set(3, domain=before), cluster_id()))
    with looked_up(helm, tmp_path, there) as beside:
        objects = beside.objects("--is-upgrade", *values, "--set", f"clusterDomain={after}")
    if source == "tls":
        names = certified(objects)
    else:
        names = one(objects, "Certificate")["spec"]["dnsNames"]

    assert len(names) == len(set(names))
    for domain in (before, after):
        end = f"default.svc{domain and f'.{domain}'}"
        for host in (f"q-quorate-0.q-quorate-headless.{end}", f"q-quorate.{end}"):
            assert is_covered(host, names), host


def test_every_service_has_the_families_of_addresses(helm: Helm) -> None:
    on = "metrics.serviceMonitor.enabled=true"

    def services(*words: str) -> list[dict[str, Any]]:
        objects = helm.objects("--set", on, *words)
        return [each["spec"] for each in objects if each["kind"] == "Service"]

    families = "service.ipFamilyPolicy=PreferDualStack,service.ipFamilies={IPv6,IPv4}"
    found = services("--set", families)
    assert len(found) == 4
    for spec in found:
        assert spec["ipFamilyPolicy"] == "PreferDualStack"
        assert spec["ipFamilies"] == ["IPv6", "IPv4"]
    for spec in services():
        assert not {"ipFamilyPolicy", "ipFamilies"} & set(spec)
