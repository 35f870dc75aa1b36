"""Output and actions of a release's operator, as a user sees them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.e2e.cluster import READY_WITHIN_S, wait_for

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release

# For tests of what controllers and their hooks do by themselves.
DISABLED = "operator.enabled=false"


@dataclass(frozen=True)
class Operator:
    """The operator of one release."""

    release: Release

    @property
    def deployment(self) -> str:
        """Its name."""
        return f"{self.release.fullname}-autojoin"

    @property
    def pods(self) -> str:
        """Selects its pods."""
        return (
            f"app.kubernetes.io/instance={self.release.name},app.kubernetes.io/component=operator"
        )

    def await_available(self, status: str, within: str = "120s") -> None:
        """Until its Deployment has that status of the condition that scripts wait for."""
        condition = f"--for=condition=Available={status}"
        self.release.cluster.kubectl(
            "wait", f"deployment/{self.deployment}", condition, f"--timeout={within}"
        )

    def acting(self) -> str:
        """The pod that holds the Lease."""
        return str(self._lease()["spec"]["holderIdentity"])

    def _lease(self) -> dict[str, Any]:
        return self.release.cluster.get("leases", self.deployment)

    def is_of_release(self) -> bool | str:
        """True if the one that acts came with the newest form of the StatefulSet."""
        notes = self._lease()["metadata"].get("annotations", {})
        holder = json.loads(notes.get("quorate/holder", "{}"))
        annotations = self.release.stateful_set()["metadata"]["annotations"]
        is_of_release = holder.get("template") == annotations["quorate/template"]
        return (is_of_release and holder.get("identity") == self.acting()) or str(holder)

    def conditions(self) -> dict[str, tuple[bool, str]]:
        """Status and reason of each condition."""
        found = self.release.cluster.get("statefulsets", self.release.fullname)
        text = found["metadata"].get("annotations", {}).get("quorate/conditions", "[]")
        return {
            each["type"]: (each["status"] == "True", each["reason"]) for each in json.loads(text)
        }

    def await_rest(self, *node_ids: int, within_s: float = READY_WITHIN_S) -> float:
        """Until these vote, and the operator has nothing left to do.

        The operator's word is read first, because asking the quorum starts a process in a pod. It
        may be older than the last change, so it is read again once these vote.
        """

        def look() -> bool | str:
            said = self.conditions()
            return said.get("MembersInStep") == (True, "InStep") or str(said)

        # The pods have to start first, so this has the time for both.
        took_s = wait_for("the operator rests", 2 * within_s, look)
        took_s += self.release.await_voters(*node_ids, within_s=within_s)
        return took_s + wait_for("the operator rests", within_s, look)

    def reasons(self) -> list[str]:
        """The reasons of its Events, oldest first."""
        found = self.release.cluster.get("events")["items"]
        ours = [each for each in found if each.get("reportingComponent") == "quorate-autojoin"]
        ours.sort(key=lambda each: (each["firstTimestamp"], each["metadata"]["name"]))
        return [each["reason"] for each in ours]

    def await_reason(self, reason: str, within_s: float = READY_WITHIN_S) -> float:
        """Until it has told that."""
        return wait_for(
            f"the Event {reason}",
            within_s,
            lambda: reason in self.reasons() or f"Events: {self.reasons()}",
        )

    def kill(self) -> None:
        """As a crash: no time to end anything."""
        self.release.cluster.kubectl(
            "delete", "pod", "--selector", self.pods, "--grace-period=0", "--force"
        )

    def stop(self) -> None:
        """No operator runs."""
        self.release.cluster.kubectl("scale", f"deployment/{self.deployment}", "--replicas=0")

    def start(self) -> None:
        """Both run again."""
        self.release.cluster.kubectl("scale", f"deployment/{self.deployment}", "--replicas=2")


def installed(cluster: Cluster, *values: str, name: str = "q") -> tuple[Release, Operator]:
    """A release of three controllers with an operator, at rest."""
    release = cluster.release(name, *values)
    operator = Operator(release)
    release.install()
    operator.await_rest(0, 1, 2)
    return release, operator
