"""The number of controllers is kubectl's: no upgrade and no rollback changes it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.chart.api_server import TOKEN, ApiServer
from tests.chart.looked_up import There, cluster_id, looked_up, orphan, stateful_set
from tests.chart.rendering import Helm, one
from tests.chart.test_values import notes

if TYPE_CHECKING:
    from pathlib import Path

LEFT_OUT = "left-out"
OMIT = ("--set", "replicaCount=null")
UPGRADE = "--is-upgrade"


def number(objects: list[dict[str, Any]]) -> int | None:
    """The number in the manifest."""
    found: int | None = one(objects, "StatefulSet")["spec"].get("replicas")
    return found


def recorded(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """The container that compares before a rollback to this revision."""
    pod = one(objects, "Job", "q-quorate-rollback")["spec"]["template"]["spec"]
    found: dict[str, Any] = pod["containers"][0]
    return found


def marked(objects: list[dict[str, Any]]) -> str:
    """The mark of one revision by which the next one knows about the number."""
    found: str = one(objects, "ConfigMap", "q-quorate-cluster")["data"]["replicas"]
    return found


@pytest.mark.parametrize("live", [0, 1, 5])
def test_an_upgrade_has_the_number_that_is_there(helm: Helm, tmp_path: Path, live: int) -> None:
    with looked_up(helm, tmp_path, There((stateful_set(live), cluster_id()))) as beside:
        objects = beside.objects(UPGRADE, "--set", "replicaCount=3,backup.enabled=true")

    assert number(objects) == live
    environment = {each["name"]: each.get("value") for each in recorded(objects)["env"]}
    assert environment["REPLICAS"] == str(live)


def test_a_first_installation_has_that_of_the_values_or_none(helm: Helm) -> None:
    assert number(helm.objects("--set", "replicaCount=5")) == 5
    assert number(helm.objects(*OMIT)) is None


@pytest.mark.parametrize("values", [OMIT, ("--set", "replicaCount=3")])
def test_the_first_installation_decides_whether_there_is_one(
    helm: Helm, tmp_path: Path, values: tuple[str, ...]
) -> None:
    """A number that one revision has and the next one has not becomes 1."""
    there = There((stateful_set(5), cluster_id(replicas=LEFT_OUT)))
    with looked_up(helm, tmp_path, there) as beside:
        objects = beside.objects(UPGRADE, *values)
    assert number(objects) is None
    assert marked(objects) == LEFT_OUT

    with looked_up(helm, tmp_path, There((stateful_set(5), cluster_id()))) as beside:
        objects = beside.objects(UPGRADE, *values)
    assert number(objects) == 5
    assert marked(objects) == "rendered"


def test_a_number_that_was_rendered_once_is_rendered_again(helm: Helm, tmp_path: Path) -> None:
    """Also where all annotations of the StatefulSet before are put back by hand."""
    began = helm.objects(*OMIT)
    assert (number(began), marked(began)) == (None, LEFT_OUT)

    pods = (orphan(0), orphan(4))
    there = There((*pods, cluster_id(replicas=marked(began))))
    with looked_up(helm, tmp_path, there) as beside:
        again = beside.objects(UPGRADE, *OMIT)
    assert (number(again), marked(again)) == (5, "rendered")

    annotated = stateful_set(5)
    annotated["metadata"]["annotations"] = {"quorate/replicas": LEFT_OUT}
    there = There((*pods, annotated, cluster_id(replicas=marked(again))))
    with looked_up(helm, tmp_path, there) as beside:
        assert number(beside.objects(UPGRADE, *OMIT)) == 5


@pytest.mark.parametrize(("kept", "expected"), [(LEFT_OUT, None), ("rendered", 1)])
def test_without_a_set_an_upgrade_takes_no_number_out(
    helm: Helm, tmp_path: Path, kept: str, expected: int | None
) -> None:
    with looked_up(helm, tmp_path, There((cluster_id(replicas=kept),))) as beside:
        assert number(beside.objects(UPGRADE, *OMIT)) == expected


def test_pods_are_listed_only_where_their_set_is_gone(helm: Helm, tmp_path: Path) -> None:
    there = There((stateful_set(5), cluster_id()), forbidden=frozenset({"pods"}))
    with looked_up(helm, tmp_path, there) as beside:
        assert number(beside.objects(UPGRADE, *OMIT)) == 5


def test_a_pod_that_ends_is_not_counted(helm: Helm, tmp_path: Path) -> None:
    ends = orphan(4, deletionTimestamp="2026-01-01T00:00:00Z")
    with looked_up(helm, tmp_path, There((orphan(0), ends, cluster_id()))) as beside:
        assert number(beside.objects(UPGRADE)) == 1


def test_annotations_of_the_operator_are_no_common_ones(helm: Helm) -> None:
    said = helm.refusal("--set", "commonAnnotations.quorate/replicas=left-out")

    assert "commonAnnotations has quorate/replicas, which is the operator's own" in said


def test_a_set_that_is_made_again_around_its_pods_has_as_many(helm: Helm, tmp_path: Path) -> None:
    pods = (orphan(0), orphan(4), orphan(9, instance="other"))
    with looked_up(helm, tmp_path, There((*pods, cluster_id()))) as beside:
        assert number(beside.objects(UPGRADE)) == 5
        assert number(beside.objects(UPGRADE, *OMIT)) == 5


def test_the_notes_say_what_is_unusual_about_the_number(helm: Helm, tmp_path: Path) -> None:
    def said(folder: str, live: int, *words: str, kept: str = "rendered") -> str:
        (tmp_path / folder).mkdir()
        there = There((stateful_set(live), cluster_id(replicas=kept)))
        with looked_up(helm, tmp_path, there) as beside:
            return notes(beside, tmp_path / folder, UPGRADE, *words)

    zero = said("zero", 0)
    assert "scaled to zero, and stays so" in zero
    assert "bear the loss" not in zero
    assert "the StatefulSet has 5 replicas, which stay" in said("five", 5)
    assert "keeps one: left out, it would become 1" in said("kept", 5, *OMIT)
    out = said("out", 5, *OMIT, kept=LEFT_OUT)
    assert "neither an upgrade nor a rollback" in out


def rolled_back(
    helm: Helm,
    folder: Path,
    live: int | None,
    *words: str,
    token: str = TOKEN,
    kept: str = "rendered",
) -> subprocess.CompletedProcess[str]:
    """Run the hook of a revision with these values while these objects exist."""
    container = recorded(helm.objects(*words))
    with ApiServer(folder) as server:
        server.replicas = live
        server.recorded = kept
        (server.account / "token").write_text(token)
        environment = {each["name"]: each["value"] for each in container["env"]}
        python, *rest = container["command"]
        assert python == "python"
        return subprocess.run(
            [sys.executable, "-I", *rest],
            env={
                **environment,
                **server.environment,
                "ACCOUNT": str(server.account),
            },
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.mark.parametrize(
    ("live", "words", "kept"),
    [
        (3, (), "rendered"),
        (5, ("--set", "replicaCount=5"), "rendered"),
        (5, OMIT, LEFT_OUT),
        (1, OMIT, "rendered"),
    ],
)
def test_a_rollback_to_the_same_number_goes_on(
    helm: Helm,
    tmp_path: Path,
    live: int,
    words: tuple[str, ...],
    kept: str,
) -> None:
    done = rolled_back(helm, tmp_path, live, *words, kept=kept)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "the number of controllers stays as it is\n"


@pytest.mark.parametrize(
    ("live", "words", "said", "wanted"),
    [
        (5, (), "has 5 replicas, and this revision has 3 replicas: a rollback would scale", 3),
        (0, (), "has 0 replicas, and this revision has 3 replicas", 3),
        (5, OMIT, "leaves the number out, which Kubernetes takes for 1", 1),
    ],
)
def test_a_rollback_that_would_scale_is_refused(
    helm: Helm, tmp_path: Path, live: int, words: tuple[str, ...], said: str, wanted: int
) -> None:
    done = rolled_back(helm, tmp_path, live, *words)

    assert done.returncode == 1, done.stderr
    assert said in done.stdout
    # The gentlest one first.
    at = [
        done.stdout.index(remedy)
        for remedy in (
            f"kubectl --namespace default scale statefulset/q-quorate --replicas={wanted}\n",
            "helm --namespace default rollback q N --no-hooks",
            "helm --namespace default get values q --revision N",
            "kubectl --namespace default delete secret --selector",
        )
    ]
    assert at == sorted(at)


@pytest.mark.parametrize("words", [(), OMIT])
def test_without_a_set_nothing_is_rolled_back(
    helm: Helm, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Its pods may be there, and more than that revision has."""
    done = rolled_back(helm, tmp_path, None, *words, kept=LEFT_OUT)

    assert done.returncode == 1, done.stderr
    assert "StatefulSet q-quorate is not there to be compared" in done.stdout
    assert "scale" not in done.stdout
    assert "--no-hooks" in done.stdout


