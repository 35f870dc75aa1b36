"""deploy/examples/spark: what operators and spark-submit are given fits the image and the chart."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from tests.chart.rendering import ROOT, Helm, one

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = ROOT / "deploy" / "examples" / "spark"
IMAGE: Final = "localhost/quorate-pipeline:dev"
MAIN: Final = "local:///opt/quorate/pipeline.py"
POD: Final = {
    "runAsNonRoot": True,
    "runAsUser": 185,
    "runAsGroup": 185,
    "fsGroup": 185,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
# Of the fields that the two operators' schemas know (their CRDs of August 2026) those that are used
# here; an API server drops others without a word.
KUBEFLOW: Final = {
    *("type", "pythonVersion", "mode", "sparkVersion", "image", "imagePullPolicy", "arguments"),
    *("mainApplicationFile", "sparkConf", "restartPolicy", "timeToLiveSeconds", "volumes"),
    *("driver", "executor"),
}
KUBEFLOW_NEEDED: Final = {"driver", "executor", "mainApplicationFile", "sparkVersion", "type"}
KUBEFLOW_POD: Final = {
    *("cores", "memory", "memoryOverhead", "podSecurityContext", "securityContext"),
    *("volumeMounts", "serviceAccount", "instances"),
}
SCHEDULE: Final = {
    *("schedule", "timeZone", "concurrencyPolicy", "successfulRunHistoryLimit"),
    *("failedRunHistoryLimit", "template"),
}
APACHE: Final = {
    *("pyFiles", "driverArgs", "runtimeVersions", "sparkConf", "driverSpec", "executorSpec"),
}
# Stands in for spark-submit and kubectl: notes its words, and the settings that it is given.
STUB: Final = """#!/bin/sh
case "$(basename "$0") $*" in
  *"cluster.server"*) printf https://10.0.0.1:6443 ;;
  *"namespace}"*) printf metadata ;;
  *"status.phase"*) printf "$PHASE" ;;
  *" logs "*) echo "the tables" ;;
esac
if [ "$(basename "$0")" = spark-submit ]; then
  echo "noise of spark-submit"
  printf '%s\\n' "$@" > "$SAID"
  while [ "$1" != --properties-file ]; do shift; done
  cat "$2" > "$SAID.settings"
  exit "$STATUS"
