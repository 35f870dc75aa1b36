"""The identity of a quorum: its cluster id and its name, which no rendering changes."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.chart.looked_up import There, cluster_id, looked_up, orphan, stateful_set, thing
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


@pytest.mark.parametrize("words", [(), (UPGRADE,)], ids=["install", "upgrade"])
@pytest.mark.parametrize(
    ("there", "words_of_it"),
    [
        (orphan(0), "pods of q-quorate are there"),
        (thing("v1", "PersistentVolumeClaim", "data-q-quorate-0"), "claim data-q-quorate-0 is"),
    ],
    ids=["pods", "a-disk"],
)
def test_no_id_is_drawn_where_pods_or_a_disk_have_one(
    helm: Helm, tmp_path: Path, there: dict[str, Any], words_of_it: str, words: tuple[str, ...]
) -> None:
    with looked_up(helm, tmp_path, There((there,))) as beside:
        assert words_of_it in beside.refusal(*words)
        assert drawn(beside.objects(*words, "--set", f"clusterId={OTHER_ID}")) == OTHER_ID


def test_disks_that_were_moved_bring_the_id_of_their_quorum(helm: Helm, tmp_path: Path) -> None:
    moved = ("--set", "persistence.movedFrom=prod/q-quorate")
    with looked_up(helm, tmp_path, There()) as beside:
        assert "persistence.movedFrom needs clusterId, that of the disks" in beside.refusal(*moved)
        given = beside.objects(*moved, "--set", f"clusterId={OTHER_ID}")
        assert drawn(given) == OTHER_ID
    for ending in ("cluster", "bootstrap"):
        with looked_up(helm, tmp_path, There((cluster_id(OTHER_ID, ending),))) as beside:
            assert drawn(beside.objects(*moved)) == OTHER_ID


def test_pods_of_others_and_pods_that_end_have_no_id_of_this_quorum(
    helm: Helm, tmp_path: Path
) -> None:
    ends = orphan(1, deletionTimestamp="2026-01-01T00:00:00Z")
    with looked_up(helm, tmp_path, There((orphan(0, instance="other"), ends))) as beside:
        assert drawn(beside.objects())


def test_the_record_of_the_quorum_is_its_id(helm: Helm, tmp_path: Path) -> None:
    record = cluster_id(OTHER_ID, "bootstrap")
    with looked_up(helm, tmp_path, There((stateful_set(3), record))) as beside:
        assert drawn(beside.objects(UPGRADE)) == OTHER_ID
        said = beside.refusal(UPGRADE, "--set", f"clusterId={CLUSTER_ID}")
    assert f"ConfigMap q-quorate-bootstrap says that this quorum is {OTHER_ID}" in said

    with looked_up(helm, tmp_path, There((stateful_set(3), record, cluster_id()))) as beside:
        said = beside.refusal(UPGRADE)
    assert f"is {OTHER_ID}, and ConfigMap q-quorate-cluster says {CLUSTER_ID}" in said


@pytest.mark.parametrize("suffix", ["cluster", "bootstrap"])
def test_an_id_that_is_none_is_refused(helm: Helm, tmp_path: Path, suffix: str) -> None:
    with looked_up(helm, tmp_path, There((cluster_id("CLUSTER_ID", suffix),))) as beside:
        said = beside.refusal(UPGRADE)

    assert f'ConfigMap q-quorate-{suffix} has the clusterId "CLUSTER_ID", which is none' in said


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


def test_a_name_is_guarded_whatever_labels_are_added(helm: Helm, tmp_path: Path) -> None:
    labels = {"app.kubernetes.io/part-of": "shop", "app.kubernetes.io/component": "other"}
    there = There((stateful_set(3, **labels), cluster_id()))
    with looked_up(helm, tmp_path, there) as beside:
        said = beside.refusal(UPGRADE, "--set", "fullnameOverride=metadata")

    assert "this release runs as q-quorate" in said


@pytest.mark.parametrize("chart", ["second", "quorate-second"])
def test_the_set_of_another_alias_is_no_other_name_of_this_one(
    helm: Helm, tmp_path: Path, chart: str
) -> None:
    """A release may have the chart twice."""
    there = There((stateful_set(3, f"q-{chart}", chart=chart),))
    with looked_up(helm, tmp_path, there) as beside:
        objects = beside.objects(UPGRADE)

    assert one(objects, "StatefulSet")["metadata"]["name"] == "q-quorate"


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
