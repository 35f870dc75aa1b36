"""A local quorum as files: what a first start writes, and what a later one accepts."""

from __future__ import annotations

import os
import secrets
import socket
import stat
from typing import TYPE_CHECKING

import pytest

from quorate.cli.local_quorum import LocalQuorum, check_ports, open_quorum, prepare
from quorate.cli.output import CommandError
from quorate.records.ids import format_uuid
from quorate.settings.property_files import read_properties
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem
from quorate.storage.layout import META_PROPERTIES
from quorate.storage.meta_properties import read_meta

if TYPE_CHECKING:
    from pathlib import Path


def opened(
    root: Path, *, controllers: int | None = None, base_port: int | None = None
) -> LocalQuorum:
    return open_quorum(root, controllers=controllers, base_port=base_port)


def test_ports_follow_the_base_port(tmp_path: Path) -> None:
    quorum = opened(tmp_path, controllers=2, base_port=20_000)
    assert list(quorum.ports()) == [
        (20_000, "controller 1"),
        (20_100, "health of controller 1"),
        (20_200, "metrics of controller 1"),
        (20_001, "controller 2"),
        (20_101, "health of controller 2"),
        (20_201, "metrics of controller 2"),
    ]


def test_a_first_start_writes_properties_and_formats(tmp_path: Path) -> None:
    quorum = opened(tmp_path, controllers=2, base_port=20_000)
    prepare(quorum, {"num.partitions": "3"})
    node = quorum.nodes[1]
    assert node.properties_path.read_text().splitlines() == [
        "node.id=2",
        "process.roles=controller",
        "listeners=GRPC://127.0.0.1:20001",
        "controller.listener.names=GRPC",
        "controller.quorum.bootstrap.servers=127.0.0.1:20000,127.0.0.1:20001",
        f"metadata.log.dir={tmp_path}/2/metadata",
        "health.port=20101",
        "metrics.port=20201",
        "grpc.reflection.enable=true",
        "shutdown.timeout.ms=1000",
        "num.partitions=3",
    ]
    meta = read_meta(OsFileSystem(), str(node.metadata_dir / META_PROPERTIES))
    assert meta is not None
    assert (meta.node_id, meta.cluster_id, meta.directory_id) == (
        2,
        quorum.cluster_id,
        quorum.directory_ids[1],
    )
    assert stat.S_IMODE(node.metadata_dir.stat().st_mode) == 0o700


def test_a_later_start_resumes_the_same_quorum(tmp_path: Path) -> None:
    first = opened(tmp_path, controllers=2, base_port=20_000)
    prepare(first)
    second = opened(tmp_path)
    assert second.is_formatted
    assert (second.cluster_id, second.nodes, second.voters) == (
        first.cluster_id,
        first.nodes,
        first.voters,
    )


def test_an_interrupted_first_start_is_continued_under_the_same_ids(tmp_path: Path) -> None:
    first = opened(tmp_path, controllers=2, base_port=20_000)
    prepare(first)
    first.save(is_formatted=False)
    (first.nodes[1].metadata_dir / META_PROPERTIES).unlink()
    prepare(opened(tmp_path))
    meta = read_meta(OsFileSystem(), str(first.nodes[1].metadata_dir / META_PROPERTIES))
    assert meta is not None
    assert meta.directory_id == first.directory_ids[1]


def test_a_lost_directory_is_not_formatted_again(tmp_path: Path) -> None:
    quorum = opened(tmp_path, controllers=1, base_port=20_000)
    prepare(quorum)
    (quorum.nodes[0].metadata_dir / META_PROPERTIES).unlink()
    prepare(opened(tmp_path))
    assert not (quorum.nodes[0].metadata_dir / META_PROPERTIES).exists()


@pytest.mark.parametrize(
    ("controllers", "base_port", "words"),
    [
        (0, 20_000, "--controllers: 0"),
        (101, 20_000, "--controllers: 101"),
        (1, 65_400, "--base-port"),
    ],
)
def test_what_cannot_be_a_quorum_is_refused(
    tmp_path: Path, controllers: int, base_port: int, words: str
) -> None:
    with pytest.raises(CommandError, match=words):
        opened(tmp_path, controllers=controllers, base_port=base_port)


def test_a_quorum_keeps_its_size_and_its_ports(tmp_path: Path) -> None:
    prepare(opened(tmp_path, controllers=2, base_port=20_000))
    with pytest.raises(CommandError, match=r"--controllers: .* holds a quorum of 2, not 3"):
        opened(tmp_path, controllers=3)
    with pytest.raises(CommandError, match=r"--base-port: .* ports from 20000 on"):
        opened(tmp_path, base_port=21_000)


def test_an_unreadable_identity_is_named(tmp_path: Path) -> None:
    (tmp_path / "quorum.json").write_text("{}")
    with pytest.raises(CommandError, match=r"quorum\.json: .*cluster_id"):
        opened(tmp_path)


@pytest.mark.parametrize(("text", "words"), [(None, "it is a pipe"), ("[" * 100_000, "recursion")])
def test_what_stands_in_place_of_an_identity_is_named(
    text: str | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "quorum.json"
    if text is None:
        os.mkfifo(path)
    else:
        path.write_text(text)
    with pytest.raises(CommandError, match=rf"quorum\.json: .*{words}.*; restore it"):
        opened(tmp_path)


def test_a_directory_in_use_is_not_formatted_over(tmp_path: Path) -> None:
    quorum = opened(tmp_path, controllers=1, base_port=20_000)
    log_dir = quorum.nodes[0].metadata_dir / "__cluster_metadata-0"
    log_dir.mkdir(parents=True)
    (log_dir / "quorum-state").write_text("{}")
    with pytest.raises(StorageError, match="this directory has been in use"):
        prepare(quorum)


def test_a_busy_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        quorum = opened(tmp_path, controllers=1, base_port=port)
        with pytest.raises(CommandError, match=rf"port {port} \(controller 1\) is busy"):
            check_ports(quorum)


def test_no_id_of_a_local_quorum_looks_like_a_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter([b"\xf8" + bytes(15), *(bytes([i]) * 16 for i in range(1, 9))])
    monkeypatch.setattr(secrets, "token_bytes", lambda _: next(drawn))
    quorum = open_quorum(tmp_path / "quorum", controllers=3, base_port=None)
    ids = [quorum.cluster_id, *(format_uuid(identity) for identity in quorum.directory_ids)]
    assert not [text for text in ids if text.startswith("-")]


@pytest.mark.parametrize("name", ["a\\tb", "a\\", "two\nlines", "a\u2028b", "a b", "é"])
def test_properties_name_the_directory_however_it_is_called(tmp_path: Path, name: str) -> None:
    quorum = opened(tmp_path / name, controllers=1, base_port=20_000)
    prepare(quorum)
    node = quorum.nodes[0]
    found = read_properties(str(node.properties_path))
    assert found["metadata.log.dir"] == str(tmp_path / name / "1" / "metadata")


def test_a_directory_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"bad\xff")
    with pytest.raises(CommandError, match=r"--data-dir: .* has bytes that are no UTF-8"):
        opened(root, controllers=1, base_port=20_000)
