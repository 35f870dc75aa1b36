"""`quorate storage backup` and `restore`: what they say, what they refuse."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

import pytest

from quorate.cli import storage_backup
from quorate.cli.leader_probe import Answer, LeaderStatus
from quorate.cli.main import main
from quorate.records.ids import DirectoryId, Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.storage.file_system import OsFileSystem
from quorate.storage.meta_properties import read_meta
from tests.unit.cli.directories import CLUSTER, make_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., tuple[int, str, str]]

KEY = ReplicaKey(NodeId(1), DirectoryId(b"\x01" * 16))
ALONE = VoterSet.of([Voter(KEY, (Endpoint("GRPC", "node-1", 9094),))])


@pytest.fixture
def committed(monkeypatch: pytest.MonkeyPatch) -> list[OffsetAndEpoch]:
    """The end that a leader reports as committed; while it is empty, no server answers."""
    said: list[OffsetAndEpoch] = []

    async def ask(*_: object) -> OffsetAndEpoch | None:
        return said[0] if said else None

    monkeypatch.setattr(storage_backup, "_committed", ask)
    monkeypatch.setattr(storage_backup, "ask_for_leader", lambda *_: [])
    return said


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], committed: list[OffsetAndEpoch]) -> Run:
    """Run a storage command on `tmp_path`/NAME; status, stdout and stderr."""

    def run_(command: str, name: str, *flags: str, node_id: int = 1) -> tuple[int, str, str]:
        properties = tmp_path / "controller.properties"
        properties.write_text(
            f"node.id={node_id}\nlisteners=GRPC://node-{node_id}:9094\n"
            f"metadata.log.dir={tmp_path / name}\n"
            "controller.quorum.bootstrap.servers=node-1:9094\n"
        )
        status = main(["storage", command, "--config", str(properties), *flags])
        out, err = capsys.readouterr()
        return status, out, err

    return run_


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """The path of a backup; the directory that is backed up is `old`."""
    make_directory(tmp_path / "old", KEY, ALONE)
    return tmp_path / "backup.tar"


def test_a_backup_says_where_it_ends_and_only_its_owner_may_read_it(run: Run, backup: Path) -> None:
    status, out, err = run("backup", "old", "--output", str(backup))
    assert (status, err) == (0, "")
    digest = hashlib.sha256(backup.read_bytes()).hexdigest()
    assert out == (
        f"Backup:     {backup}\n"
        f"ClusterId:  {CLUSTER}\n"
        "LogEnd:     8@1 (committed or not: no leader answered)\n"
        f"SHA256:     {digest}\n"
    )
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_with_a_leader_it_ends_at_what_is_committed(
    run: Run, backup: Path, committed: list[OffsetAndEpoch]
) -> None:
    committed.append(OffsetAndEpoch(epoch=Epoch(1), offset=Offset(3)))
    _, out, _ = run("backup", "old", "--output", str(backup))
    assert "LogEnd:     3@1 (all of it committed)\n" in out


@pytest.mark.parametrize(("offset", "epoch"), [(9, 1), (8, 2)])
def test_a_directory_that_is_behind_the_leader_is_refused(
    run: Run, backup: Path, committed: list[OffsetAndEpoch], offset: int, epoch: int
) -> None:
    committed.append(OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(offset)))
    status, _, err = run("backup", "old", "--output", str(backup), "--timeout-ms", "0")
    assert status == 1
    assert f"ends at 8@1, and {offset}@{epoch} is committed" in err
    assert not backup.exists()


def test_a_file_is_not_overwritten(run: Run, backup: Path) -> None:
    backup.write_bytes(b"precious")
    status, _, err = run("backup", "old", "--output", str(backup))
    assert (status, "exists already" in err) == (1, True)
    assert backup.read_bytes() == b"precious"


def test_a_backup_without_a_place_for_its_file_is_refused_at_once(run: Run, backup: Path) -> None:
    status, _, err = run("backup", "nowhere", "--output", "")
    assert (status, err) == (1, "error: --output is empty: name a file that is not there\n")
    backup.write_bytes(b"no directory")
    for parent in (backup, backup.parent / "no"):
        status, _, err = run("backup", "nowhere", "--output", str(parent / "backup.tar"))
        words = f"--output: {parent} is no directory: make it, or name another file"
        assert (status, err) == (1, f"error: {words}\n")


def test_a_backup_that_fails_leaves_no_file(run: Run, backup: Path) -> None:
    before = sorted(backup.parent.iterdir())
    assert run("backup", "nowhere", "--output", str(backup))[0] == 1
    long = backup.parent / ("b" * 255)
    status, _, err = run("backup", "old", "--output", str(long))
    words = f"--output: {long}.tmp: File name too long: name a file that can be written"
    assert (status, err) == (1, f"error: {words}\n")
    assert {path.name for path in backup.parent.iterdir()} == {
        *(path.name for path in before),
        "controller.properties",
    }


def test_a_restoration_says_what_it_is(run: Run, backup: Path, tmp_path: Path) -> None:
    run("backup", "old", "--output", str(backup))
    status, out, err = run("restore", "new", "--input", str(backup), node_id=7)
    assert (status, err) == (0, "")
    meta = read_meta(OsFileSystem(), str(tmp_path / "new/meta.properties"))
    assert meta is not None
    assert (meta.node_id, meta.cluster_id) == (7, CLUSTER)
    assert meta.directory_id != KEY.directory_id
    assert f"Restored:     {tmp_path / 'new'}: node 7 is the only voter\n" in out
    assert f"SHA256:       {hashlib.sha256(backup.read_bytes()).hexdigest()}\n" in out
    assert "LogEnd:       8@1 in the backup, now 11@1001\n" in out
    status, _, err = run("restore", "new", "--input", str(backup), node_id=7)
    assert (status, "is not empty" in err) == (1, True)


def test_a_copy_beside_the_original_has_another_cluster_id(
    run: Run, backup: Path, tmp_path: Path
) -> None:
    run("backup", "old", "--output", str(backup))
    run("restore", "new", "--input", str(backup), "--new-cluster-id", "copy")
    meta = read_meta(OsFileSystem(), str(tmp_path / "new/meta.properties"))
    assert meta is not None
    assert meta.cluster_id == "copy"


def test_nothing_is_restored_where_the_backup_is_damaged_or_somebody_leads(
    run: Run, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("backup", "old", "--output", str(backup))
    leads = [Answer(("node-1", 9094), LeaderStatus.LEADS, "leads")]
    with monkeypatch.context() as patch:
        patch.setattr(storage_backup, "ask_for_leader", lambda *_: leads)
        status, _, err = run("restore", "new", "--input", str(backup))
    assert (status, "the quorum is alive" in err) == (1, True)
    data = bytearray(backup.read_bytes())
    data[600] ^= 1
    backup.write_bytes(bytes(data))
    status, _, err = run("restore", "new", "--input", str(backup))
    assert (status, "is no backup that can be restored" in err) == (1, True)
    assert not (tmp_path / "new").exists()


def test_a_restoration_of_what_is_no_file_names_it(run: Run, tmp_path: Path) -> None:
    nowhere, pipe = tmp_path / "nowhere", tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, problem in (
        (nowhere, "No such file or directory:"),
        (pipe, "it is a pipe, not a regular file;"),
    ):
        status, _, err = run("restore", "new", "--input", str(path))
        words = f"--input: {path}: {problem} name what `backup` wrote"
        assert (status, err) == (1, f"error: {words}\n")
    assert not (tmp_path / "new").exists()
