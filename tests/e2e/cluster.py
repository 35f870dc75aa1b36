"""One namespace of a real cluster, driven with kubectl and helm as a user would.

Everything is asked of the cluster itself, and nothing is remembered but names. A wait ends with
what was seen last.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

CHART: Final = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "quorate"
READY_WITHIN_S: Final = 120
POLL_S: Final = 0.5
COMMAND_S: Final = 180


class CommandFailedError(Exception):
    """A command ended with another status than 0; the message has what it said."""


def run(*command: str, text: str | None = None, timeout_s: float = COMMAND_S) -> str:
    """What the command says on stdout. Raises CommandFailedError."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, timeout=timeout_s
        )
    except subprocess.TimeoutExpired as error:
        raise CommandFailedError(f"{' '.join(command)}: not done in {timeout_s} s") from error
    if done.returncode != 0:
        raise CommandFailedError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout}")
    return done.stdout


def wait_for(what: str, within_s: float, look: Callable[[], bool | str]) -> float:
    """Until `look` returns True; the seconds that it took. What it returned last tells why not."""
    start = time.monotonic()
    while True:
        seen: bool | str
        try:
            seen = look()
        except CommandFailedError as error:
            seen = str(error)
        took_s = time.monotonic() - start
        if seen is True:
            return took_s
        assert took_s < within_s, f"{what}: not within {within_s} s, last seen: {seen}"
        time.sleep(POLL_S)


@dataclass(frozen=True)
class Cluster:
    """A namespace, and the image that is installed into it."""

    namespace: str
    image: str

    def kubectl(self, *words: str, text: str | None = None, namespaced: bool = True) -> str:
        """One command. Raises CommandFailedError."""
        scope = ("--namespace", self.namespace) if namespaced else ()
        return run("kubectl", *scope, *words, text=text)

    def get(self, *words: str) -> dict[str, Any]:
        """An object, or a list of them."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *words, "--output", "json"))
        return found

    def helm(self, *words: str) -> str:
        """One command. Raises CommandFailedError."""
        return run("helm", "--namespace", self.namespace, *words)

    def release(self, name: str, *values: str) -> Release:
        """A release of the chart that is not installed yet; `values` are `key=value`."""
        return Release(self, name, values)

    def show(self) -> None:
        """What somebody would look at who wants to know why a test failed."""
        for words in (
            ("get", "pods,pvc,statefulsets", "--output", "wide"),
            ("get", "events", "--sort-by", ".lastTimestamp"),
            (
                "logs",
                "--selector",
                "app.kubernetes.io/name=quorate",
                "--tail=40",
                "--all-containers",
            ),
        ):
            try:
                sys.stderr.write(self.kubectl(*words) + "\n")
            except CommandFailedError as error:
                sys.stderr.write(f"{error}\n")


@dataclass(frozen=True)
class Release:
    """One installation of the chart."""

    cluster: Cluster
    name: str
    values: tuple[str, ...] = ()

    @property
    def fullname(self) -> str:
        """The StatefulSet's name."""
        return self.name if "quorate" in self.name else f"{self.name}-quorate"

    @property
    def controllers(self) -> str:
        """Selects the controllers' pods."""
        return f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component=controller"

    @property
    def server(self) -> str:
        """What clients call."""
        return f"{self.fullname}.{self.cluster.namespace}.svc:9094"

    def install(self) -> None:
        """`helm install`, which does not wait."""
        self._helm("install")

    def upgrade(self, *values: str) -> None:
        """`helm upgrade` with further values."""
        self._helm("upgrade", *values)

    def _helm(self, verb: str, *more: str) -> None:
        repository, _, tag = self.cluster.image.rpartition(":")
        values = (f"image.repository={repository}", f"image.tag={tag}", *self.values, *more)
        words = [word for value in values for word in ("--set", value)]
        self.cluster.helm(verb, self.name, str(CHART), *words)

    def uninstall(self) -> None:
        """`helm uninstall`, and wait until the pods are gone."""
        self.cluster.helm("uninstall", self.name, "--wait")
        selector = f"app.kubernetes.io/instance={self.name}"
        wait_for(
            "no pod is left",
            READY_WITHIN_S,
            lambda: not self.cluster.get("pods", "--selector", selector)["items"],
        )

    def pods(self) -> list[dict[str, Any]]:
        """The controllers' pods by ordinal."""
        found = self.cluster.get("pods", "--selector", self.controllers)
        items: list[dict[str, Any]] = found["items"]
        return sorted(items, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))

    def quorate(self, *words: str, pod: int = 0) -> str:
        """The `quorate` command in a pod, with the flags of the connection."""
        flags = ["--bootstrap-controller", self.server]
        if "tls.enabled=true" in self.values:
            flags += ["--command-config", "/etc/quorate/config/client.properties"]
        command, *rest = words
        name = f"{self.fullname}-{pod}"
        return self.cluster.kubectl(
            "exec", name, "--container", "controller", "--", "quorate", command, *flags, *rest
        )

    def status(self) -> dict[str, Any]:
        """The leader's description of the quorum."""
        words = ("metadata-quorum", "--output", "json", "--timeout-ms", "5000")
        described: dict[str, Any] = json.loads(self.quorate(*words, "describe", "--status"))
        return described

    def voters(self) -> list[int]:
        """The node ids of the voters."""
        return sorted(voter["id"] for voter in self.status()["CurrentVoters"])

    def await_voters(self, *node_ids: int, within_s: float = READY_WITHIN_S) -> float:
        """Until these are the voters, and their pods are ready; the seconds that it took."""

        def look() -> bool | str:
            ready = [
                int(pod["metadata"]["name"].rpartition("-")[2])
                for pod in self.pods()
                if any(
                    condition["type"] == "Ready" and condition["status"] == "True"
                    for condition in pod["status"].get("conditions", [])
                )
            ]
            if ready != list(node_ids):
                return f"ready are {ready}"
            voters = self.voters()
            return voters == list(node_ids) or f"voters are {voters}"

        return wait_for(f"voters {list(node_ids)}", within_s, look)

    def set_value(self, key: str, value: str) -> None:
        """Commit a value."""
        entity = ("--entity-type", "brokers", "--entity-default")
        self.quorate("configs", "alter", *entity, "--add-config", f"{key}={value}")

    def value(self, key: str) -> str | None:
        """Read a committed value."""
        entity = ("--entity-type", "brokers", "--entity-default")
        found = re.search(
            rf"^ *{re.escape(key)}=(\S*)", self.quorate("configs", "describe", *entity), re.M
        )
        return found[1] if found else None

    def metrics(self, pod: int, port: int = 9464) -> str:
        """What Prometheus would read of a pod, through the API server."""
        path = (
            f"/api/v1/namespaces/{self.cluster.namespace}/pods/{self.fullname}-{pod}:{port}"
            "/proxy/metrics"
        )
        return self.cluster.kubectl("get", "--raw", path, namespaced=False)
