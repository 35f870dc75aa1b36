"""The operator's Deployment: where its pods run, and how many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.chart.rendering import Helm, one

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTROLLERS = (
    *("--set", "nodeSelector.pool=quorate,priorityClassName=important"),
    *("--set", "tolerations[0].key=dedicated,tolerations[0].operator=Exists"),
)


def template(helm: Helm, *words: str) -> Mapping[str, Any]:
    found: dict[str, Any] = one(helm.objects(*words), "Deployment")["spec"]["template"]
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
    deployment = one(helm.objects(), "Deployment")["spec"]

    assert deployment["replicas"] == 2
    affinity = template(helm)["spec"]["affinity"]
    (wish,) = affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selected = wish["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert selected == deployment["selector"]["matchLabels"]


def test_its_pod_has_labels_and_annotations_of_its_own(helm: Helm) -> None:
    words = "operator.podLabels.team=a,operator.podAnnotations.mesh=off,podLabels.team=b"
    metadata = template(helm, "--set", words)["metadata"]

    assert metadata["labels"]["team"] == "a"
    assert metadata["labels"]["app.kubernetes.io/component"] == "operator"
    assert metadata["annotations"] == {"mesh": "off"}


def checksums(helm: Helm, *words: str) -> tuple[str, str]:
    """Of the controllers' pods: as the StatefulSet has it, and as the operator's settings do."""
    objects = helm.objects(*words)
    annotations = one(objects, "StatefulSet")["metadata"]["annotations"]
    pod = one(objects, "Deployment")["spec"]["template"]["spec"]
    told = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    return annotations["quorate/template"], str(told["QUORATE_AUTOJOIN_TEMPLATE"])


@pytest.mark.parametrize(
    "change",
    [
        "image.tag=other",
        "podAnnotations.a=b",
        "config.num\\.partitions=3",
        "admin.config.admin\\.timeout=3",
        "quorum.fetchTimeoutMs=3000",
        "clusterDomain=example",
    ],
)
def test_what_rolls_the_controllers_makes_new_operators(helm: Helm, change: str) -> None:
    """Ready operators from before an upgrade report on the previous pods."""
    before = checksums(helm)
    after = checksums(helm, "--set", change)

    assert before[0] == before[1]
    assert after[0] == after[1]
    assert before != after


@pytest.mark.parametrize(
    "change", ["replicaCount=5", "service.type=NodePort", "backup.enabled=true"]
)
def test_what_rolls_no_controller_leaves_the_operators_alone(helm: Helm, change: str) -> None:
    assert checksums(helm, "--set", change) == checksums(helm)


def test_new_operators_begin_beside_old_ones_and_all_of_them_have_to_be_ready(helm: Helm) -> None:
    """With Recreate none would begin while an old one is on a node that died."""
    deployment = one(helm.objects(), "Deployment")["spec"]

    rolling = {"maxSurge": "100%", "maxUnavailable": 0}
    assert deployment["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}
    # Its pods are ready at the end of the roll, for which ten minutes, the default, may not do.
    assert deployment["progressDeadlineSeconds"] == 3600
    probe = deployment["template"]["spec"]["containers"][0]["readinessProbe"]
    assert probe["grpc"] == {"port": 9090, "service": "readiness"}


def test_it_lists_claims_only_where_they_are_kept(helm: Helm) -> None:
    def verbs(*words: str) -> list[str]:
        role = one(helm.objects(*words), "Role", "q-quorate-autojoin")
        found = [each for each in role["rules"] if "persistentvolumeclaims" in each["resources"]]
        return [verb for each in found for verb in each["verbs"]]

    assert verbs() == ["list"]
    assert verbs("--set", "persistence.retention.whenScaled=Delete") == []
    assert verbs("--set", "persistence.enabled=false") == []


def test_controllers_that_join_by_themselves_are_restarted_when_it_comes(helm: Helm) -> None:
    """Controllers read at their start who makes them voters."""

    def pod(enabled: str) -> object:
        objects = helm.objects("--set", f"operator.enabled={enabled}")
        metadata = one(objects, "StatefulSet")["spec"]["template"]["metadata"]
        return metadata["annotations"]["checksum/config"]

    assert pod("true") != pod("false")
