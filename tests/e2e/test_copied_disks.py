"""Copies of the disks in another namespace, the move of a quorum, and a disk of another cluster."""

from __future__ import annotations

import logging
import re
import secrets
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import READY_WITHIN_S, is_ready, is_running, wait_for
from tests.e2e.committing import Committing
from tests.e2e.disks import CARRIER, carrier, carry, claim_of, copy_disk, make_claims

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.cluster import Cluster, Release

pytestmark = pytest.mark.weekly
log = logging.getLogger(__name__)
ALL = (0, 1, 2)
# Kubernetes waits longer after each failure of an init container.
MOVED_WITHIN_S = READY_WITHIN_S + 300.0
OTHER_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


@contextmanager
def another_namespace(cluster: Cluster) -> Iterator[Cluster]:
    """A second namespace next to that of the test, under the same standard."""
    other = replace(cluster, namespace=f"e2e-{secrets.token_hex(4)}")
    other.kubectl("create", "namespace", other.namespace, namespaced=False)
    standard = "pod-security.kubernetes.io/enforce=restricted"
    other.kubectl("label", "namespace", other.namespace, standard, namespaced=False)
    try:
        yield other
    except BaseException:
        other.show()
        raise
    finally:
        other.kubectl("delete", "namespace", other.namespace, "--wait=false", namespaced=False)


def format_says(release: Release, ordinal: int) -> str:
    """The termination message of a pod's init container."""
    statuses = release.pod(ordinal)["status"].get("initContainerStatuses", [])
    ended = [
        each.get(state, {}).get("terminated", {})
        for each in statuses
        if each["name"] == "format"
        for state in ("state", "lastState")
    ]
    return " ".join(each.get("message", "") for each in ended)


def await_refusals(release: Release, words: str) -> float:
    """Until the init container of each pod has ended with these words, and none has started."""

    def look() -> bool | str:
        said = [format_says(release, ordinal) for ordinal in ALL]
        return all(words in each for each in said) or str(said)

    took_s = wait_for(f"each pod says: {words}", READY_WITHIN_S, look)
    assert not [pod for pod in release.pods() if is_running(pod)]
    return took_s


def who(release: Release) -> tuple[object, ...]:
    """The quorum: leader, epoch and voters."""
    status = release.status()
    return status["LeaderId"], status["LeaderEpoch"], status["CurrentVoters"]


def directories(release: Release) -> dict[int, str]:
    """The directory id of each voter."""
    return {each["id"]: each["directoryId"] for each in release.status()["CurrentVoters"]}


def values_of(release: Release) -> dict[str, str]:
    """All that the load has committed."""
    entity = ("--entity-type", "brokers", "--entity-default")
    text = release.quorate("configs", "describe", *entity)
    return dict(re.findall(r"^ *(e2e\.\S+)=(\d+)", text, re.MULTILINE))


def test_copies_do_not_run_and_a_quorum_that_was_moved_goes_on(cluster: Cluster) -> None:
    original = cluster.release("q")
    original.install()
    original.await_voters(*ALL)
    before = who(original)
    with another_namespace(cluster) as beside:
        copy = beside.release("q", f"clusterId={original.status()['ClusterId']}")
        moved = replace(
            copy,
            values=(*copy.values, f"persistence.movedFrom={cluster.namespace}/{original.fullname}"),
        )
        make_claims(copy, ALL)
        with Committing(original) as committing:
            with carrier(copy, ALL):
                for ordinal in ALL:
                    pod = f"{original.fullname}-{ordinal}"
                    copy_disk(cluster, pod, "/var/lib/quorate", beside, ordinal)
            for release, words in (
                (copy, "persistence.movedFrom of the chart"),
                (moved, "The original has to be gone first"),
            ):
                release.install()
                took_s = await_refusals(release, words)
                log.info(f"each copy was refused after {took_s:.1f} s: {words}")
                committing.await_more()
                release.uninstall()
            assert who(original) == before
        log.info(f"longest time without a commit: {committing.judge():.2f} s")
        disks, values = directories(original), values_of(original)
        assert values

        original.uninstall()
        with carrier(original, ALL), carrier(copy, ALL):
            for ordinal in ALL:
                copy_disk(cluster, CARRIER, f"/disks/{ordinal}", beside, ordinal)
        moved.install()
        took_s = moved.await_voters(*ALL, within_s=MOVED_WITHIN_S)
        log.info(f"the quorum that was moved has three voters, all ready, after {took_s:.1f} s")

        assert directories(moved) == disks
        assert values_of(moved) == values
        moved.set_value("e2e.moved", "1")
        assert values_of(moved) == values | {"e2e.moved": "1"}


def test_a_disk_of_another_cluster_does_no_harm_and_is_named(cluster: Cluster) -> None:
    release = cluster.release("q")
    release.install()
    release.await_voters(*ALL)
    before, pod = who(release), f"{release.fullname}-3"
    make_claims(release, (3,))
    with carrier(release, (3,)):
        lines = (
            "process.roles=controller",
            "node.id=3",
            "listeners=GRPC://:9094",
            "controller.quorum.bootstrap.servers=localhost:9094",
            "metadata.log.dir=/disks/3/metadata",
        )
        carry(cluster, "sh", "-c", f"printf '%s\\n' {' '.join(lines)} > /disks/3/c.properties")
        words = ("--config", "/disks/3/c.properties", "--cluster-id", OTHER_CLUSTER)
        carry(cluster, "quorate", "storage", "format", *words, "--no-initial-controllers")

    with Committing(release) as committing:
        cluster.kubectl("scale", f"statefulset/{release.fullname}", "--replicas=4")
        wait_for("pod 3 runs", READY_WITHIN_S, lambda: is_running(release.pod(3)))
        said = cluster.kubectl("logs", pod, "--container", "format")
        assert f"is of cluster {OTHER_CLUSTER}, and --cluster-id is" in said

        def look() -> bool | str:
            text = cluster.kubectl("logs", pod, "--container", "controller")
            return "belongs to another cluster" in text or text[-500:]

        took_s = wait_for("the controller says why", READY_WITHIN_S, look)
        log.info(f"it says so {took_s:.1f} s after its start")
        committing.await_more()
        assert not is_ready(release.pod(3))
        assert who(release) == before

        cluster.kubectl("delete", "pvc", claim_of(release, 3), "--wait=false")
        cluster.kubectl("delete", "pod", pod)
        took_s = release.await_voters(0, 1, 2, 3)
        log.info(f"an empty disk is a voter's after {took_s:.1f} s")
    log.info(f"longest time without a commit: {committing.judge():.2f} s")
