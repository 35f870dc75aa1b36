"""deploy/images/pipeline/entrypoint.py: what Spark on Kubernetes asks a container to become."""

from __future__ import annotations

import importlib.util
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from types import ModuleType

FOLDER: Final = Path(__file__).resolve().parents[2] / "deploy" / "images" / "pipeline"
ENTRYPOINT: Final = FOLDER / "entrypoint.py"
# As `BasicExecutorFeatureStep` of Spark 4 sets them.
EXECUTOR: Final = {
    "SPARK_HOME": "/opt/quorate/spark",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver.ns.svc:7078",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-application-1",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_EXECUTOR_POD_NAME": "report-exec-7",
    "SPARK_JAVA_OPT_0": "-Dspark.driver.port=7078",
    "SPARK_JAVA_OPT_10": "-Dlast=a b",
    "SPARK_JAVA_OPT_9": "-Dbefore=1",
}


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("entrypoint", ENTRYPOINT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_driver_is_spark_submit_in_its_own_pod() -> None:
    words = ["--properties-file", "/opt/spark/conf/spark.properties", "local:///x.py", "health"]
    told = {"SPARK_HOME": "/opt/quorate/spark", "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.5"}

    assert load().command_of(["driver", *words], told) == [
        "/opt/quorate/spark/bin/spark-submit",
        *("--conf", "spark.driver.bindAddress=10.0.0.5", "--deploy-mode", "client", *words),
    ]


def test_an_executor_is_told_everything_by_its_environment() -> None:
    assert load().command_of(["executor"], EXECUTOR) == [
        "java",
        *("-Dspark.driver.port=7078", "-Dbefore=1", "-Dlast=a b", "-Xms1024m", "-Xmx1024m"),
        *("-cp", "/opt/spark/conf:/opt/quorate/spark/jars/*", load().BACKEND),
        *("--driver-url", "spark://CoarseGrainedScheduler@driver.ns.svc:7078"),
        *("--executor-id", "7", "--cores", "2", "--app-id", "spark-application-1"),
        *("--hostname", "10.0.0.7", "--resourceProfileId", "0", "--podName", "report-exec-7"),
    ]


OPTIONAL: Final = {"SPARK_CONF_DIR", "SPARK_JAVA_OPT_0", "SPARK_JAVA_OPT_9", "SPARK_JAVA_OPT_10"}


@pytest.mark.parametrize("name", sorted(set(EXECUTOR) - OPTIONAL))
def test_what_an_executor_is_not_told_is_named(name: str) -> None:
    told = {key: value for key, value in EXECUTOR.items() if key != name}
    entrypoint = load()
    with pytest.raises(entrypoint.MissingVariableError, match=f"{name} is not set"):
        entrypoint.command_of(["executor"], told)


def test_other_words_are_programs_of_spark_or_actions_of_quorate() -> None:
    for words in (["spark-submit", "--version"], ["sh", "-c", "date"], ["/opt/spark/own", "1"]):
        assert load().command_of(words, {}) == words
    for words in (["pipeline", "elections"], ["--help"], []):
        assert load().command_of(words, {}) == ["quorate", *words]


def test_the_container_becomes_the_program(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$$" "$@"\n')
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    told = {**EXECUTOR, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    command = [sys.executable, str(ENTRYPOINT), "executor"]
    with subprocess.Popen(command, env=told, stdout=subprocess.PIPE, text=True) as process:
        said = process.communicate()[0].splitlines()

    assert said[0] == str(process.pid)
    assert "-Dlast=a b" in said
    assert process.returncode == 0


def test_a_driver_outside_of_kubernetes_says_what_it_lacks() -> None:
    done = subprocess.run(
        [sys.executable, ENTRYPOINT, "driver"], env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("SPARK_DRIVER_BIND_ADDRESS is not set")
    assert done.stderr.count("\n") == 1
