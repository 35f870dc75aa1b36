"""One namespace of a real cluster, driven with kubectl and helm as a user would.

Everything is asked of the cluster itself, and nothing is remembered but names. A wait ends with
what was seen last.
"""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.e2e.commands import CommandFailedError, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.api_proxy import ApiProxy

CHART: Final = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "quorate"
# A pod may need a minute on a busy machine, and some come one after the other.
READY_WITHIN_S: Final = 300
POLL_S: Final = 0.5
HELM_WAITS: Final = "10m"
LAG_MS_MAX: Final = 2_000
_EVENTS: Final = ("get", "events", "--sort-by", ".lastTimestamp", "--field-selector")


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


def is_ready(pod: dict[str, Any]) -> bool:
    """True if Kubernetes reports so, and its stop was not requested."""
    return "deletionTimestamp" not in pod["metadata"] and any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod["status"].get("conditions", [])
    )


def is_running(pod: dict[str, Any]) -> bool:
    """True if its controller's process is there."""
    return any(
        status["name"] == "controller" and "running" in status.get("state", {})
        for status in pod["status"].get("containerStatuses", [])
    )


@dataclass(frozen=True)
class Cluster:
    """A namespace, the image that is installed into it, and what reads from the API server."""

    namespace: str
    image: str
    api: ApiProxy

    def kubectl(self, *words: str, text: str | None = None, namespaced: bool = True) -> str:
        """One command. Raises CommandFailedError."""
        scope = ("--namespace", self.namespace) if namespaced else ()
        return run("kubectl", *scope, *words, text=text)

    def get(self, kind: str, name: str = "", *, selector: str = "") -> dict[str, Any]:
        """One object, or a list of them. Raises CommandFailedError."""
        return self.api.objects(self.namespace, kind, name, selector=selector)

    def logs(self, pod: str) -> str:
        """The output of a pod's only container. Raises CommandFailedError."""
        return self.api.read(f"/api/v1/namespaces/{self.namespace}/pods/{pod}/log")

    def helm(self, *words: str, text: str | None = None) -> str:
        """One command. Raises CommandFailedError."""
        return run("helm", "--namespace", self.namespace, *words, text=text)

    def claims(self) -> dict[str, str]:
        """The uid of each claim of a disk, by name."""
        found = self.get("persistentvolumeclaims")["items"]
        return {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in found}

    def metrics(self, pod: str, port: int) -> str:
        """The metrics that Prometheus would read of a pod, through the API server."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}:{port}/proxy/metrics"
        return self.api.read(path)

    def release(self, name: str, *values: str) -> Release:
        """A release of the chart that is not installed yet; `values` are `key=value`."""
        return Release(self, name, values)

    def show(self) -> None:
        """Print what explains a failed test, the shortest first."""
        controllers = "app.kubernetes.io/name=quorate,app.kubernetes.io/component=controller"
        conditions = "{.items[*].metadata.annotations.quorate/conditions}"
        names = self._said("get", "pods", "--selector", controllers, "--output", "name").split()
        told = [
            self._said("get", "pods", "--output", "wide"),
            self._said("get", "statefulsets", "--output", f"jsonpath={conditions}"),
            self._of_operator(),
            self._said(*_EVENTS, "reportingComponent=quorate-autojoin"),
            *(self._described_in(name) for name in names),
            *(self._logs_of(name) for name in names),
            self._said(*_EVENTS, "type=Warning"),
        ]
        for text in told:
            sys.stderr.write(f"{text.rstrip()}\n")

    def _said(self, *words: str) -> str:
        """The output of kubectl, or its error."""
        try:
            return self.kubectl(*words)
        except CommandFailedError as error:
            return str(error)

    def _of_operator(self) -> str:
        selector = "app.kubernetes.io/name=quorate,app.kubernetes.io/component=operator"
        return self._said("logs", "--selector", selector, "--tail=30", "--prefix")

    def _described_in(self, pod: str) -> str:
        """The quorum as this pod sees it: a pod without a leader differs from the rest."""
        asked = ("quorate", "metadata-quorum", "--bootstrap-controller", "localhost:9094")
        words = ("exec", pod, "--container", "controller", "--", *asked, "--timeout-ms", "5000")
        return f"{pod} says: {self._said(*words, 'describe', '--replication')}"

    def _logs_of(self, pod: str) -> str:
        return self._said("logs", pod, "--all-containers", "--tail=40", "--prefix")


@dataclass(frozen=True)
class Release:
    """One installation of the chart. Commands run in none of the pods on the nodes of `avoid`."""

    cluster: Cluster
    name: str
    values: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()

    def away_from(self, *nodes: str) -> Release:
        """The same release, asked from other nodes than these, which are about to be harmed."""
        return replace(self, avoid=nodes)

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
        """The address that clients call."""
        return f"{self.fullname}.{self.cluster.namespace}.svc:9094"

    def install(self, *, waits: bool = False) -> None:
        """`helm install`, which waits if asked to."""
        self._helm("install", waits=waits)

    def upgrade(self, *values: str, waits: bool = False) -> str:
        """`helm upgrade` with further values; what it says."""
        return self._helm("upgrade", *values, waits=waits)

    def _helm(self, verb: str, *more: str, waits: bool) -> str:
        waiting = ("--wait", "--timeout", HELM_WAITS) if waits else ()
        return self.cluster.helm(verb, self.name, str(CHART), *self.flags(*more), *waiting)

    def flags(self, *more: str) -> list[str]:
        """The values, and further ones, as flags of Helm."""
        repository, _, tag = self.cluster.image.rpartition(":")
        values = (f"image.repository={repository}", f"image.tag={tag}", *self.values, *more)
        return [word for value in values for word in ("--set", value)]

    def uninstall(self) -> None:
        """`helm uninstall`, and wait until the pods are gone."""
        self.cluster.helm("uninstall", self.name, "--wait")
        selector = f"app.kubernetes.io/instance={self.name}"
        wait_for(
            "no pod is left",
            READY_WITHIN_S,
            lambda: not self.cluster.get("pods", selector=selector)["items"],
        )

    def stateful_set(self) -> dict[str, Any]:
        """Its StatefulSet."""
        return self.cluster.get("statefulsets", self.fullname)

    def pods(self) -> list[dict[str, Any]]:
        """The controllers' pods by ordinal."""
        found = self.cluster.get("pods", selector=self.controllers)
        items: list[dict[str, Any]] = found["items"]
        return sorted(items, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))

    def pod(self, ordinal: int) -> dict[str, Any]:
        """One controller's pod."""
        return self.cluster.get("pods", f"{self.fullname}-{ordinal}")

    def pod_uids(self) -> set[str]:
        """The identities of the controllers' pods: one that is made again has another."""
        return {pod["metadata"]["uid"] for pod in self.pods()}

    def node_of(self, ordinal: int) -> str:
        """The node that the pod runs on."""
        name: str = self.pod(ordinal)["spec"]["nodeName"]
        return name

    def container_id(self, ordinal: int) -> str:
        """That of the controller, as the container runtime knows it."""
        statuses = self.pod(ordinal)["status"]["containerStatuses"]
        found = next(each for each in statuses if each["name"] == "controller")
        return str(found["containerID"]).rpartition("/")[2]

    def desk(self) -> str:
        """A pod to run commands in: one whose controller runs, a ready one if there is any."""
        able = [
            pod
            for pod in self.pods()
            if pod["spec"].get("nodeName") not in self.avoid and is_running(pod)
        ]
        if not able:
            raise CommandFailedError("no controller runs that a command could be run beside")
        # Of those that are ready the first one, which is not scaled down while others are there.
        first = min(able, key=lambda pod: not is_ready(pod))
        return str(first["metadata"]["name"])

    def execute(self, *command: str) -> str:
        """A command in a pod."""
        return self.cluster.kubectl(
            "exec", self.desk(), "--container", "controller", "--", *command
        )

    @property
    def has_tls(self) -> bool:
        """True if clients need certificates."""
        return "tls.enabled=true" in self.values

    def quorate(self, *words: str) -> str:
        """The `quorate` command in a pod, with the flags of the connection."""
        flags = ["--bootstrap-controller", self.server]
        if self.has_tls:
            flags += ["--command-config", "/etc/quorate/config/client.properties"]
        command, *rest = words
        return self.execute("quorate", command, *flags, *rest)

    def status(self) -> dict[str, Any]:
        """The leader's description of the quorum."""
        words = ("metadata-quorum", "--output", "json", "--timeout-ms", "15000")
        described: dict[str, Any] = json.loads(self.quorate(*words, "describe", "--status"))
        return described

    def leader(self) -> int:
        """The node id of the leader."""
        return int(self.status()["LeaderId"])

    def let_lead(self, ordinal: int) -> None:
        """Hand leadership over; where another one was faster it is asked for the same."""

        def look() -> bool | str:
            if self.leader() == ordinal:
                return True
            try:
                self.quorate("metadata-quorum", "transfer-leader", "--to", str(ordinal))
            except CommandFailedError as error:
                if "NO_HAND_OVER" not in str(error):
                    raise
                return str(error)
            return True

        wait_for(f"{ordinal} leads", READY_WITHIN_S, look)

    def await_other_leader(self, than: int, within_s: float) -> float:
        """Until another one leads; the seconds that it took."""

        def look() -> bool | str:
            leader = self.leader()
            return leader != than or f"node {leader} leads"

        return wait_for(f"another leader than {than}", within_s, look)

    def voters(self) -> list[int]:
        """The node ids of the voters."""
        return sorted(voter["id"] for voter in self.status()["CurrentVoters"])

    def disks(self) -> dict[int, str]:
        """The directory id of each voter."""
        return {voter["id"]: voter["directoryId"] for voter in self.status()["CurrentVoters"]}

    def await_voters(self, *node_ids: int, within_s: float = READY_WITHIN_S) -> float:
        """Until these are the voters, their pods are ready, and all of them follow the leader.

        What Kubernetes says of a pod may be older than the loss of its node.
        """

        def look() -> bool | str:
            ready = [
                int(pod["metadata"]["name"].rpartition("-")[2])
                for pod in self.pods()
                if is_ready(pod)
            ]
            if ready != list(node_ids):
                return f"ready are {ready}"
            status = self.status()
            voters = sorted(voter["id"] for voter in status["CurrentVoters"])
            lag_ms = status["MaxFollowerLagTimeMs"]
            if not 0 <= lag_ms < LAG_MS_MAX:
                return f"a follower has not caught up for {lag_ms} ms"
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
        """The metrics that Prometheus would read of a controller's pod."""
        return self.cluster.metrics(f"{self.fullname}-{pod}", port)
