"""A pod with its disk and API server, whose peers give the answers that a test sets.

It may be killed at any step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.cli.leader_probe import Answer, LeaderStatus
from quorate.cli.main import main
from quorate.cli.output import CommandError
from quorate.cli.stateful_set import StatefulSetSeen
from quorate.records.ids import ClusterId, ReplicaKey
from quorate.storage.file_system import OsFileSystem
from quorate.storage.founding_mark import read_founding
from quorate.storage.layout import BOOTSTRAP_ID, checkpoint_name
from quorate.storage.meta_properties import MetaProperties, read_meta
from tests.unit.cli.directories import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pytest

    from quorate.client.controller_calls import Address
    from quorate.storage.file_system import OsFile


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
    start: int = 0
    # Pods that are there, those that end included.
    present: int = 0
    # What fails, with the error.
    fails: dict[str, str] = field(default_factory=dict)
    # Another process creates this one first.
    first: BootstrapRecord | None = None
    created: list[BootstrapRecord] = field(default_factory=list)

    name, record_name = "q", "q-bootstrap"

    def _may(self, what: str) -> None:
        if what in self.fails:
            raise CommandError(self.fails[what])

    def look(self) -> StatefulSetSeen:
        self._may("look")
        wanted = range(self.start, self.start + self.replicas)
        ordinals = range(self.start, self.start + max(self.replicas, self.present))
        return StatefulSetSeen(wanted=wanted, ordinals=ordinals, labels={})

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
    """A pod with its disk and API server, whose peers give the answers that a test sets."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = root / "metadata"
        self.kills = Kills()
        self.api = Api(self.kills)
        self.peers: list[LeaderStatus] = [LeaderStatus.ABSENT, LeaderStatus.REFUSED]
        self.asked: list[list[Address]] = []
        # Why DNS does not know the service of the pods.
        self.doubt: str | None = None
        # Of every call.
        self.flags: tuple[str, ...] = ()
        self.fs = OsFileSystem()
        self._properties = root / "c.properties"
        module = "quorate.cli.storage_statefulset"
        monkeypatch.setattr(f"{module}.OsFileSystem", lambda: KilledFileSystem(self.kills))
        monkeypatch.setattr(f"{module}.StatefulSetObjects", lambda **_: self.api)
        door = "quorate.cli.pod_disk_check"
        for each in (module, door):
            monkeypatch.setattr(f"{each}.ask_for_leader", self._answers)
        monkeypatch.setattr(f"{door}.PAUSE_S", 0.0)
        monkeypatch.setattr(f"{door}.why_unknown", lambda _: self.doubt)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")

    def _answers(self, servers: list[Address], *_: object) -> list[Answer]:
        self.asked.append(servers)
        return [
            Answer(server, standing, standing.value)
            for server, standing in zip(servers, self.peers, strict=False)
        ]

    def format(
        self,
        node_id: int = 0,
        *,
        host: str = "",
        flags: Iterable[str] = (),
        ways: Iterable[str] = ("--statefulset", "ns/q"),
    ) -> int:
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
        return main([*command, *ways, *self.flags, *flags])

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
