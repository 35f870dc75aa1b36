"""`quorate storage`: what is written, what is refused, and that a refusal writes nothing."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from quorate.cli.main import main
from quorate.records.ids import (
    Epoch,
    NodeId,
    Offset,
    ReplicaKey,
    format_uuid,
    parse_uuid,
)
from quorate.records.metadata import decode_record
from quorate.records.record_types.cluster import FeatureLevelRecord
from quorate.records.voters import Endpoint
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem
from quorate.storage.layout import (
    BOOTSTRAP_CHECKPOINT,
    BOOTSTRAP_ID,
    FIRST_BOOTSTRAP,
    FLUSHED_END,
    LOCK,
    LOG_DIR,
    META_PROPERTIES,
    PARTITION_METADATA,
    RESCUE,
    checkpoint_name,
    segment_name,
)
from quorate.storage.meta_properties import ensure_partition_metadata, read_meta
from quorate.storage.snapshots.snapshot_store import read_content

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from quorate.storage.snapshots.snapshot_store import SnapshotContent

    Format = Callable[..., tuple[int, str, str]]

CLUSTER = "5L6g3nShT-eMCtK--X86sw"
OTHER_CLUSTER = "AAECAwQFBgcICQoLDA0ODw"
DIRECTORIES = ("3Db5QLSqSZieL3rJBUUegA", "4zlKbXFVTbSgWKyQqYwM7g")
VOTERS = f"1@one:9094:{DIRECTORIES[0]},2@two:9095:{DIRECTORIES[1]}"
STATIC = {"controller.quorum.voters": "1@one:9094,2@two:9095"}

OWNER = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The metadata directory."""
    return tmp_path / "metadata"


