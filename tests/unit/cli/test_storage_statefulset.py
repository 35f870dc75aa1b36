"""A pod founds a quorum on proof alone, and once, also after a crash at any step."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import pytest

from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.cli import storage_statefulset
from quorate.cli.leader_probe import Answer, LeaderStatus
from quorate.cli.pod_disk_check import ROUNDS
from quorate.cli.storage_statefulset import PROOFS, SILENCES, Verdict, judge_pods
from quorate.records.ids import ClusterId, DirectoryId, NodeId, ReplicaKey
from quorate.storage.founding_mark import write_founding
from tests.unit.cli.directories import CLUSTER, make_directory
from tests.unit.cli.pods import Killed, Pod
from tests.unit.raft.cores import key, voters

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.client.controller_calls import Address

OTHER = "Cluster-of-another-Own"
BEGUN = DirectoryId(b"b" * 16)
OTHERS_DISK = ReplicaKey(NodeId(0), DirectoryId(b"x" * 16))
KNOWING = (LeaderStatus.LEADS, LeaderStatus.LEADERLESS)
SILENT = (LeaderStatus.NEW, LeaderStatus.REFUSED, LeaderStatus.ABSENT)


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    return Pod(tmp_path, monkeypatch)


def test_no_pod_knows_a_quorum_only_when_each_one_proves_it() -> None:
    for standings in combinations_with_replacement(LeaderStatus, 3):
        answers = [Answer(("h", 1), standing, "") for standing in standings]
        expected = Verdict.UNKNOWN
        if set(standings) & set(KNOWING):
            expected = Verdict.QUORUM
        elif set(standings) <= set(SILENT):
            expected = Verdict.NO_QUORUM
        assert judge_pods(answers) is expected
    assert judge_pods([]) is Verdict.NO_QUORUM


@pytest.mark.parametrize("leader_status", SILENT)
def test_pod_0_founds_where_no_pod_knows_a_quorum(pod: Pod, leader_status: LeaderStatus) -> None:
    pod.peers = [leader_status, leader_status]
    assert pod.format() == 0
    pod.assert_founded()
    # It asks each other pod that the StatefulSet wants, and not itself, before it records that it
    # founds, and once before it does. A pod that does not answer may be about to refuse its disk.
    others = [("q-1.q-headless.ns.svc", 9094), ("q-2.q-headless.ns.svc", 9094)]
    looks = PROOFS if leader_status is LeaderStatus.NEW else SILENCES
    assert pod.asked == [others] * (looks + 1)


def test_pods_that_are_scaled_away_or_end_are_asked_too(pod: Pod) -> None:
    pod.api.replicas, pod.api.present = 1, 3
    pod.peers = [LeaderStatus.ABSENT, LeaderStatus.LEADS]
    assert pod.format() == 0
    pod.assert_joined()


@pytest.mark.parametrize(("replicas", "start"), [(0, 0), (3, 1)])
def test_a_pod_that_is_not_wanted_founds_nothing(
    pod: Pod, replicas: int, start: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pod.api.replicas, pod.api.start = replicas, start
    assert pod.format() == 1
    pod.assert_waits(capsys, f"wants no pod 0 (replicas {replicas}, ordinals from {start})")


def test_another_ordinal_than_the_first_joins(pod: Pod) -> None:
    pod.api.start = 3
    assert pod.format(4) == 0
    pod.assert_joined()


def test_the_first_ordinal_founds_whatever_it_is(pod: Pod) -> None:
    pod.api.start = 3
    assert pod.format(3) == 0
    pod.assert_founded()


def test_absent_names_prove_nothing_while_dns_does_not_know_the_service(
    pod: Pod, capsys: pytest.CaptureFixture[str]
) -> None:
    pod.doubt = "no such name"
    assert pod.format() == 1
    words = "q-headless.ns.svc:9094 must have an address, as the service of this very pod"
    pod.assert_waits(capsys, words, "See to DNS")
    # Pods that answer need no names.
    pod.peers = [LeaderStatus.NEW, LeaderStatus.REFUSED]
    assert pod.format() == 0
    pod.assert_founded()


def test_one_look_is_no_proof_when_the_time_is_over(
    pod: Pod, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [*[LeaderStatus.UNREACHABLE] * (ROUNDS - 1), LeaderStatus.NEW]

    def answer(servers: list[Address], *_: object) -> list[Answer]:
        standing = answers.pop(0)
        return [Answer(server, standing, standing.value) for server in servers]

    monkeypatch.setattr(storage_statefulset, "ask_for_leader", answer)
    assert pod.format() == 1
    assert answers == []
    pod.assert_waits(capsys, "q-1.q-headless.ns.svc:9094 no leader ever", "a quorum may be there")


def test_the_only_pod_has_nobody_to_ask(pod: Pod) -> None:
    pod.api.replicas = 1
    assert pod.format() == 0
    pod.assert_founded()
    assert pod.asked == [[], []]


@pytest.mark.parametrize(
    "leader_status", [each for each in LeaderStatus if each not in (*KNOWING, *SILENT)]
)
def test_what_is_unknown_founds_nothing_and_is_named_with_the_remedy(
    pod: Pod, leader_status: LeaderStatus, capsys: pytest.CaptureFixture[str]
) -> None:
    pod.peers = [LeaderStatus.REFUSED, leader_status]
    assert pod.format() == 1
    words = f"q-2.q-headless.ns.svc:9094 {leader_status.value}: a quorum may be there"
    pod.assert_waits(capsys, words, "See to DNS", "kubectl delete pod --force")
    assert len(pod.asked) == ROUNDS
    pod.peers = [LeaderStatus.REFUSED, LeaderStatus.ABSENT]
    assert pod.format() == 0
    pod.assert_founded()


def test_names_that_appear_a_moment_later_are_asked_again(pod: Pod) -> None:
    # One look that proves something is followed by another one.
    answers = [LeaderStatus.NEW, LeaderStatus.UNREACHABLE, *[LeaderStatus.NEW] * (PROOFS + 1)]

    def answer(servers: list[Address], *_: object) -> list[Answer]:
        standing = answers.pop(0)
        return [Answer(server, standing, "") for server in servers]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(storage_statefulset, "ask_for_leader", answer)
        assert pod.format() == 0
    pod.assert_founded()
    assert answers == []


@pytest.mark.parametrize("leader_status", KNOWING)
@pytest.mark.parametrize("other", LeaderStatus)
def test_a_quorum_that_one_pod_knows_is_joined(
    pod: Pod, leader_status: LeaderStatus, other: LeaderStatus
) -> None:
    pod.peers = [other, leader_status]
    assert pod.format() == 0
    pod.assert_joined()
    # The next empty disk need not ask.
    assert pod.api.created == [BootstrapRecord(ClusterId(CLUSTER))]


def test_a_quorum_is_joined_without_the_right_to_record_it(pod: Pod) -> None:
    pod.api.fails = {"create": "no right"}
    pod.peers = [LeaderStatus.LEADS, LeaderStatus.LEADS]
    assert pod.format() == 0
    pod.assert_joined()


@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_other_pods_join_whatever_anybody_says(pod: Pod, node_id: int) -> None:
    pod.api.fails = {"read": "forbidden", "look": "forbidden"}
    assert pod.format(node_id) == 0
    pod.assert_joined()
    assert pod.asked == []


@pytest.mark.parametrize("node_id", [0, 1])
def test_the_records_cluster_id_counts(pod: Pod, node_id: int) -> None:
    pod.api.record = BootstrapRecord(ClusterId(OTHER))
    pod.peers = [LeaderStatus.LEADS, LeaderStatus.LEADS]
    assert pod.format(node_id) == 0
    pod.assert_joined(OTHER)


@pytest.mark.parametrize("first", [None, OTHERS_DISK])
@pytest.mark.parametrize("leader_status", [each for each in LeaderStatus if each not in SILENT])
def test_with_a_record_an_empty_disk_joins_also_where_pods_cannot_be_asked(
    pod: Pod, first: ReplicaKey | None, leader_status: LeaderStatus
) -> None:
    pod.api.record = BootstrapRecord(ClusterId(CLUSTER), first)
    pod.peers = [LeaderStatus.ABSENT, leader_status]
    assert pod.format() == 0
    pod.assert_joined()
    assert pod.api.created == []


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_record_of_disks_that_are_all_lost_is_named_with_the_remedy(
    pod: Pod, replicas: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pod.api.record = BootstrapRecord(ClusterId(CLUSTER), OTHERS_DISK)
    pod.api.replicas = replicas
    pod.peers = [LeaderStatus.NEW, LeaderStatus.REFUSED]
    assert pod.format() == 1
    remedy = "See that the other pods run, and whether their claims are there"
    pod.assert_waits(capsys, f"cluster {CLUSTER} has a quorum", remedy, "docs/kubernetes.md")
    assert len(pod.asked) == (1 if replicas == 1 else ROUNDS)
    pod.api.record = None
    assert pod.format() == 0
    pod.assert_founded()


def test_who_is_second_with_its_record_joins(pod: Pod) -> None:
    pod.api.first = BootstrapRecord(ClusterId(CLUSTER), OTHERS_DISK)
    # A pod knows that quorum by the time at which it is looked for.
    standings = [*[LeaderStatus.REFUSED] * SILENCES, LeaderStatus.LEADS]

    def answer(servers: list[Address], *_: object) -> list[Answer]:
        standing = standings.pop(0)
        return [Answer(server, standing, "") for server in servers]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(storage_statefulset, "ask_for_leader", answer)
        assert pod.format() == 0
    pod.assert_joined()


@pytest.mark.parametrize("what", ["look", "read", "create"])
def test_an_api_server_that_refuses_founds_nothing(
    pod: Pod, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pod.api.fails = {what: "no right"}
    assert pod.format() == 1
    pod.assert_waits(capsys, "no right")
    pod.api.fails = {}
    assert pod.format() == 0
    pod.assert_founded()


def test_a_crash_at_any_step_founds_once_and_blocks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, is_over = 0, False
    while not is_over:
        at += 1
        pod = Pod(tmp_path / str(at), monkeypatch)
        pod._properties.parent.mkdir()
        pod.kills.at = at
        try:
            assert pod.format() == 0
            is_over = True
        except Killed:
            # Now the command cannot tell what the others know: what was begun is not begun twice.
            if pod.api.record is not None:
                pod.peers = [LeaderStatus.UNREACHABLE, LeaderStatus.UNCLEAR]
            assert pod.format() == 0
        pod.assert_founded()
        # As at each start of the pod.
        assert pod.format() == 0
        pod.assert_founded()
    assert at > 10


def begun(pod: Pod) -> None:
    """The pod recorded that it founds, and was killed before it did."""
    pod.api.record = BootstrapRecord(ClusterId(CLUSTER), ReplicaKey(NodeId(0), BEGUN))
    pod.fs.make_dirs(str(pod.directory))
    write_founding(pod.fs, str(pod.directory), BEGUN)


@pytest.mark.parametrize("leader_status", KNOWING)
def test_a_founding_that_was_begun_ends_where_a_quorum_is_known(
    pod: Pod, leader_status: LeaderStatus
) -> None:
    begun(pod)
    pod.peers = [LeaderStatus.UNREACHABLE, leader_status]
    assert pod.format() == 0
    pod.assert_joined()


def test_a_record_that_goes_meanwhile_founds_nothing(
    pod: Pod, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(pod)

    def answer(*_: object) -> list[Answer]:
        pod.api.record = None
        return []

    monkeypatch.setattr(storage_statefulset, "ask_for_leader", answer)
    assert pod.format() == 1
    pod.assert_waits(capsys, "ConfigMap q-bootstrap has changed meanwhile")


def test_a_directory_that_was_in_use_records_nothing(
    pod: Pod, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = pod.directory / "__cluster_metadata-0"
    log_dir.mkdir(parents=True)
    (log_dir / "quorum-state").write_text("{}")
    assert pod.format() == 1
    pod.assert_waits(capsys, "this directory has been in use")


def test_flags_that_are_wrong_record_nothing(pod: Pod, capsys: pytest.CaptureFixture[str]) -> None:
    assert pod.format(flags=("--feature", "no.such=1")) == 1
    pod.assert_waits(capsys, "--feature: no.such is not known")


def test_a_quorum_without_a_leader_is_said(pod: Pod, capsys: pytest.CaptureFixture[str]) -> None:
    pod.api.record = BootstrapRecord(ClusterId(CLUSTER), OTHERS_DISK)
    pod.peers = [LeaderStatus.LEADERLESS, LeaderStatus.ABSENT]
    assert pod.format() == 0
    pod.assert_joined()
    assert "warning: no pod has a leader: q-1" in capsys.readouterr().err


def test_no_failure_of_the_api_server_keeps_a_formatted_disk_from_starting(
    pod: Pod, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(pod.api, "read_record", fail)
    make_directory(pod.directory, key(1), voters(1), epoch=3)
    assert pod.format(1) == 0
    assert "warning: out of order" in capsys.readouterr().err


def test_a_formatted_disk_is_left_alone(pod: Pod) -> None:
    pod.api.fails = {"read": "no right", "look": "no right", "create": "no right"}
    make_directory(pod.directory, key(1), voters(1), epoch=3)
    before = pod.meta
    assert pod.format(1) == 0
    assert pod.meta == before


def test_a_disk_of_another_cluster_starts_and_is_named_with_the_remedy(
    pod: Pod, capsys: pytest.CaptureFixture[str]
) -> None:
    make_directory(pod.directory, key(1), voters(1), epoch=3, cluster_id=OTHER)
    assert pod.format(1) == 0
    warning = f"is of cluster {OTHER}, and --cluster-id is {CLUSTER}"
    err = capsys.readouterr().err
    assert f"warning: {pod.directory} {warning}" in err
    assert "delete its claim and this pod" in err


@pytest.mark.parametrize("node_id", [1, 2])
def test_a_disk_of_a_quorum_without_a_record_brings_the_record(pod: Pod, node_id: int) -> None:
    make_directory(pod.directory, key(node_id), voters(node_id), epoch=3)
    assert pod.format(node_id) == 0
    assert pod.api.created == [BootstrapRecord(ClusterId(CLUSTER))]
    assert pod.format(node_id) == 0
    assert len(pod.api.created) == 1


def test_a_disk_that_waits_for_its_first_leader_brings_none(pod: Pod) -> None:
    assert pod.format(1) == 0
    assert pod.format(1) == 0
    assert pod.api.created == []


@pytest.mark.parametrize("host", ["q-1.q-headless", "localhost", "10.0.0.7", "q-0x"])
def test_a_node_that_is_no_such_pod_is_refused(
    pod: Pod, host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pod.format(host=host) == 1
    pod.assert_waits(capsys, "does not begin with the name of pod 0, q-0", "advertised.listeners")


@pytest.mark.parametrize("flags", [("--standalone",), ("--no-initial-controllers",)])
def test_it_is_one_of_the_ways_to_name_the_first_voters(
    pod: Pod, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        pod.format(flags=flags)
    assert "not allowed with" in capsys.readouterr().err
