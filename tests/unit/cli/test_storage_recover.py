"""`quorate storage recover`: what it shows and refuses, and that it changes nothing by itself."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from quorate.cli import storage_recover
from quorate.cli.leader_probe import Answer, LeaderStatus
from quorate.cli.main import main
from quorate.records.ids import ClusterId, DirectoryId, NodeId, ReplicaKey
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.rpc.channels import ChannelKind
from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.file_system import OsFileSystem
from quorate.storage.layout import META_PROPERTIES
from quorate.storage.meta_properties import MetaProperties, read_meta
from tests.unit.cli.directories import CLUSTER, make_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from quorate.client.controller_calls import Address

    Run = Callable[..., tuple[int, str, str]]

FS = OsFileSystem()
KEYS = {i: ReplicaKey(NodeId(i), DirectoryId(bytes([i]) * 16)) for i in (1, 2, 3)}
THREE = VoterSet.of(Voter(key, (Endpoint("GRPC", f"node-{i}", 9094),)) for i, key in KEYS.items())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Address]:
    """The servers that were asked; none of them listens."""
    servers: list[Address] = []

    def ask(addresses: Iterable[Address], cluster_id: str, kind: object) -> list[Answer]:
        assert (cluster_id, kind) == (CLUSTER, ChannelKind())
        servers.extend(addresses)
        return [Answer(server, LeaderStatus.REFUSED, "does not answer") for server in servers]

    monkeypatch.setattr(storage_recover, "ask_for_leader", ask)
    return servers


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], asked: list[Address]) -> Run:
    """Run the command; status, stdout and stderr."""

    def run_(*flags: str) -> tuple[int, str, str]:
        try:
            status = main(["storage", "recover", "--unsafe-new-quorum", *flags])
        except SystemExit as exit_:
            status = int(exit_.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return run_


@pytest.fixture
def directories(tmp_path: Path) -> dict[int, Path]:
    """Node 1 ends at 13@2, node 2 a record further, node 3 further still but in an older epoch."""
    made = {}
    for node_id, epoch, values in ((1, 2, 10), (2, 2, 11), (3, 1, 40)):
        path = tmp_path / f"disk-{node_id}"
        made[node_id] = make_directory(path, KEYS[node_id], THREE, epoch=epoch, values=values)
    return made


def content(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def flags(*directories: Path) -> list[str]:
    return [word for directory in directories for word in ("--directory", str(directory))]


def directory_id(directory: Path) -> DirectoryId:
    meta = read_meta(FS, str(directory / META_PROPERTIES))
    assert meta is not None
    return meta.directory_id


def test_the_plan_names_the_longest_log_and_changes_nothing(
    run: Run, directories: dict[int, Path], asked: list[Address]
) -> None:
    before = {node_id: content(path) for node_id, path in directories.items()}
    status, out, err = run(*flags(*directories.values()))
    assert (status, err) == (0, "")
    assert f" * {directories[2]}: node {KEYS[2]}, epoch 2, log end 14@2" in out
    assert "New quorum: node 2 alone, at GRPC://node-2:9094" in out
    assert "   epoch 1002\n" in out
    assert "Note: every majority of the 3 voters has a disk here" in out
    assert "Note: they are a majority: started together they elect a leader" in out
    assert "Lost: " not in out
    assert out.endswith("DRY RUN: nothing has been changed. Run it with --execute to do this.\n")
    assert {node_id: content(path) for node_id, path in directories.items()} == before
    assert asked == [(f"node-{i}", 9094) for i in (1, 2, 3)]


def test_what_only_absent_voters_had_is_said_to_be_lost(
    run: Run, directories: dict[int, Path]
) -> None:
    _, out, _ = run(*flags(directories[1]))
    assert "Lost: whatever was acknowledged above 13@2 by the disks of 2, 3, which are not" in out
    assert "Note: " not in out


def test_what_a_damaged_log_had_is_said_to_be_lost(run: Run, directories: dict[int, Path]) -> None:
    log = next(directories[1].rglob("*.log"))
    data = bytearray(log.read_bytes())
    data[-3] ^= 1
    log.write_bytes(bytes(data))
    status, out, _ = run(*flags(directories[1]))
    assert status == 0
    assert "log end 3@2, once 13@2" in out
    assert (
        f"Lost: what the log of {directories[1]}, which once ended at 13@2, had from 3@2 on" in out
    )
    assert "damage: " in out


def test_executed_it_leaves_a_quorum_of_one_and_a_record(
    run: Run, directories: dict[int, Path]
) -> None:
    untouched = content(directories[1])
    status, out, err = run(*flags(directories[1], directories[2]), "--execute", "-o", "json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert (report["isExecuted"], report["chosen"]) == (True, str(directories[2]))
    assert (report["logEnd"], report["newQuorum"]["epoch"]) == ("17@1002", 1002)
    assert directory_id(directories[2]) != KEYS[2].directory_id
    record = json.loads((directories[2] / "rescue-1002.json").read_bytes())
    assert [witness["source"] for witness in record["witnesses"]] == [
        str(directories[1]),
        str(directories[2]),
    ]
    assert content(directories[1]) == untouched


def test_a_recovery_that_was_interrupted_goes_on(
    run: Run, directories: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error", "the disk")

    with monkeypatch.context() as patch:
        patch.setattr(storage_recover, "execute_plan", die)
        assert run(*flags(directories[1]), "--execute") == (
            1,
            "",
            "error: the disk: Input/output error: see how the disk is\n",
        )
    _, out, _ = run(*flags(directories[1], directories[2]))
    assert f"A recovery of {directories[1]} was interrupted: it goes on." in out
    plan = json.loads((directories[1] / "rescue").read_bytes())
    status, out, _ = run(*flags(directories[1]), "--execute")
    assert status == 0
    assert plan["after"]["directoryId"] in out
    assert json.loads((directories[1] / "rescue-1002.json").read_bytes()) == plan


def test_another_cluster_id_is_asked_for(run: Run, directories: dict[int, Path]) -> None:
    _, out, _ = run(*flags(directories[1]), "--execute", "--new-cluster-id", "another")
    assert read_meta(FS, str(directories[1] / META_PROPERTIES)) == MetaProperties(
        NodeId(1), ClusterId("another"), directory_id(directories[1])
    )
    assert "Every broker and controller belongs to the old cluster id" in out


# --- refusals -------------------------------------------------------------------------------------


def refusal(run: Run, *words: str) -> str:
    status, out, err = run(*words)
    assert (status, out) == (1, "")
    return err


def test_a_leader_that_answers_is_named(
    run: Run, directories: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    leads = [Answer(("node-3", 9094), LeaderStatus.LEADS, "is node 3, which leads in epoch 2")]
    monkeypatch.setattr(storage_recover, "ask_for_leader", lambda *_: leads)
    before = content(directories[1])
    err = refusal(run, *flags(directories[1]), "--execute")
    assert err.startswith("error: node-3:9094 is node 3, which leads in epoch 2: the quorum is")
    assert content(directories[1]) == before
    unclear = [Answer(("node-3", 9094), LeaderStatus.UNCLEAR, "hangs")]
    monkeypatch.setattr(storage_recover, "ask_for_leader", lambda *_: unclear)
    assert "--ignore-server node-3:9094" in refusal(run, *flags(directories[1]))
    assert run(*flags(directories[1]), "--ignore-server", "node-3:9094")[0] == 0


def test_a_directory_in_use_is_refused(run: Run, directories: dict[int, Path]) -> None:
    with DirectoryLock(str(directories[1])):
        assert "is held by process" in refusal(run, *flags(directories[2], directories[1]))


def test_disks_of_two_clusters_are_refused(
    run: Run, directories: dict[int, Path], tmp_path: Path
) -> None:
    other = make_directory(tmp_path / "other", KEYS[1], THREE, cluster_id="other")
    err = refusal(run, *flags(directories[1], other))
    assert f"{other} is of cluster other, but {directories[1]} of {CLUSTER}" in err


def test_a_directory_that_cannot_be_judged_is_refused_by_name(
    run: Run, directories: dict[int, Path]
) -> None:
    (directories[1] / "__cluster_metadata-0/quorum-state").unlink()
    err = refusal(run, *flags(directories[2], directories[1]))
    assert "quorum-state is missing" in err
    assert f"Or leave {directories[1]} out" in err


def test_a_directory_is_named_once_and_exists(
    run: Run, directories: dict[int, Path], tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(directories[1])
    assert "is named twice" in refusal(run, *flags(directories[1], link))
    assert "is not a directory" in refusal(run, *flags(tmp_path / "nowhere"))
    assert "no directory is named" in refusal(run)
    shutil.copytree(directories[1], tmp_path / "copy")
    assert run(*flags(directories[1], tmp_path / "copy"))[0] == 0


def test_a_node_that_is_no_voter_needs_its_properties(run: Run, tmp_path: Path) -> None:
    key = ReplicaKey(NodeId(9), DirectoryId(b"\x09" * 16))
    observer = make_directory(tmp_path / "observer", key, THREE)
    assert "name its properties with --config" in refusal(run, *flags(observer))
    properties = tmp_path / "controller.properties"
    properties.write_text(
        f"node.id=9\nmetadata.log.dir={observer}\nlisteners=GRPC://nine:9099\n"
        "controller.quorum.bootstrap.servers=node-1:9094\n"
    )
    status, out, _ = run("--config", str(properties))
    assert status == 0
    assert "node 9 alone, at GRPC://nine:9099" in out


def test_the_flag_that_says_that_it_is_unsafe_is_needed(
    capsys: pytest.CaptureFixture[str], directories: dict[int, Path]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["storage", "recover", *flags(directories[1])])
    assert exit_.value.code == 1
    assert "--unsafe-new-quorum" in capsys.readouterr().err
