"""The number of controllers is kubectl's: no upgrade and no rollback changes it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.chart.api_server import TOKEN, ApiServer
from tests.chart.looked_up import There, cluster_id, looked_up, stateful_set, thing
from tests.chart.rendering import Helm, one
from tests.chart.test_values import notes

if TYPE_CHECKING:
    from pathlib import Path

LEFT_OUT = {"quorate/replicas": "left-out"}
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


def orphan(ordinal: int, instance: str = "q") -> dict[str, Any]:
    """A pod that a StatefulSet left when it was deleted with --cascade=orphan."""
    labels = {
        "app.kubernetes.io/instance": instance,
        "app.kubernetes.io/component": "controller",
    }
    return thing("v1", "Pod", f"q-quorate-{ordinal}", metadata={"labels": labels})


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
    there = There((stateful_set(5, **LEFT_OUT), cluster_id()))
    with looked_up(helm, tmp_path, there) as beside:
        objects = beside.objects(UPGRADE, *values)
    assert number(objects) is None
    assert one(objects, "StatefulSet")["metadata"]["annotations"] == LEFT_OUT

    with looked_up(helm, tmp_path, There((stateful_set(5), cluster_id()))) as beside:
        objects = beside.objects(UPGRADE, *values)
    assert number(objects) == 5
    assert "annotations" not in one(objects, "StatefulSet")["metadata"]


def test_a_set_that_is_made_again_around_its_pods_has_as_many(helm: Helm, tmp_path: Path) -> None:
    pods = (orphan(0), orphan(4), orphan(9, instance="other"))
    with looked_up(helm, tmp_path, There((*pods, cluster_id()))) as beside:
        assert number(beside.objects(UPGRADE)) == 5
        assert number(beside.objects(UPGRADE, *OMIT)) == 5


def test_the_notes_say_what_is_unusual_about_the_number(helm: Helm, tmp_path: Path) -> None:
    def said(folder: str, live: dict[str, Any], *words: str) -> str:
        (tmp_path / folder).mkdir()
        there = There((live, cluster_id()))
        with looked_up(helm, tmp_path, there) as beside:
            return notes(beside, tmp_path / folder, UPGRADE, *words)

    zero = said("zero", stateful_set(0))
    assert "scaled to zero, and stays so" in zero
    assert "bear the loss" not in zero
    assert "the StatefulSet has 5 replicas, which stay" in said("five", stateful_set(5))
    assert "keeps one: left out, it would become 1" in said("kept", stateful_set(5), *OMIT)
    assert "neither an upgrade nor a rollback" in said("out", stateful_set(5, **LEFT_OUT), *OMIT)


def rolled_back(
    helm: Helm, folder: Path, live: int | None, *words: str, token: str = TOKEN, **annotations: str
) -> subprocess.CompletedProcess[str]:
    """Run the hook of a revision with these values beside what is there."""
    container = recorded(helm.objects(*words))
    with ApiServer(folder) as server:
        server.replicas = live
        server.annotations = annotations
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
    ("live", "words", "annotations"),
    [
        (3, (), {}),
        (5, ("--set", "replicaCount=5"), {}),
        (5, OMIT, LEFT_OUT),
        (None, (), {}),
    ],
)
def test_a_rollback_to_the_same_number_goes_on(
    helm: Helm,
    tmp_path: Path,
    live: int | None,
    words: tuple[str, ...],
    annotations: dict[str, str],
) -> None:
    done = rolled_back(helm, tmp_path, live, *words, **annotations)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "the number of controllers stays as it is\n"


@pytest.mark.parametrize(
    ("live", "words", "said"),
    [
        (5, (), "has 5 replicas, and this revision has 3 replicas: a rollback would scale"),
        (0, (), "has 0 replicas, and this revision has 3 replicas"),
        (5, OMIT, "leaves the number out, which Kubernetes takes for 1"),
    ],
)
def test_a_rollback_that_would_scale_is_refused(
    helm: Helm, tmp_path: Path, live: int, words: tuple[str, ...], said: str
) -> None:
    done = rolled_back(helm, tmp_path, live, *words)

    assert done.returncode == 1, done.stderr
    assert said in done.stdout
    for remedy in (
        "helm get values q --revision N",
        "kubectl delete secret --selector owner=helm,name=q,status=pending-rollback",
        "helm rollback --no-hooks",
    ):
        assert remedy in done.stdout


def test_what_cannot_be_read_is_not_rolled_back(helm: Helm, tmp_path: Path) -> None:
    done = rolled_back(helm, tmp_path, 3, token="another")  # noqa: S106 - it opens nothing

    assert done.returncode == 1, done.stderr
    assert "StatefulSet q-quorate cannot be read, so nothing is rolled back: HTTP Error 401" in (
        done.stdout
    )
    assert "helm rollback --no-hooks" in done.stdout


def test_the_hook_of_a_rollback_has_the_rights_of_sidecars(helm: Helm) -> None:
    objects = helm.objects()
    job = one(objects, "Job", "q-quorate-rollback")
    pod = job["spec"]["template"]["spec"]

    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-rollback"
    subjects = one(objects, "RoleBinding")["subjects"]
    assert [each["name"] for each in subjects] == [pod["serviceAccountName"]]
    rule = one(objects, "Role")["rules"][0]
    assert (rule["resources"], rule["resourceNames"]) == (["statefulsets"], ["q-quorate"])
    assert rule["verbs"] == ["get"]
