"""The disk of one node is full: it gives leadership up, and comes back when there is room."""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from tests.e2e.cluster import wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import Operator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.cluster import Cluster, Release
    from tests.e2e.nodes import Nodes

pytestmark = pytest.mark.weekly
log = logging.getLogger(__name__)
ORDINAL: Final = 1
DATA: Final = "/var/lib/quorate"
FILLER: Final = "filler"
# Below 64 MiB of free space a controller gives leadership up.
SIZE: Final = "256m"
ROOM_BYTES: Final = 64 * 1024 * 1024
MADE_ROOM_WITHIN_S: Final = 120.0


@contextmanager
def small_disk(release: Release, nodes: Nodes) -> Iterator[Callable[[], None]]:
    """A disk of its own, that can be full, for the claim of one controller.

    What is yielded makes room on it again, whether or not the controller runs.
    """
    cluster = release.cluster
    found = cluster.get("nodes")["items"]
    able = [each["metadata"] for each in found if not each["spec"].get("taints")]
    node, name = able[-1]["name"], f"{cluster.namespace}-small"
    path = f"/var/lib/{name}"
    hostname = able[-1]["labels"]["kubernetes.io/hostname"]
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": [hostname]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "8Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": name,
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"data-{release.fullname}-{ORDINAL}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "volumeName": name,
            "resources": {"requests": {"storage": "8Gi"}},
        },
    }

    def make_room() -> None:
        nodes.execute(node, "rm", f"{path}/{FILLER}")

    nodes.execute(node, "mkdir", "-p", path)
    nodes.execute(node, "mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0777", "tmpfs", path)
    try:
        cluster.kubectl("apply", "--filename", "-", text=yaml.safe_dump(volume), namespaced=False)
        cluster.kubectl("apply", "--filename", "-", text=yaml.safe_dump(claim))
        yield make_room
    finally:
        cluster.kubectl("delete", "pv", name, "--wait=false", namespaced=False)
        # Detached immediately, and gone when the last pod that has it ends.
        nodes.execute(node, "umount", "--lazy", path)
        nodes.execute(node, "rmdir", path)


def in_pod(release: Release, *command: str) -> str:
    """Run it in the pod of the controller whose disk is small."""
    name = f"{release.fullname}-{ORDINAL}"
    return release.cluster.kubectl("exec", name, "--container", "controller", "--", *command)


def free_bytes(release: Release) -> float:
    """The free bytes, by the controller's metrics."""
    found = re.search(
        r"^quorate_disk_free_bytes\{.*\} (\S+)", release.metrics(ORDINAL), re.MULTILINE
    )
    return float(found[1]) if found else -1.0


def test_a_leader_with_a_full_disk_makes_room_for_another(cluster: Cluster, nodes: Nodes) -> None:
    release = cluster.release("q")
    with small_disk(release, nodes) as make_room:
        operator = Operator(release)
        release.install()
        operator.await_rest(0, 1, 2)
        release.let_lead(ORDINAL)
        before = release.status()
        assert before["LeaderId"] == ORDINAL

        with Committing(release) as committing:
            # It ends when the disk is full.
            filler = f"{DATA}/{FILLER}"
            filled = f"dd if=/dev/zero of={filler} bs=1M 2>/dev/null; test -s {filler}"
            in_pod(release, "sh", "-c", filled)
            took_s = release.await_other_leader(ORDINAL, MADE_ROOM_WITHIN_S)
            log.info(f"another leader is seen after {took_s:.1f} s")
            wait_for(
                "its metrics tell",
                MADE_ROOM_WITHIN_S,
                lambda: 0 <= free_bytes(release) < ROOM_BYTES,
            )
            committing.await_more()
            assert release.voters() == [0, 1, 2]

            make_room()
            # A log that could not be written is opened again by another process only.
            cluster.kubectl("delete", "pod", f"{release.fullname}-{ORDINAL}")
            took_s = operator.await_rest(0, 1, 2)
            log.info(f"three voters are ready {took_s:.1f} s after there is room again")
            release.let_lead(ORDINAL)
            committing.await_more()

        log.info(f"longest time without a commit: {committing.judge():.2f} s")
        assert release.status()["CurrentVoters"] == before["CurrentVoters"]
        release.uninstall()
