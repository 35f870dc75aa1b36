"""A client that commits all the time, in a pod beside the quorum, and how it is judged."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import yaml

from tests.e2e.cluster import wait_for

if TYPE_CHECKING:
    from types import TracebackType

    from tests.e2e.cluster import Release

PROGRAM: Final = Path(__file__).with_name("load.py")
STARTS_WITHIN_S: Final = 60


class Committing:
    """Use as a context manager around what is done to the quorum; then `judge`."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._name = f"{release.name}-load"

    def __enter__(self) -> Self:
        cluster = self._release.cluster
        cluster.kubectl("create", "configmap", self._name, f"--from-file=load.py={PROGRAM}")
        container = {
            "name": "load",
            "image": cluster.image,
            "command": ["/opt/quorate/bin/python", "/load/load.py", self._release.server],
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": "load", "mountPath": "/load"}],
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self._name},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "securityContext": {
                    "runAsNonRoot": True,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [container],
                "volumes": [{"name": "load", "configMap": {"name": self._name}}],
            },
        }
        cluster.kubectl("apply", "--filename", "-", text=yaml.safe_dump(pod))
        wait_for("a commit of the load", STARTS_WITHIN_S, lambda: bool(self.acknowledged()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback

    def acknowledged(self) -> list[tuple[str, int, float]]:
        """What was acknowledged, in order: key, value, when."""
        text = self._release.cluster.kubectl("logs", self._name)
        return [
            (found[1], int(found[2]), float(found[3]))
            for found in re.finditer(r"^(e2e\S+) (\d+) ([\d.]+)$", text, re.MULTILINE)
        ]

    def judge(self, *, longest_gap_s: float) -> float:
        """Stop, and see that nothing acknowledged is lost; the longest time between two commits."""
        acknowledged = self.acknowledged()
        self._release.cluster.kubectl("delete", "pod", self._name, "--now")
        entity = ("--entity-type", "brokers", "--entity-default")
        text = self._release.quorate("configs", "describe", *entity)
        kept = dict(re.findall(r"^ *(e2e\.load\.\d+)=(\d+)", text, re.MULTILINE))
        for key, value in {key: value for key, value, _ in acknowledged}.items():
            assert int(kept[key]) >= value, f"{key}={value} was acknowledged, kept is {kept[key]}"
        gap_s = max(after - before for (_, _, before), (_, _, after) in pairwise(acknowledged))
        assert gap_s <= longest_gap_s, f"no commit for {gap_s:.1f} s"
        return gap_s
