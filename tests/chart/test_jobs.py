"""Pods that run for a moment: where the controllers may, for so long, and labelled as asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.chart.rendering import Helm, one

if TYPE_CHECKING:
    from collections.abc import Iterator

ON: Final = "backup.enabled=true,pipeline.report.enabled=true,tls.enabled=true"
NODES: Final = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
    }
}
DEDICATED: Final = (
    *("--set", ON),
    *("--set", "tolerations[0].key=dedicated,tolerations[0].operator=Exists"),
    *("--set", "nodeSelector.pool=quorate,priorityClassName=important"),
    *("--set", "jobs.podLabels.team=a,jobs.podAnnotations.mesh=off"),
    *("--set-json", f'affinity={{"nodeAffinity": {json.dumps(NODES)}, "podAntiAffinity": {{}}}}'),
)
MOMENTARY: Final = (
    "q-quorate-backup",
    "q-quorate-report",
    "q-quorate-issuer",
    "q-quorate-rollback",
)


def pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of each object that makes pods, and the template of its pods."""
    for each in objects:
        spec = each.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if each["kind"] == "Pod":
            yield each["metadata"]["name"], each
        elif "template" in spec:
            yield each["metadata"]["name"], spec["template"]


def test_every_pod_may_run_where_the_controllers_may(helm: Helm) -> None:
    found = dict(pods(helm.objects(*DEDICATED)))

    assert {*MOMENTARY, "q-quorate", "q-quorate-autojoin", "q-quorate-test"} == set(found)
    for template in found.values():
        spec = template["spec"]
        assert {"key": "dedicated", "operator": "Exists"} in spec["tolerations"]
        assert spec["nodeSelector"] == {"pool": "quorate"}
        assert spec["priorityClassName"] == "important"


def test_wishes_about_nodes_are_those_of_the_controllers(helm: Helm) -> None:
    found = dict(pods(helm.objects(*DEDICATED)))

    for name in (*MOMENTARY[1:], "q-quorate-test"):
        assert found[name]["spec"]["affinity"] == {"nodeAffinity": NODES}
    # It has to go where that disk is.
    assert set(found["q-quorate-backup"]["spec"]["affinity"]) == {"podAffinity"}


def test_pods_that_run_for_a_moment_have_labels_and_annotations_of_their_own(helm: Helm) -> None:
    found = dict(pods(helm.objects(*DEDICATED)))

    for name in (*MOMENTARY, "q-quorate-test"):
        metadata = found[name]["metadata"]
        assert metadata["labels"]["team"] == "a"
        assert metadata["labels"]["app.kubernetes.io/component"] == name.rpartition("-")[2]
        assert metadata["annotations"]["mesh"] == "off"
    assert "team" not in found["q-quorate"]["metadata"]["labels"]


@pytest.mark.parametrize(("name", "value"), [("backup", "backup"), ("report", "pipeline.report")])
def test_one_run_that_hangs_keeps_no_other_away_for_ever(helm: Helm, name: str, value: str) -> None:
    words = ("--set", f"{value}.enabled=true,{value}.timeoutSeconds=120")
    spec = one(helm.objects(*words), "CronJob", f"q-quorate-{name}")["spec"]

    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 120
    assert spec["startingDeadlineSeconds"] == 3600
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (1, 3)


@pytest.mark.parametrize(
    "section", ["podLabels", "jobs.podLabels", "operator.podLabels", "commonLabels"]
)
def test_labels_of_the_chart_are_its_own(helm: Helm, section: str) -> None:
    said = helm.refusal("--set", f"{section}.app\\.kubernetes\\.io/name=x")

    assert f"{section} has app.kubernetes.io/name, which is the chart's own: take it out" in said


def test_labels_that_select_nothing_may_be_other_ones(helm: Helm) -> None:
    """A version, and a whole that the quorum is part of."""
    part_of, version = "app\\.kubernetes\\.io/part-of", "app\\.kubernetes\\.io/version"
    words = [
        word
        for section in ("podLabels", "jobs.podLabels", "operator.podLabels", "commonLabels")
        for word in ("--set", f"{section}.{part_of}=shop", "--set-string", f"{section}.{version}=7")
    ]

    objects = helm.objects("--set", ON, *words)

    labelled = [each["metadata"] for each in objects]
    labelled += [template["metadata"] for _, template in pods(objects)]
    assert {
        (each["labels"]["app.kubernetes.io/part-of"], each["labels"]["app.kubernetes.io/version"])
        for each in labelled
    } == {("shop", "7")}
    # A key that is there twice makes invalid YAML for Kubernetes.
    text = helm.render("--set", ON, *words)
    for document in text.split("\n---\n"):
        head = document.partition("\nspec:")[0]
        assert head.count("app.kubernetes.io/part-of: shop") <= 1


def test_labels_by_which_helm_knows_its_objects_are_no_common_ones(helm: Helm) -> None:
    for key in ("helm.sh/chart", "app.kubernetes.io/managed-by"):
        said = helm.refusal("--set", f"commonLabels.{key.replace('.', chr(92) + '.')}=x")
        assert f"commonLabels has {key}, which is the chart's own" in said


def test_no_key_is_there_twice(helm: Helm) -> None:
    text = helm.render(
        *("--set", "metrics.podMonitor.enabled=true,metrics.podMonitor.labels.team=a"),
        *("--set", "commonLabels.team=b"),
        *("--set", "podAnnotations.kubectl\\.kubernetes\\.io/default-container=shipper"),
        *("--set", "topologySpreadConstraints[0].topologyKey=zone"),
        *("--set", "topologySpreadConstraints[0].labelSelector.matchLabels.own=x"),
    )

    # The controllers have a monitor, and the operator.
    assert text.count("team: a") == 2
    assert text.count("default-container") == 1
    assert text.count("own: x") == 1
    constraint = text.partition("topologySpreadConstraints:")[2].partition("initContainers:")[0]
    assert constraint.count("labelSelector") == 1
