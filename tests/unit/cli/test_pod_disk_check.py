"""A pod starts on its own disk, and on another pod's only where that was moved here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.cli import pod_disk_check, storage_statefulset
from quorate.cli.leader_probe import Answer, LeaderStatus
from quorate.cli.pod_disk_check import ROUNDS
from quorate.records.ids import ClusterId, ReplicaKey
from tests.unit.cli.directories import CLUSTER, make_directory
from tests.unit.cli.pods import Killed, Pod
from tests.unit.raft.cores import key, voters

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.client.controller_calls import Address

OWN = "q-1.q-headless.ns.svc"
ORIGINAL = "q-1.q-headless.prod.svc"
MOVED = ("--moved-from", "prod/q")
GONE = [LeaderStatus.ABSENT, LeaderStatus.ABSENT]


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    return Pod(tmp_path, monkeypatch)


def put(pod: Pod, domain: str | None) -> None:
    """A voter's disk with a log, of the pod of that name."""
    make_directory(pod.directory, key(1), voters(1, 2, 3), epoch=3)
    if domain is not None:
        (pod.directory / "pod-domain").write_text(f"{domain}\n")


def domain_of(pod: Pod) -> str | None:
    path = pod.directory / "pod-domain"
    return path.read_text().strip() if path.exists() else None


def assert_refused(pod: Pod, capsys: pytest.CaptureFixture[str], *words: str) -> None:
    """The error has these words, the disk stays as it is, and no second quorum is founded."""
    before = domain_of(pod)
    assert pod.format(1) == 1
    err = capsys.readouterr().err
    for word in words:
        assert word in err
    assert domain_of(pod) == before
    assert pod.api.record is not None
    assert pod.api.record.first is None
    assert "While ConfigMap q-bootstrap is there no empty disk founds a quorum here" in err


@pytest.mark.parametrize("node_id", [0, 1])
def test_a_disk_that_is_formatted_belongs_to_its_pod(pod: Pod, node_id: int) -> None:
    assert pod.format(node_id) == 0
    assert domain_of(pod) == f"q-{node_id}.q-headless.ns.svc"
    assert pod.format(node_id) == 0
    assert domain_of(pod) == f"q-{node_id}.q-headless.ns.svc"


def test_a_disk_of_a_release_before_belongs_to_the_pod_that_starts_on_it(
    pod: Pod, capsys: pytest.CaptureFixture[str]
) -> None:
    put(pod, None)
    assert pod.format(1) == 0
    assert domain_of(pod) == OWN
    assert f"belongs to {OWN} from now on" in capsys.readouterr().out


def test_the_domain_of_the_cluster_is_no_part_of_it(pod: Pod) -> None:
    put(pod, OWN)
    assert pod.format(1, host="q-1.q-headless.ns.svc.cluster.local") == 0
    assert domain_of(pod) == OWN


def test_a_service_may_be_renamed(pod: Pod) -> None:
    put(pod, "q-1.before.ns.svc")
    assert pod.format(1) == 0
    assert domain_of(pod) == OWN


def test_a_copy_of_a_disk_is_refused_with_both_domains_the_file_and_the_remedy(
    pod: Pod, capsys: pytest.CaptureFixture[str]
) -> None:
    put(pod, ORIGINAL)
    remedy = "--moved-from prod/q (persistence.movedFrom of the chart)"
    path = str(pod.directory / "pod-domain")
    why = "would vote and acknowledge in the quorum of the original"
    assert_refused(pod, capsys, path, ORIGINAL, OWN, why, remedy, "docs/kubernetes.md")
    assert pod.asked == []


