"""The operator's Deployment: where its pods run, and how many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.chart.rendering import Helm, one

if TYPE_CHECKING:
    from collections.abc import Mapping

ON = ("--set", "operator.enabled=true")
CONTROLLERS = (
    *("--set", "nodeSelector.pool=quorate,priorityClassName=important"),
    *("--set", "tolerations[0].key=dedicated,tolerations[0].operator=Exists"),
)


def template(helm: Helm, *words: str) -> Mapping[str, Any]:
    found: dict[str, Any] = one(helm.objects(*ON, *words), "Deployment")["spec"]["template"]
    return found


def keys(pod: Mapping[str, Any]) -> dict[str, int | None]:
    """Seconds by the taint that is tolerated."""
    return {each["key"]: each.get("tolerationSeconds") for each in pod["tolerations"]}


def test_it_moves_off_a_dead_node_soon(helm: Helm) -> None:
    gone = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

    assert keys(template(helm)["spec"]) == dict.fromkeys(gone, 5)
    longer = template(helm, "--set", "operator.tolerationSeconds=40")["spec"]
    assert keys(longer) == dict.fromkeys(gone, 40)


def test_it_runs_where_the_controllers_do_unless_told_otherwise(helm: Helm) -> None:
    pod = template(helm, *CONTROLLERS)["spec"]
    assert (pod["nodeSelector"], pod["priorityClassName"]) == ({"pool": "quorate"}, "important")
    assert "dedicated" in keys(pod)

    own = "operator.nodeSelector.pool=system,operator.priorityClassName=own"
    tolerations = "operator.tolerations[0].key=system,operator.tolerations[0].operator=Exists"
    affinity = 'operator.affinity={"nodeAffinity": {}}'
    told = ("--set", own, "--set", tolerations, "--set-json", affinity)
    pod = template(helm, *CONTROLLERS, *told)["spec"]
    assert (pod["nodeSelector"], pod["priorityClassName"]) == ({"pool": "system"}, "own")
    assert {"system"} == {key for key in keys(pod) if "/" not in key}
    assert pod["affinity"] == {"nodeAffinity": {}}


def test_two_of_it_keep_to_two_nodes(helm: Helm) -> None:
    words = ("--set", "operator.replicaCount=2")
    deployment = one(helm.objects(*ON, *words), "Deployment")["spec"]

    assert deployment["replicas"] == 2
    affinity = template(helm, *words)["spec"]["affinity"]
    (wish,) = affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selected = wish["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert selected == deployment["selector"]["matchLabels"]


def test_its_pod_has_labels_and_annotations_of_its_own(helm: Helm) -> None:
    words = "operator.podLabels.team=a,operator.podAnnotations.mesh=off,podLabels.team=b"
    metadata = template(helm, "--set", words)["metadata"]

    assert metadata["labels"]["team"] == "a"
    assert metadata["labels"]["app.kubernetes.io/component"] == "operator"
    assert metadata["annotations"] == {"mesh": "off"}