@pytest.fixture
def run(tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]) -> Format:
    """Run a storage command with properties; the status, stdout and stderr."""

    def run_(
        command: str, *flags: str, properties: dict[str, str] | None = None
    ) -> tuple[int, str, str]:
        all_properties = {
            "node.id": "1",
            "listeners": "GRPC://one:9094",
            "controller.quorum.bootstrap.servers": "127.0.0.1:1",
            "metadata.log.dir": str(directory),
        } | (properties or {})
        path = tmp_path / "controller.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in all_properties.items()))
        try:
            status = main(["storage", command, "-c", str(path), *flags])
        except SystemExit as exit_:
            status = int(exit_.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return run_


def content(path: Path) -> SnapshotContent:
    return read_content(OsFileSystem(), str(path), Epoch(0))


def test_a_random_uuid_is_an_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storage", "random-uuid"]) == 0
    text = capsys.readouterr().out.strip()
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", text)
    assert format_uuid(parse_uuid(text)) == text


def test_a_standalone_node_is_the_only_voter(run: Format, directory: Path) -> None:
    assert run("format", "-t", CLUSTER, "--standalone") == (
        0,
        f"Formatting dynamic metadata voter directory {directory} with metadata.version 30.\n",
        "",
    )
    meta = read_meta(OsFileSystem(), str(directory / META_PROPERTIES))
    assert meta is not None
    assert (meta.node_id, meta.cluster_id) == (1, CLUSTER)
    voters = content(directory / LOG_DIR / checkpoint_name(BOOTSTRAP_ID)).voters
    assert voters is not None
    assert [(voter.key, voter.endpoints) for voter in voters] == [
        (ReplicaKey(NodeId(1), meta.directory_id), (Endpoint("GRPC", "one", 9094),))
    ]


def test_initial_controllers_are_the_voters_and_give_the_directory_id(
    run: Format, directory: Path
) -> None:
    assert run("format", "-t", CLUSTER, "--initial-controllers", VOTERS)[0] == 0
    meta = read_meta(OsFileSystem(), str(directory / META_PROPERTIES))
    assert meta is not None
    assert meta.directory_id == parse_uuid(DIRECTORIES[0])
    voters = content(directory / LOG_DIR / checkpoint_name(BOOTSTRAP_ID)).voters
    assert voters is not None
    assert [
        (voter.key.node_id, format_uuid(voter.key.directory_id or b""), voter.endpoints)
        for voter in voters
    ] == [
        (1, DIRECTORIES[0], (Endpoint("GRPC", "one", 9094),)),
        (2, DIRECTORIES[1], (Endpoint("GRPC", "two", 9095),)),
    ]


def test_a_node_that_joins_has_no_voters(run: Format, directory: Path) -> None:
    status, out, _ = run("format", "-t", CLUSTER, "--no-initial-controllers")
    assert (status, out) == (
        0,
        f"Formatting dynamic metadata directory {directory} with metadata.version 30.\n",
    )
    assert not (directory / LOG_DIR / checkpoint_name(BOOTSTRAP_ID)).exists()
    assert (directory / BOOTSTRAP_CHECKPOINT).exists()


def test_static_voters_stand_in_the_properties(run: Format, directory: Path) -> None:
    status, out, _ = run("format", "-t", CLUSTER, properties=STATIC)
    assert (status, out) == (
        0,
        f"Formatting metadata directory {directory} with metadata.version 30.\n",
    )
    assert not (directory / LOG_DIR / checkpoint_name(BOOTSTRAP_ID)).exists()
    assert not (directory / FIRST_BOOTSTRAP).exists()


def test_the_first_bootstrap_of_static_voters_is_marked(run: Format, directory: Path) -> None:
    assert run("format", "-t", CLUSTER, "--first-bootstrap", properties=STATIC)[0] == 0
    assert (directory / FIRST_BOOTSTRAP).exists()


def test_features_follow_the_metadata_version(run: Format, directory: Path) -> None:
    flags = ("--feature", "transaction.version=2", "--feature", "metadata.version=25")
    status, out, _ = run("format", "-t", CLUSTER, "-s", *flags)
    assert (status, out.endswith(" with metadata.version 25.\n")) == (0, True)
    records = content(directory / BOOTSTRAP_CHECKPOINT).records
    assert [decode_record(record) for record in records] == [
        (FeatureLevelRecord(name=name, feature_level=level), 0)
        for name, level in (("metadata.version", 25), ("transaction.version", 2))
    ]


def test_a_directory_that_is_formatted_is_for_its_user_alone(run: Format, directory: Path) -> None:
    assert run("format", "-t", CLUSTER, "-s")[0] == 0
    for made in (directory, directory / "__cluster_metadata-0"):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_formatted_directory_is_left_alone(run: Format, directory: Path) -> None:
    assert run("format", "-t", CLUSTER, "-s")[0] == 0
    before = (directory / META_PROPERTIES).read_bytes()
    status, out, err = run("format", "-t", CLUSTER, "-s")
    assert (status, out) == (1, "")
    assert err == (
        f"error: Log directory {directory} is already formatted. Use --ignore-formatted to leave"
        " such a directory as it is\n"
    )
    assert run("format", "-t", CLUSTER, "-s", "--ignore-formatted") == (
        0,
        "All of the log directories are already formatted.\n",
        "",
    )
    assert (directory / META_PROPERTIES).read_bytes() == before


def test_a_directory_of_another_cluster_is_not_ignored(run: Format, directory: Path) -> None:
    assert run("format", "-t", CLUSTER, "-s")[0] == 0
    status, out, err = run("format", "-t", OTHER_CLUSTER, "-s", "-g")
    assert (status, out) == (1, "")
    assert err.startswith(
        f"error: {directory}/meta.properties: it is node 1 of cluster {CLUSTER}, not node 1 of"
        f" cluster {OTHER_CLUSTER}"
    )


@pytest.mark.parametrize(
    ("flags", "properties", "message"),
    [
        ((), {}, "one of --standalone, --initial-controllers and --no-initial-controllers"),
        (("-s", "-N"), {}, "not allowed with argument"),
        (("-s", "-t", ""), {}, "--cluster-id: '' is no id"),
        (("-s", "-f", "metadata.version"), {}, "--feature: 'metadata.version' is no KEY=VALUE"),
        (("-s", "-f", "metadata.version=6"), {}, "metadata.version has no level '6': use 7 to 30"),
        (("-s", "-f", "speed=1"), {}, "--feature: speed is not known: use one of"),
        (
            ("-s", "-f", "group.version=1", "-f", "group.version=0"),
            {},
            "--feature: group.version is given twice",
        ),
        (("-s", "-f", "kraft.version=0"), {}, "--standalone is for kraft.version=1"),
        (("-f", "kraft.version=0"), {}, "set controller.quorum.voters"),
        (("-s",), STATIC, "--standalone is for kraft.version=1"),
        (("-s", "-f", "kraft.version=1"), STATIC, "remove controller.quorum.voters"),
        (("-s", "--first-bootstrap"), {}, "--first-bootstrap is for kraft.version=0 only"),
        (("-I", "1@one:9094"), {}, "--initial-controllers: '1@one:9094': write ID@HOST:PORT:DIREC"),
        (("-I", f"1@one:0:{DIRECTORIES[0]}"), {}, "--initial-controllers has 'one:0'"),
        (("-I", "1@one:9094:short"), {}, "--initial-controllers: '1@one:9094:short': "),
        (("-I", f"1@one:9094:{'A' * 22}"), {}, f"{'A' * 22} is no directory id"),
        (("-I", f"{VOTERS},{VOTERS}"), {}, "node 1 is there twice"),
        (
            ("-I", f"1@one:9094:{DIRECTORIES[0]},2@two:9094:{DIRECTORIES[0]}"),
            {},
            "nodes 1 and 2 have one directory id: draw each its own",
        ),
        (
            ("-I", f"1@one:9094:{DIRECTORIES[0]},2@one:9094:{DIRECTORIES[1]}"),
            {},
            "nodes 1 and 2 have one address, one:9094: give each its own",
        ),
        (("-I", f"1@\udcff:9094:{DIRECTORIES[0]}"), {}, "--initial-controllers has '\\udcff:9094'"),
        (("-I", f"1@{'h' * 256}:9094:{DIRECTORIES[0]}"), {}, "--initial-controllers has 'hhhhhh"),
        (("-I", VOTERS), {"node.id": "3"}, "node.id 3 is not among them"),
        (("-s",), {"node.id": "one"}, "node.id is 'one'"),
    ],
)
def test_bad_input_is_refused_and_writes_nothing(
    run: Format,
    directory: Path,
    flags: tuple[str, ...],
    properties: dict[str, str],
    message: str,
) -> None:
    status, out, err = run("format", "-t", CLUSTER, *flags, properties=properties)
    assert (status, out) == (1, "")
    assert message in err
    assert not directory.exists()


def test_info_shows_the_identity(run: Format, directory: Path) -> None:
    run("format", "-t", CLUSTER, "-I", VOTERS)
    assert run("info") == (
        0,
        f"Found log directory:\n  {directory}\n\n"
        f"Found metadata: {{cluster.id={CLUSTER}, directory.id={DIRECTORIES[0]}, node.id=1,"
        " version=1}\n\n",
        "",
    )


def test_info_has_nothing_against_a_directory_without_an_id(run: Format, directory: Path) -> None:
    run("format", "-t", CLUSTER, "-N")
    path = directory / META_PROPERTIES
    kept = [line for line in path.read_text().splitlines() if not line.startswith("directory.id")]
    path.write_text("\n".join(kept))
    status, out, err = run("info")
    assert (status, err) == (0, "")
    assert f"Found metadata: {{cluster.id={CLUSTER}, node.id=1, version=1}}" in out
    assert path.read_text() == "\n".join(kept)


def test_info_says_what_is_wrong(run: Format, directory: Path) -> None:
    assert run("info") == (
        1,
        "",
        f"Found problem:\n  {directory} is not a directory: format it, or set metadata.log.dir\n",
    )
    directory.mkdir()
    status, out, err = run("info")
    assert (status, out) == (1, f"Found log directory:\n  {directory}\n\n")
    assert err.endswith(f"{directory} is not formatted: use `quorate storage format`\n")
    (directory / META_PROPERTIES).write_text("version=1\n")
    status, _, err = run("info")
    assert (status, "node.id is missing" in err) == (1, True)


def test_an_interrupted_rescue_is_a_problem(run: Format, directory: Path) -> None:
    run("format", "-t", CLUSTER, "-s")
    (directory / RESCUE).write_text("{}")
    status, _, err = run("info")
    assert (status, f"{directory / RESCUE}: malformed" in err) == (1, True)


def test_info_says_what_recovery_would_refuse(run: Format, directory: Path) -> None:
    run("format", "-t", CLUSTER, "-s")
    log_dir = directory / LOG_DIR
    (log_dir / segment_name(Offset(0))).write_bytes(b"x")
    status, out, err = run("info")
    assert (status, f"cluster.id={CLUSTER}" in out) == (1, True)
    assert f"{log_dir}/quorum-state is missing" in err
    assert not (log_dir / "quorum-state").exists()


def test_info_names_what_is_no_file(run: Format, directory: Path) -> None:
    run("format", "-t", CLUSTER, "-s")
    os.mkfifo(directory / FLUSHED_END)
    status, _, err = run("info")
    assert (status, f"{directory / FLUSHED_END}: it is a pipe" in err) == (1, True)


@pytest.mark.parametrize("kind", ["of another topic", "garbled", "directory", "pipe", "device"])
def test_info_refuses_the_partition_metadata_that_a_start_refuses(
    run: Format, directory: Path, kind: str
) -> None:
    run("format", "-t", CLUSTER, "-s")
    path = directory / LOG_DIR / PARTITION_METADATA
    path.unlink()
    match kind:
        case "of another topic":
            path.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
        case "garbled":
            path.write_bytes(b"\xff\x00")
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case _:
            path.symlink_to("/dev/zero")
    status, _, err = run("info")
    with pytest.raises(StorageError) as refused:
        ensure_partition_metadata(OsFileSystem(), str(path))
    assert (status, err) == (1, f"Found problem:\n  {refused.value}\n")


def test_info_has_nothing_against_missing_partition_metadata_and_writes_none(
    run: Format, directory: Path
) -> None:
    run("format", "-t", CLUSTER, "-s")
    path = directory / LOG_DIR / PARTITION_METADATA
    path.unlink()
    assert run("info")[0] == 0
    assert not path.exists()


def test_info_leaves_a_directory_in_use_to_its_owner(run: Format, directory: Path) -> None:
    run("format", "-t", CLUSTER, "-s")
    os.mkfifo(directory / FLUSHED_END)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory / LOCK)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"held\n"
        assert run("info")[0] == 0
        owner.kill()


def test_a_disk_without_space_is_named_and_not_the_settings(
    run: Format, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    status, _, err = run("format", "-t", CLUSTER, "-s")
    problem = f"{directory}/.lock: No space left on device: free space, or enlarge the disk"
    assert (status, err) == (1, f"error: {problem}\n")


def test_info_of_another_node_is_a_problem(run: Format, directory: Path) -> None:
    run("format", "-t", CLUSTER, "-s")
    status, out, _ = run("info", "-o", "json", properties={"node.id": "2"})
    found = json.loads(out)
    assert status == 1
    assert found["log_directories"] == [str(directory)]
    assert found["metadata"]["node.id"] == "1"
    assert found["problems"] == [
        f"{directory} is that of node 1, but node.id is 2: correct node.id, or metadata.log.dir"
    ]


def test_properties_that_cannot_be_read_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.properties"
    assert main(["storage", "info", "-c", str(path)]) == 1
    assert str(path) in capsys.readouterr().err
