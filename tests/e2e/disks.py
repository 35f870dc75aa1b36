"""The disks of a release's controllers, filled by other hands than the controllers'."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.e2e.cluster import READY_WITHIN_S, is_ready, wait_for
from tests.e2e.commands import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.e2e.cluster import Cluster, Release

CARRIER: Final = "carrier"
_USER: Final = 65532


def claim_of(release: Release, ordinal: int) -> str:
    return f"data-{release.fullname}-{ordinal}"


def make_claims(release: Release, ordinals: Sequence[int]) -> None:
    """Claims as the StatefulSet would make them, which then takes these."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Gi"}}}
    claims = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim_of(release, ordinal)},
            "spec": spec,
        }
        for ordinal in ordinals
    ]
    release.cluster.kubectl("apply", "--filename", "-", text=yaml.safe_dump_all(claims))


@contextmanager
def carrier(release: Release, ordinals: Sequence[int]) -> Iterator[None]:
    """A pod that has the disks of these controllers, each at /disks/ORDINAL."""
    cluster = release.cluster
    text = yaml.safe_dump(_pod(cluster, {o: claim_of(release, o) for o in ordinals}))
    cluster.kubectl("apply", "--filename", "-", text=text)
    wait_for("the carrier", READY_WITHIN_S, lambda: is_ready(cluster.get("pods", CARRIER)))
    try:
        yield
    finally:
        cluster.kubectl("delete", "pod", CARRIER, "--now")


def _pod(cluster: Cluster, claims: dict[int, str]) -> dict[str, Any]:
    container = {
        "name": CARRIER,
        "image": cluster.image,
        "command": ["sleep", "3600"],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": f"disk-{o}", "mountPath": f"/disks/{o}"} for o in claims],
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": f"disk-{o}", "persistentVolumeClaim": {"claimName": claim}}
            for o, claim in claims.items()
        ],
    }
    metadata = {"name": CARRIER}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def carry(cluster: Cluster, *command: str) -> str:
    """A command in the carrier."""
    return cluster.kubectl("exec", CARRIER, "--", *command)


def copy_disk(source: Cluster, pod: str, folder: str, target: Cluster, ordinal: int) -> None:
    """Put what is below a folder of a pod's first container on the disk of the target's carrier.

    What was on it goes. A log that grows during the copy is copied as far as it was, as a
    snapshot of a disk has it.
    """
    disk = f"/disks/{ordinal}"
    carry(target, "sh", "-c", f"rm -rf {disk}/metadata")
    reads = f"tar -C {folder} -cf - metadata || [ $? -eq 1 ]"
    out = ("kubectl", "--namespace", source.namespace, "exec", pod, "--", "sh", "-c", reads)
    into = ("kubectl", "--namespace", target.namespace, "exec", "--stdin", CARRIER, "--")
    command = f"{shlex.join(out)} | {shlex.join((*into, 'tar', '-C', disk, '-xf', '-'))}"
    run("bash", "-o", "pipefail", "-c", command)
