"""A pod founds a quorum on proof alone, once, and whatever interrupts it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import pytest

from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.cli import storage_statefulset
from quorate.cli.leader_probe import Answer, Standing
from quorate.cli.main import main
from quorate.cli.output import CommandError
from quorate.cli.stateful_set import StatefulSetSeen
from quorate.cli.storage_statefulset import ROUNDS, Verdict, judge_pods
from quorate.records.ids import ClusterId, DirectoryId, NodeId, ReplicaKey
from quorate.storage.files import OsFileSystem
from quorate.storage.founding import read_founding
from quorate.storage.layout import BOOTSTRAP_ID, checkpoint_name
from quorate.storage.meta import MetaProperties, read_meta
from tests.unit.cli.directories import CLUSTER, make_directory
from tests.unit.raft.cores import key, voters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from quorate.client.calls import Address
    from quorate.storage.files import OsFile

OTHER = "Cluster-of-another-Own"
OTHERS_DISK = ReplicaKey(NodeId(0), DirectoryId(b"x" * 16))
KNOWING = (Standing.LEADS, Standing.LEADERLESS)
SILENT = (Standing.NEW, Standing.REFUSED, Standing.ABSENT)


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Kills:
    """Ends the process at one step of all that change something."""

    at: int | None = None
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            raise Killed


class KilledFileSystem(OsFileSystem):
    """Counts what is done to the disk."""

    def __init__(self, kills: Kills) -> None:
        self._kills = kills

    def open(self, path: str, *, create: bool = False) -> OsFile:
        self._kills.step()
        return super().open(path, create=create)

    def rename(self, source: str, target: str) -> None:
        self._kills.step()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._kills.step()
        super().remove(path)

    def make_dirs(self, path: str) -> None:
        self._kills.step()
        super().make_dirs(path)

    def sync_dir(self, path: str) -> None:
        self._kills.step()
        super().sync_dir(path)


@dataclass
class Api:
    """The API server's StatefulSet and record, in place of `StatefulSetObjects`."""

    kills: Kills
    record: BootstrapRecord | None = None
    replicas: int = 3
    # What fails, with the error.
    fails: dict[str, str] = field(default_factory=dict)
    # Somebody else creates this one first.
    first: BootstrapRecord | None = None
    created: list[BootstrapRecord] = field(default_factory=list)

    namespace, name, record_name = "ns", "q", "q-bootstrap"

    def _may(self, what: str) -> None:
        if what in self.fails:
            raise CommandError(self.fails[what])

    def look(self) -> StatefulSetSeen:
        self._may("look")
        return StatefulSetSeen(ordinals=range(self.replicas), labels={})

    def read_record(self) -> BootstrapRecord | None:
        self._may("read")
        return self.record

    def create_record(self, record: BootstrapRecord, labels: Mapping[str, str]) -> bool:
        del labels
        self._may("create")
        self.kills.step()
        if self.first is not None:
            self.record, self.first = self.first, None
        is_new = self.record is None
        if is_new:
            self.record = record
            self.created.append(record)
        # The answer may be lost.
        self.kills.step()
        return is_new