def test_what_cannot_be_read_is_not_rolled_back(helm: Helm, tmp_path: Path) -> None:
    done = rolled_back(helm, tmp_path, 3, token="another")  # noqa: S106 - it opens nothing

    assert done.returncode == 1, done.stderr
    assert "the number of controllers cannot be compared (HTTP Error 401" in done.stdout
    assert "scale" not in done.stdout
    assert "--no-hooks" in done.stdout


@pytest.mark.parametrize("words", [(), ("--set", "serviceAccount.create=false")])
def test_the_hook_of_a_rollback_brings_its_own_account(helm: Helm, words: tuple[str, ...]) -> None:
    """That of the pods of an older revision may be gone."""
    name = "q-quorate-rollback"
    objects = helm.objects(*words)
    pod = one(objects, "Job", name)["spec"]["template"]["spec"]

    assert pod["serviceAccountName"] == name
    for kind in ("Job", "ServiceAccount", "Role", "RoleBinding"):
        annotations = one(objects, kind, name)["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "pre-rollback"
        assert ("helm.sh/hook-weight" in annotations) == (kind != "Job")
    assert [each["name"] for each in one(objects, "RoleBinding", name)["subjects"]] == [name]
    assert [
        (rule["resources"], rule["resourceNames"], rule["verbs"])
        for rule in one(objects, "Role", name)["rules"]
    ] == [
        (["statefulsets"], ["q-quorate"], ["get"]),
        (["configmaps"], ["q-quorate-cluster"], ["get"]),
    ]
