"""The identity of a quorum: its cluster id and its name, which no rendering changes."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.chart.looked_up import There, cluster_id, looked_up, stateful_set
from tests.chart.rendering import CHART, CLUSTER_ID, ROOT, VERSION, Helm, one

if TYPE_CHECKING:
    from pathlib import Path

UPGRADE = "--is-upgrade"
OTHER_ID = "bUkzOEVBNTcwNTJENDM2Qg"
IS_NEEDED = "clusterId is needed where the chart is rendered without a cluster"


def drawn(objects: list[dict[str, Any]]) -> str:
    found: str = one(objects, "ConfigMap", "q-quorate-cluster")["data"]["clusterId"]
    return found


def test_a_cluster_id_is_drawn_as_kafka_draws_one(helm: Helm, tmp_path: Path) -> None:
    with looked_up(helm, tmp_path, There()) as beside:
        first, second = drawn(beside.objects()), drawn(beside.objects())

    assert first != second
    assert re.fullmatch(r"[A-Za-z0-9]{21}[AQgw]", first)


def test_without_a_cluster_to_ask_no_id_is_drawn(helm: Helm) -> None:
    done = helm.run("template", "q", CHART, "--kube-version", VERSION)

    assert done.returncode != 0
    assert IS_NEEDED in done.stderr
    assert "quorate storage random-uuid" in done.stderr


def test_what_was_drawn_stays(helm: Helm, tmp_path: Path) -> None:
    with looked_up(helm, tmp_path, There((stateful_set(3), cluster_id()))) as beside:
        assert drawn(beside.objects(UPGRADE)) == CLUSTER_ID
        assert f"says that this quorum is {CLUSTER_ID}" in beside.refusal(
            UPGRADE, "--set", f"clusterId={OTHER_ID}"
        )


def test_a_set_whose_id_is_gone_gets_no_other_one(helm: Helm, tmp_path: Path) -> None:
    with looked_up(helm, tmp_path, There((stateful_set(3),))) as beside:
        said = beside.refusal(UPGRADE)
        assert drawn(beside.objects(UPGRADE, "--set", f"clusterId={OTHER_ID}")) == OTHER_ID

    assert "ConfigMap q-quorate-cluster, which has the id of its quorum, is not" in said
    assert "grep cluster.id /var/lib/quorate/metadata/meta.properties" in said


@pytest.mark.parametrize(
    "there",
    [
        There(forbidden=frozenset({"namespaces"})),
        There(has_namespace=False),
        There((stateful_set(3), cluster_id()), forbidden=frozenset({"namespaces", "pods"})),
    ],
    ids=["may-not-read-namespaces", "namespace-is-yet-to-be-made", "upgrade-with-few-rights"],
)
def test_a_cluster_is_known_with_the_rights_that_the_chart_needs(
    helm: Helm, tmp_path: Path, there: There
) -> None:
    with looked_up(helm, tmp_path, there) as beside:
        assert drawn(beside.objects(*([UPGRADE] if there.objects else [])))


@pytest.mark.parametrize("values", ["nameOverride=metadata", "fullnameOverride=metadata"])
def test_an_upgrade_to_another_name_is_refused(helm: Helm, tmp_path: Path, values: str) -> None:
    with looked_up(helm, tmp_path, There((stateful_set(3), cluster_id()))) as beside:
        said = beside.refusal(UPGRADE, "--set", values)
        renamed = beside.objects(UPGRADE, "--set", f"{values},allowRename=true")

    assert "this release runs as q-quorate, and an empty quorum named" in said
    assert "give fullnameOverride=q-quorate, or allowRename=true if that is meant" in said
    assert one(renamed, "StatefulSet")["metadata"]["name"] != "q-quorate"


def test_a_set_of_another_release_is_no_other_name_of_this_one(helm: Helm, tmp_path: Path) -> None:
    with looked_up(helm, tmp_path, There((stateful_set(3), cluster_id()))) as beside:
        objects = beside.objects(UPGRADE, release="other")

    assert one(objects, "StatefulSet")["metadata"]["name"] == "other-quorate"


def test_labels_that_select_pods_stay(helm: Helm, tmp_path: Path) -> None:
    with looked_up(helm, tmp_path, There((stateful_set(3), cluster_id()))) as beside:
        said = beside.refusal(UPGRADE, "--set", "nameOverride=m,fullnameOverride=q-quorate")

    assert "by app.kubernetes.io/name=quorate, which cannot be changed" in said
    assert "give nameOverride=quorate" in said


def test_the_command_for_kubectl_apply_says_the_same_twice(helm: Helm) -> None:
    """Without what Helm alone can run, and without a number that would be put back."""
    text = (ROOT / "docs" / "gitops.md").read_text()
    found = re.search(r"^helm (template .*?) \| kubectl apply", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    command = found[1].replace("\\\n", " ").replace("deploy/helm/quorate", str(CHART))
    words = shlex.split(command)

    first, second = helm.run(*words), helm.run(*words)

    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    objects = [each for each in yaml.safe_load_all(first.stdout) if each]
    assert "replicas" not in one(objects, "StatefulSet")["spec"]
    for each in objects:
        assert "helm.sh/hook" not in each["metadata"].get("annotations", {})
