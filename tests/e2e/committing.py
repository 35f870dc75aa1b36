"""A client that commits all the time, in a pod next to the quorum, and the checks of it."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import yaml

from tests.e2e.cluster import wait_for

if TYPE_CHECKING:
    from types import TracebackType

    from tests.e2e.cluster import Release

PROGRAM: Final = Path(__file__).with_name("load.py")
STARTS_WITHIN_S: Final = 180
LONGEST_GAP_S: Final = 10.0
ACKNOWLEDGED: Final = re.compile(r"^(e2e\S+) (\d+) ([\d.]+)$", re.MULTILINE)
# One of each key: whatever was in flight at an event has ended.
MORE: Final = 50


class Committing:
    """Use as a context manager around what is done to the quorum; then `judge`.

    Its pod runs on none of the nodes that the release is asked away from.
    """

    def __init__(self, release: Release) -> None:
        self._release = release
        self._name = f"{release.name}-load"

    def __enter__(self) -> Self:
        cluster = self._release.cluster
        cluster.kubectl("create", "configmap", self._name, f"--from-file=load.py={PROGRAM}")
        cluster.kubectl("apply", "--filename", "-", text=yaml.safe_dump(self._pod()))
        wait_for("a commit of the load", STARTS_WITHIN_S, lambda: bool(self.acknowledged()))
        return self

    def _pod(self) -> dict[str, Any]:
        release = self._release
        command = ["/opt/quorate/bin/python", "/load/load.py", release.server]
        mounts = [{"name": "load", "mountPath": "/load"}]
        volumes: list[dict[str, Any]] = [{"name": "load", "configMap": {"name": self._name}}]
        if release.has_tls:
            command.append("/etc/quorate/config/client.properties")
            mounts += [
                {"name": "config", "mountPath": "/etc/quorate/config"},
                {"name": "tls", "mountPath": "/etc/quorate/tls"},
            ]
            volumes += [
                {"name": "config", "configMap": {"name": release.fullname}},
                {"name": "tls", "secret": {"secretName": f"{release.fullname}-tls"}},
            ]
        container = {
            "name": "load",
            "image": release.cluster.image,
            "command": command,
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": mounts,
        }
        spec: dict[str, Any] = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": volumes,
        }
        if release.avoid:
            spec["affinity"] = {"nodeAffinity": elsewhere(*release.avoid)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self._name},
            "spec": spec,
        }

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback

    def acknowledged(self) -> list[tuple[str, int, float]]:
        """The acknowledged writes, in order: key, value, time."""
        found = ACKNOWLEDGED.finditer(self._release.cluster.logs(self._name))
        return [(each[1], int(each[2]), float(each[3])) for each in found]

    def await_more(self, within_s: float = STARTS_WITHIN_S) -> float:
        """Until further values are acknowledged; the seconds that it took."""
        enough = len(self.acknowledged()) + MORE

        def look() -> bool | str:
            count = len(self.acknowledged())
            return count >= enough or f"{count} of {enough}"

        return wait_for("further commits", within_s, look)

    def judge(self, *, longest_gap_s: float = LONGEST_GAP_S) -> float:
        """Stop, and see that nothing acknowledged is lost; the longest time between two commits.

        It begins by waiting for further commits: if they have ended permanently, no later one shows
        the gap.
        """
        self.await_more(max(STARTS_WITHIN_S, longest_gap_s))
        log = self._release.cluster.logs(self._name)
        self._release.cluster.kubectl("delete", "pod", self._name, "--now")
        committed = str(self._release.status()["HighWatermark"])
        entity = ("--entity-type", "brokers", "--entity-default", "--min-offset", committed)
        text = self._release.quorate("configs", "describe", *entity)
        kept = dict(re.findall(r"^ *(e2e\.load\.\d+)=(\d+)", text, re.MULTILINE))
        acknowledged = list(ACKNOWLEDGED.finditer(log))
        for key, value in {each[1]: int(each[2]) for each in acknowledged}.items():
            found = int(kept.get(key, 0))
            assert found >= value, f"{key}={value} was acknowledged, kept is {found}"
        before, after = max(
            pairwise(acknowledged), key=lambda pair: float(pair[1][3]) - float(pair[0][3])
        )
        gap_s = float(after[3]) - float(before[3])
        said = log[before.end() : after.start()].strip()
        assert gap_s <= longest_gap_s, f"no commit for {gap_s:.1f} s; the client says: {said}"
        return gap_s


def elsewhere(*nodes: str) -> dict[str, Any]:
    """As an affinity: on no node of these names."""
    others = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in nodes]
    required = {"nodeSelectorTerms": [{"matchFields": others}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": required}
