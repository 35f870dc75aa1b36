"""Entry point of this image: it starts a driver, an executor, or the `quorate` command.

    entrypoint.py driver WORDS...     spark-submit in this pod, as Spark on Kubernetes requests it
    entrypoint.py executor [WORDS...] an executor, configured by environment variables alone
    entrypoint.py spark-submit ...    one of PROGRAMS, or a path, unchanged
    entrypoint.py pipeline ...        anything else is an action of `quorate`

The contract is Spark's (resource-managers/kubernetes: `DriverCommandFeatureStep`,
`BasicExecutorFeatureStep`).
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The flags of an executor, and the environment variables with their values.
EXECUTOR: Final = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
PROGRAMS: Final = frozenset({"java", "python", "quorate", "sh", "spark-class", "spark-submit"})
BACKEND: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
JAVA_OPTION: Final = re.compile(r"SPARK_JAVA_OPT_(\d+)")


class MissingVariableError(Exception):
    """Spark has not set an environment variable that it must set; the message names it."""


def command_of(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The program and its arguments. Raises MissingVariableError."""
    match words:
        case ["driver", *rest]:
            address = _told(environment, "SPARK_DRIVER_BIND_ADDRESS")
            return [
                f"{_told(environment, 'SPARK_HOME')}/bin/spark-submit",
                *("--conf", f"spark.driver.bindAddress={address}"),
                *("--deploy-mode", "client"),
                *rest,
            ]
        case ["executor", *_]:
            return _executor(environment)
        case [program, *_] if program in PROGRAMS or "/" in program:
            return list(words)
    return ["quorate", *words]


def _executor(environment: Mapping[str, str]) -> list[str]:
    memory = _told(environment, "SPARK_EXECUTOR_MEMORY")
    flags = [word for flag, name in EXECUTOR.items() for word in (flag, _told(environment, name))]
    return [
        "java",
        *java_options(environment),
        *(f"-Xms{memory}", f"-Xmx{memory}"),
        *("-cp", class_path(environment)),
        *(BACKEND, *flags),
    ]


def java_options(environment: Mapping[str, str]) -> list[str]:
    """The values of SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1 and so on, in numeric order."""
    numbered = {
        int(found[1]): value
        for name, value in environment.items()
        if (found := JAVA_OPTION.fullmatch(name))
    }
    return [numbered[number] for number in sorted(numbered)]


def class_path(environment: Mapping[str, str]) -> str:
    """The class path: configuration folders, the user's entries, then Spark's jars and more."""
    home = _told(environment, "SPARK_HOME")
    places = [
        environment.get("HADOOP_CONF_DIR", ""),
        environment.get("SPARK_CONF_DIR", ""),
        environment.get("SPARK_CLASSPATH", ""),
        f"{home}/jars/*",
        environment.get("SPARK_EXTRA_CLASSPATH", ""),
        environment.get("SPARK_DIST_CLASSPATH", ""),
    ]
    # An empty entry would mean the working directory.
    return ":".join(place for place in places if place)


def _told(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise MissingVariableError(
            f"{name} is not set: `driver` and `executor` are started by Spark on Kubernetes,"
            " which sets it; run a job yourself with `pipeline JOB ...`"
        )
    return value


if __name__ == "__main__":
    try:
        COMMAND = command_of(sys.argv[1:], os.environ)
    except MissingVariableError as error:
        sys.exit(str(error))
    os.execvp(COMMAND[0], COMMAND)  # noqa: S606 - the point of an entry point