class Pod:
    """A pod whose disk and API server are at hand, and whose peers answer what they are told to."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = root / "metadata"
        self.kills = Kills()
        self.api = Api(self.kills)
        self.peers: list[Standing] = [Standing.ABSENT, Standing.REFUSED]
        self.asked: list[list[Address]] = []
        self.fs = OsFileSystem()
        self._properties = root / "c.properties"
        module = "quorate.cli.storage_statefulset"
        monkeypatch.setattr(f"{module}.OsFileSystem", lambda: KilledFileSystem(self.kills))
        monkeypatch.setattr(f"{module}.StatefulSetObjects", lambda **_: self.api)
        monkeypatch.setattr(f"{module}.ask_for_leader", self._answers)
        monkeypatch.setattr(f"{module}.PAUSE_S", 0.0)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")

    def _answers(self, servers: list[Address], *_: object) -> list[Answer]:
        self.asked.append(servers)
        return [
            Answer(server, standing, standing.value)
            for server, standing in zip(servers, self.peers, strict=False)
        ]

    def format(self, node_id: int = 0, *, host: str = "", flags: Iterable[str] = ()) -> int:
        lines = (
            f"node.id={node_id}",
            "process.roles=controller",
            "listeners=GRPC://:9094",
            f"advertised.listeners=GRPC://{host or f'q-{node_id}.q-headless.ns.svc'}:9094",
            "controller.quorum.bootstrap.servers=q:9094",
            f"metadata.log.dir={self.directory}",
        )
        self._properties.write_text("\n".join(lines))
        command = ("storage", "format", "-c", str(self._properties), "-t", CLUSTER)
        return main([*command, "--statefulset", "ns/q", *flags])

    @property
    def meta(self) -> MetaProperties | None:
        return read_meta(self.fs, f"{self.directory}/meta.properties")

    @property
    def is_voter(self) -> bool:
        name = checkpoint_name(BOOTSTRAP_ID)
        return (self.directory / "__cluster_metadata-0" / name).exists()

    def assert_founded(self) -> None:
        assert self.meta is not None
        assert self.is_voter
        own = ReplicaKey(self.meta.node_id, self.meta.directory_id)
        assert self.api.record == BootstrapRecord(ClusterId(CLUSTER), own)
        assert self.api.created == [self.api.record]
        assert read_founding(self.fs, str(self.directory)) is None

    def assert_joined(self, cluster_id: str = CLUSTER) -> None:
        assert self.meta is not None
        assert self.meta.cluster_id == cluster_id
        assert not self.is_voter
        assert read_founding(self.fs, str(self.directory)) is None

    def assert_waits(self, capsys: pytest.CaptureFixture[str], *words: str) -> None:
        assert self.meta is None
        assert self.api.created == []
        err = capsys.readouterr().err
        for word in words:
            assert word in err


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    return Pod(tmp_path, monkeypatch)


def test_no_pod_knows_a_quorum_only_when_each_one_proves_it() -> None:
    for standings in combinations_with_replacement(Standing, 3):
        answers = [Answer(("h", 1), standing, "") for standing in standings]
        expected = Verdict.UNKNOWN
        if set(standings) & set(KNOWING):
            expected = Verdict.QUORUM
        elif set(standings) <= set(SILENT):
            expected = Verdict.NO_QUORUM
        assert judge_pods(answers) is expected
    assert judge_pods([]) is Verdict.NO_QUORUM


@pytest.mark.parametrize("standing", SILENT)
def test_pod_0_founds_where_no_pod_knows_a_quorum(pod: Pod, standing: Standing) -> None:
    pod.peers = [standing, standing]
    assert pod.format() == 0
    pod.assert_founded()
    # It asks each other pod that the StatefulSet wants, and not itself.
    assert pod.asked == [[("q-1.q-headless.ns.svc", 9094), ("q-2.q-headless.ns.svc", 9094)]]


def test_the_only_pod_has_nobody_to_ask(pod: Pod) -> None:
    pod.api.replicas = 1
    assert pod.format() == 0
    pod.assert_founded()
    assert pod.asked == [[]]


@pytest.mark.parametrize("standing", [each for each in Standing if each not in (*KNOWING, *SILENT)])
def test_what_is_unknown_founds_nothing_and_is_named_with_the_remedy(
    pod: Pod, standing: Standing, capsys: pytest.CaptureFixture[str]
) -> None:
    pod.peers = [Standing.REFUSED, standing]
    assert pod.format() == 1
    words = f"q-2.q-headless.ns.svc:9094 {standing.value}: a quorum may be there"
    pod.assert_waits(capsys, words, "See to DNS", "kubectl delete pod --force")
    assert len(pod.asked) == ROUNDS
    pod.peers = [Standing.REFUSED, Standing.ABSENT]
    assert pod.format() == 0
    pod.assert_founded()


def test_names_that_appear_a_moment_later_are_asked_again(pod: Pod) -> None:
    answers = [Standing.UNREACHABLE, Standing.UNREACHABLE, Standing.NEW]

    def answer(servers: list[Address], *_: object) -> list[Answer]:
        standing = answers.pop(0)
        return [Answer(server, standing, "") for server in servers]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(storage_statefulset, "ask_for_leader", answer)
        assert pod.format() == 0
    pod.assert_founded()
    assert answers == []


@pytest.mark.parametrize("standing", KNOWING)
@pytest.mark.parametrize("other", Standing)
def test_a_quorum_that_one_pod_knows_is_joined(
    pod: Pod, standing: Standing, other: Standing
) -> None:
    pod.peers = [other, standing]
    assert pod.format() == 0
    pod.assert_joined()
    assert pod.api.record is None


@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_other_pods_join_whatever_anybody_says(pod: Pod, node_id: int) -> None:
    pod.api.fails = {"read": "forbidden", "look": "forbidden"}
    assert pod.format(node_id) == 0
    pod.assert_joined()
    assert pod.asked == []


@pytest.mark.parametrize("node_id", [0, 1])
def test_the_records_cluster_id_counts(pod: Pod, node_id: int) -> None:
    pod.api.record = BootstrapRecord(ClusterId(OTHER))
    pod.peers = [Standing.LEADS, Standing.LEADS]
    assert pod.format(node_id) == 0
    pod.assert_joined(OTHER)


@pytest.mark.parametrize("first", [None, OTHERS_DISK])
@pytest.mark.parametrize("standing", [each for each in Standing if each not in SILENT])
def test_with_a_record_an_empty_disk_joins_also_where_pods_cannot_be_asked(
    pod: Pod, first: ReplicaKey | None, standing: Standing
) -> None:
    pod.api.record = BootstrapRecord(ClusterId(CLUSTER), first)
    pod.peers = [Standing.ABSENT, standing]
    assert pod.format() == 0
    pod.assert_joined()
    assert pod.api.created == []


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_record_of_disks_that_are_all_lost_is_named_with_the_remedy(
    pod: Pod, replicas: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pod.api.record = BootstrapRecord(ClusterId(CLUSTER), OTHERS_DISK)
    pod.api.replicas = replicas
    pod.peers = [Standing.NEW, Standing.REFUSED]
    assert pod.format() == 1
    remedy = "`kubectl delete configmap q-bootstrap --namespace ns`"
    pod.assert_waits(capsys, f"cluster {CLUSTER} has a quorum", remedy, "an emptyDir goes")
    assert len(pod.asked) == (1 if replicas == 1 else ROUNDS)
    pod.api.record = None
    assert pod.format() == 0
    pod.assert_founded()


def test_who_is_second_with_its_record_joins(pod: Pod) -> None:
    pod.api.first = BootstrapRecord(ClusterId(CLUSTER), OTHERS_DISK)
    # A pod knows that quorum by the time at which it is looked for.
    standings = [Standing.REFUSED, Standing.LEADS]

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
            # Now it cannot be told what the others know: what was begun is not begun twice.
            if pod.api.record is not None:
                pod.peers = [Standing.UNREACHABLE, Standing.UNCLEAR]
            assert pod.format() == 0
        pod.assert_founded()
        # As at each start of the pod.
        assert pod.format() == 0
        pod.assert_founded()
    assert at > 10


def test_a_formatted_disk_is_left_alone(pod: Pod) -> None:
    pod.api.fails = {"read": "no right", "look": "no right", "create": "no right"}
    make_directory(pod.directory, key(1), voters(1), epoch=3)
    before = pod.meta
    assert pod.format(1) == 0
    assert pod.meta == before


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