@pytest.mark.parametrize("content", [ORIGINAL, "no name"])
def test_beside_a_disk_that_is_refused_no_empty_disk_founds_a_quorum(
    pod: Pod, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    put(pod, content)
    assert pod.format(1) == 1
    assert pod.api.created == [BootstrapRecord(ClusterId(CLUSTER))]
    first = Pod(tmp_path / "0", monkeypatch)
    first.directory.parent.mkdir()
    first.api.record, first.peers = pod.api.record, [LeaderStatus.REFUSED, LeaderStatus.REFUSED]
    assert first.format(0) == 1
    assert first.meta is None
    assert first.api.record == BootstrapRecord(ClusterId(CLUSTER))


def test_a_disk_that_is_refused_while_pod_0_asks_prevents_founding(pod: Pod) -> None:
    pod.peers = [LeaderStatus.REFUSED, LeaderStatus.REFUSED]
    pod.api.first = BootstrapRecord(ClusterId(CLUSTER))
    assert pod.format(0) == 1
    assert pod.meta is None
    assert pod.api.created == []


def test_a_disk_that_has_known_no_leader_is_refused_without_a_record(pod: Pod) -> None:
    assert pod.format(1) == 0
    (pod.directory / "pod-domain").write_text(ORIGINAL)
    assert pod.format(1) == 1
    assert pod.api.created == []


@pytest.mark.parametrize("cluster", [CLUSTER, "Cluster-of-another-Own"])
def test_nothing_is_moved_to_where_a_quorum_was_founded(
    pod: Pod, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(pod, ORIGINAL)
    pod.flags, pod.peers = MOVED, GONE
    pod.api.record = BootstrapRecord(ClusterId(cluster), key(0))
    assert pod.format(1) == 1
    err = capsys.readouterr().err
    assert f"ConfigMap q-bootstrap says that a quorum of cluster {cluster} was founded here" in err
    assert "delete ConfigMap q-bootstrap" in err
    assert domain_of(pod) == ORIGINAL


def test_the_disk_that_the_record_names_may_move_back(pod: Pod) -> None:
    put(pod, ORIGINAL)
    pod.flags, pod.peers = MOVED, GONE
    assert pod.meta is not None
    pod.api.record = BootstrapRecord(
        ClusterId(CLUSTER), ReplicaKey(pod.meta.node_id, pod.meta.directory_id)
    )
    assert pod.format(1) == 0
    assert domain_of(pod) == OWN


def test_an_original_that_is_still_ending_is_waited_for(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(pod, ORIGINAL)
    pod.flags = MOVED
    left = [*[LeaderStatus.REFUSED] * (ROUNDS - 1), LeaderStatus.ABSENT]

    def answer(servers: list[Address], *_: object) -> list[Answer]:
        standing = left.pop(0)
        return [Answer(server, standing, standing.value) for server in servers]

    monkeypatch.setattr(pod_disk_check, "ask_for_leader", answer)
    assert pod.format(1) == 0
    assert left == []
    assert domain_of(pod) == OWN


@pytest.mark.parametrize("namespace", ["ns", "prod"])
def test_the_disk_of_another_ordinal_is_refused_whatever_was_moved(
    pod: Pod, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(pod, f"q-2.q-headless.{namespace}.svc")
    pod.flags = ("--moved-from", f"{namespace}/q")
    assert_refused(pod, capsys, "a disk is that of one ordinal", "or an empty one")


def test_a_disk_that_was_moved_belongs_to_the_new_pod_from_then_on(
    pod: Pod, capsys: pytest.CaptureFixture[str]
) -> None:
    put(pod, ORIGINAL)
    pod.flags, pod.peers = MOVED, GONE
    assert pod.format(1) == 0
    assert pod.asked == [[(ORIGINAL, 9094), ("q-headless.prod.svc", 9094)]]
    assert domain_of(pod) == OWN
    assert f"was moved: it belongs to {OWN} from now on, not to {ORIGINAL}" in (
        capsys.readouterr().out
    )
    assert pod.api.created == [BootstrapRecord(ClusterId(CLUSTER))]
    # What was said once is of no use any more, and does no harm either.
    for flags in ((), MOVED):
        pod.flags = flags
        assert pod.format(1) == 0
    assert len(pod.asked) == 1


def test_a_stateful_set_that_was_renamed_is_a_move_as_well(pod: Pod) -> None:
    put(pod, "before-1.before-headless.ns.svc")
    pod.flags, pod.peers = ("--moved-from", "ns/before"), GONE
    assert pod.format(1) == 0
    assert domain_of(pod) == OWN


@pytest.mark.parametrize("named", ["prod/other", "other/q", "ns/q"])
def test_another_origin_than_that_of_the_disk_moves_nothing(
    pod: Pod, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(pod, ORIGINAL)
    pod.flags, pod.peers = ("--moved-from", named), GONE
    assert_refused(pod, capsys, f"names {named}, which had no such pod", "write prod/q")


@pytest.mark.parametrize("named", ["", "prod", "prod/q/1", "/q"])
def test_an_origin_that_is_no_stateful_set_is_refused(
    pod: Pod, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(pod, ORIGINAL)
    pod.flags, pod.peers = (f"--moved-from={named}",), GONE
    assert_refused(pod, capsys, "--moved-from")


@pytest.mark.parametrize(
    "leader_status", [each for each in LeaderStatus if each is not LeaderStatus.ABSENT]
)
@pytest.mark.parametrize("at", [0, 1])
def test_nothing_is_moved_while_the_original_may_be_there(
    pod: Pod, leader_status: LeaderStatus, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    put(pod, ORIGINAL)
    pod.flags = MOVED
    pod.peers = [leader_status if index == at else LeaderStatus.ABSENT for index in range(2)]
    assert_refused(pod, capsys, leader_status.value, "The original has to be gone first", ORIGINAL)


def test_absent_names_prove_nothing_while_dns_does_not_know_the_own_service(
    pod: Pod, capsys: pytest.CaptureFixture[str]
) -> None:
    put(pod, ORIGINAL)
    pod.flags, pod.peers, pod.doubt = MOVED, GONE, "no such name"
    assert_refused(pod, capsys, "q-headless.ns.svc:9094 must have an address")


def test_a_disk_of_another_cluster_is_not_moved(
    pod: Pod, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "Cluster-of-another-Own"
    make_directory(pod.directory, key(1), voters(1), cluster_id=other)
    (pod.directory / "pod-domain").write_text(ORIGINAL)
    pod.flags, pod.peers = MOVED, GONE
    assert_refused(pod, capsys, f"--cluster-id is {CLUSTER}", f"of cluster {other}", "clusterId")


@pytest.mark.parametrize("node_id", [0, 1])
def test_an_empty_disk_waits_for_a_disk_that_was_moved(
    pod: Pod, node_id: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pod.flags, pod.peers = MOVED, [LeaderStatus.REFUSED, LeaderStatus.NEW]
    assert pod.format(node_id) == 1
    claims = "of the claims data-q-0, data-q-1, data-q-2"
    pod.assert_waits(capsys, "--moved-from prod/q says", claims, "persistence.movedFrom")
    # Without the flag nothing stands in the way of a new quorum.
    pod.flags = ()
    assert pod.format(node_id) == 0


@pytest.mark.parametrize("node_id", [0, 1])
@pytest.mark.parametrize("leader_status", [LeaderStatus.LEADS, LeaderStatus.LEADERLESS])
def test_an_empty_disk_joins_the_pods_whose_disks_were_moved(
    pod: Pod, node_id: int, leader_status: LeaderStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod.flags = MOVED
    left = [LeaderStatus.REFUSED, LeaderStatus.ABSENT, leader_status]

    def answer(servers: list[Address], *_: object) -> list[Answer]:
        now = left.pop(0)
        return [Answer(server, now, now.value) for server in servers]

    monkeypatch.setattr(storage_statefulset, "ask_for_leader", answer)
    assert pod.format(node_id) == 0
    pod.assert_joined()
    assert left == []
    assert pod.api.created == []


@pytest.mark.parametrize("node_id", [0, 1])
def test_an_empty_disk_joins_where_a_disk_that_was_moved_brought_the_record(
    pod: Pod, node_id: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pod.flags, pod.peers = MOVED, [LeaderStatus.REFUSED, LeaderStatus.REFUSED]
    pod.api.record = BootstrapRecord(ClusterId(CLUSTER))
    assert pod.format(node_id) == 0
    pod.assert_joined()
    assert domain_of(pod) == f"q-{node_id}.q-headless.ns.svc"
    assert "disks were moved here from prod/q" in capsys.readouterr().out


def test_an_empty_disk_joins_no_other_cluster_than_that_of_the_disks_that_were_moved(
    pod: Pod, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "Cluster-of-another-Own"
    pod.flags, pod.api.record = MOVED, BootstrapRecord(ClusterId(other))
    assert pod.format(1) == 1
    pod.assert_waits(capsys, f"--cluster-id is {CLUSTER}", f"cluster {other}", "clusterId")


def test_a_disk_that_was_emptied_belongs_to_the_pod_that_formats_it(pod: Pod) -> None:
    pod.directory.mkdir()
    (pod.directory / "pod-domain").write_text(ORIGINAL)
    assert pod.format(1) == 0
    assert domain_of(pod) == OWN


@pytest.mark.parametrize("content", ["", "no name", "q" * 5000])
def test_a_damaged_file_is_refused_with_the_remedy(
    pod: Pod, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(pod, None)
    (pod.directory / "pod-domain").write_text(content)
    assert_refused(pod, capsys, "pod-domain: malformed", "remove the file in a rescue pod")
    (pod.directory / "pod-domain").unlink()
    assert pod.format(1) == 0


@pytest.mark.parametrize("moves", [False, True])
def test_a_crash_at_any_step_loses_neither_the_check_nor_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, moves: bool
) -> None:
    at, is_over = 0, False
    while not is_over:
        at += 1
        pod = Pod(tmp_path / str(at), monkeypatch)
        pod.directory.parent.mkdir()
        if moves:
            put(pod, ORIGINAL)
            pod.flags, pod.peers = MOVED, GONE
        pod.kills.at = at
        try:
            assert pod.format(1) == 0
            is_over = True
        except Killed:
            if moves:
                assert domain_of(pod) in (ORIGINAL, OWN)
            elif pod.meta is not None:
                assert domain_of(pod) == OWN
            assert pod.format(1) == 0
        assert domain_of(pod) == OWN
    assert at > 3


@pytest.mark.parametrize("host", ["q-1", "q-1..ns.svc", "q-1.under_score"])
def test_a_host_without_a_service_names_no_pod(
    pod: Pod, host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pod.format(1, host=host) == 1
    pod.assert_waits(capsys, "advertised.listeners", "write q-1.SERVICE.ns.svc")


def test_a_move_is_for_pods_alone(pod: Pod, capsys: pytest.CaptureFixture[str]) -> None:
    assert pod.format(1, ways=("--no-initial-controllers",), flags=MOVED) == 1
    pod.assert_waits(capsys, "--moved-from is for --statefulset")