fi
"""


def load(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def application(name: str, kind: str = "SparkApplication") -> dict[str, Any]:
    found: dict[str, Any] = one(load(name), kind)["spec"]
    return found


def spark_version() -> str:
    lock = (ROOT / "requirements-pipeline.lock").read_text()
    return next(line for line in lock.splitlines() if line.startswith("pyspark==")).split()[0][9:]


def test_kubeflows_operator_gets_what_its_schema_knows() -> None:
    (report, nightly) = load("kubeflow.yaml")
    assert {each["apiVersion"] for each in (report, nightly)} == {"sparkoperator.k8s.io/v1beta2"}
    assert set(nightly["spec"]) <= SCHEDULE
    assert nightly["spec"]["concurrencyPolicy"] == "Forbid"
    for spec in (report["spec"], nightly["spec"]["template"]):
        assert KUBEFLOW_NEEDED <= set(spec) <= KUBEFLOW
        assert (spec["type"], spec["mode"], spec["image"]) == ("Python", "cluster", IMAGE)
        assert spec["mainApplicationFile"] == MAIN
        assert spec["sparkVersion"] == spark_version()
        volumes = {volume["name"] for volume in spec["volumes"]}
        for part in (spec["driver"], spec["executor"]):
            assert set(part) <= KUBEFLOW_POD
            assert part["podSecurityContext"] == POD
            assert part["securityContext"] == CONTAINER
            assert {mount["name"] for mount in part["volumeMounts"]} <= volumes
    once, each_night = dict(report["spec"]), nightly["spec"]["template"]
    del once["timeToLiveSeconds"]
    assert once == each_night


def test_apaches_operator_gets_what_its_schema_knows() -> None:
    assert one(load("apache.yaml"), "SparkApplication")["apiVersion"] == "spark.apache.org/v1"
    spec = application("apache.yaml")
    assert set(spec) == APACHE
    assert spec["pyFiles"] == MAIN
    assert spec["runtimeVersions"] == {"sparkVersion": spark_version()}
    assert spec["sparkConf"]["spark.kubernetes.container.image"] == IMAGE
    assert all(isinstance(value, str) for value in spec["sparkConf"].values())
    for part in ("driverSpec", "executorSpec"):
        pod = spec[part]["podTemplateSpec"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"] == POD
        assert container["securityContext"] == CONTAINER
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_both_operators_run_the_same_job_where_the_chart_has_its_quorum(helm: Helm) -> None:
    words = application("kubeflow.yaml")["arguments"]
    assert application("apache.yaml")["driverArgs"] == words

    service = one(helm.objects(), "Service", "q-quorate")
    ports = [port["port"] for port in service["spec"]["ports"]]
    server = words[words.index("--bootstrap-controller") + 1]
    assert server in {f"{service['metadata']['name']}:{port}" for port in ports}
    assert words[words.index("--html") + 1].startswith("/pages/")


def test_the_account_and_the_claim_that_are_named_are_made() -> None:
    objects = load("access.yaml")
    account = one(objects, "ServiceAccount")["metadata"]["name"]
    claim = one(objects, "PersistentVolumeClaim")["metadata"]["name"]

    binding = one(objects, "RoleBinding")
    assert [subject["name"] for subject in binding["subjects"]] == [account]
    assert binding["roleRef"]["name"] == one(objects, "Role")["metadata"]["name"]
    settings = application("apache.yaml")["sparkConf"]
    assert settings["spark.kubernetes.authenticate.driver.serviceAccountName"] == account
    assert application("kubeflow.yaml")["driver"]["serviceAccount"] == account
    for text in ("kubeflow.yaml", "apache.yaml"):
        assert f"claimName: {claim}\n" in (FOLDER / text).read_text()


def test_the_driver_may_make_its_executors_and_nothing_else() -> None:
    rules = one(load("access.yaml"), "Role")["rules"]
    core = {"pods", "configmaps", "services", "persistentvolumeclaims"}
    assert [(rule["apiGroups"], set(rule["resources"])) for rule in rules] == [
        ([""], core),
        (["networking.k8s.io"], {"networkpolicies"}),
    ]


@pytest.fixture
def stubs(tmp_path: Path) -> dict[str, str]:
    """The environment in which submit.sh finds stubs."""
    for name in ("spark-submit", "kubectl"):
        program = tmp_path / name
        program.write_text(STUB)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = f"{tmp_path}:{os.environ['PATH']}"
    said = str(tmp_path / "said")
    return {"PATH": path, "SAID": said, "PHASE": "Succeeded", "STATUS": "0"}


def submit(told: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    script = str(FOLDER / "submit.sh")
    return subprocess.run([script, *words], env=told, capture_output=True, text=True, check=False)


def settings_of(path: Path) -> dict[str, str]:
    lines = (path / "said.settings").read_text().splitlines()
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}


def test_submit_shows_the_tables_and_hides_the_noise(stubs: dict[str, str], tmp_path: Path) -> None:
    done = submit(stubs | {"CLAIM": "logs"}, "health", "--path", "/data/a b")

    assert (done.returncode, done.stdout, done.stderr) == (0, "the tables\n", "")
    words = (tmp_path / "said").read_text().splitlines()
    assert words[:4] == ["--master", "k8s://https://10.0.0.1:6443", "--deploy-mode", "cluster"]
    assert words[words.index(MAIN) :] == [MAIN, "health", "--path", "/data/a b"]
    settings = settings_of(tmp_path)
    assert settings["spark.kubernetes.namespace"] == "metadata"
    assert settings["spark.kubernetes.container.image"] == IMAGE
    for part in ("driver", "executor"):
        template = settings[f"spark.kubernetes.{part}.podTemplateFile"]
        assert template == str(FOLDER / "pod.yaml")
        volume = f"spark.kubernetes.{part}.volumes.persistentVolumeClaim.data"
        assert settings[f"{volume}.mount.path"] == "/data"
        assert settings[f"{volume}.options.claimName"] == "logs"


def test_submit_fails_where_the_driver_or_spark_does(stubs: dict[str, str]) -> None:
    failed = submit(stubs | {"PHASE": "Failed"}, "health")
    assert failed.returncode == 1
    assert failed.stdout == "the tables\n"
    assert failed.stderr.endswith(": Failed\n")

    refused = submit(stubs | {"STATUS": "1"}, "health")
    assert (refused.returncode, refused.stderr) == (1, "noise of spark-submit\n")
    assert submit(stubs).returncode == 1


def test_the_template_of_submit_is_restricted() -> None:
    pod = one(load("pod.yaml"), "Pod")["spec"]
    assert pod["securityContext"] == POD
    (container,) = pod["containers"]
    assert container["securityContext"] == CONTAINER
    assert json.dumps(container["volumeMounts"]).count("scratch") == 2
