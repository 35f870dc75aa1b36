"""The file of a backup: whole or refused, byte by byte, and checked by sha256sum as well."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest

from quorate.records.ids import ClusterId, DirectoryId, Epoch, NodeId
from quorate.sim.engine.disk import SimulatedDisk
from quorate.storage.disaster_recovery.backup_file import (
    CHECKSUMS,
    MANIFEST,
    BackupPart,
    Manifest,
    check_backup,
    decode_manifest,
    digest_of,
    encode_manifest,
    extract,
    write_backup,
)
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_durably
from quorate.storage.meta_properties import MetaProperties
from tests.unit.storage.conftest import at

if TYPE_CHECKING:
    from pathlib import Path

LOG = "__cluster_metadata-0/00000000000000000005.log"
SNAPSHOT = "__cluster_metadata-0/00000000000000000005-0000000002.checkpoint"
CONTENT = {SNAPSHOT: b"snapshot", LOG: bytes(range(200))}
MANIFEST_OF_IT = Manifest(
    meta=MetaProperties(NodeId(3), ClusterId("c"), DirectoryId(b"\x03" * 16)),
    taken_ms=1_700_000_000_000,
    epoch=Epoch(7),
    end=at(9, 4),
    snapshot=at(5, 2),
    is_committed=True,
)


def a_backup(content: dict[str, bytes] | None = None) -> io.BytesIO:
    disk = SimulatedDisk()
    disk.make_dirs("/d")
    parts = []
    for number, (name, data) in enumerate((content or CONTENT).items()):
        write_durably(disk, f"/d/{number}", b"before" + data + b"behind")
        parts.append(BackupPart(name, disk.open(f"/d/{number}"), len(b"before"), len(data)))
    output = io.BytesIO()
    write_backup(MANIFEST_OF_IT, parts, output)
    return output


def refusal(backup: bytes) -> str:
    with pytest.raises(StorageError, match=r"^b\.tar is no backup that can be restored") as error:
        check_backup(io.BytesIO(backup), "b.tar")
    return str(error.value)


@pytest.mark.parametrize("snapshot", [None, at(5, 2)])
def test_a_manifest_is_read_as_it_was_written(snapshot: object) -> None:
    manifest = Manifest(
        meta=MANIFEST_OF_IT.meta,
        taken_ms=5,
        epoch=Epoch(7),
        end=at(9, 4),
        snapshot=snapshot,  # type: ignore[arg-type]
        is_committed=False,
    )
    assert decode_manifest(encode_manifest(manifest)) == manifest


def test_a_backup_checks_and_says_what_it_holds() -> None:
    backup = a_backup()
    checked = check_backup(backup, "b.tar")
    assert (checked.manifest, checked.names) == (MANIFEST_OF_IT, tuple(CONTENT))
    assert checked.digest == hashlib.sha256(backup.getvalue()).hexdigest() == digest_of(backup)


def test_what_was_put_in_comes_out() -> None:
    disk = SimulatedDisk()
    disk.make_dirs("/r/__cluster_metadata-0")
    extract(a_backup(), "b.tar", disk, "/r")
    assert {name: disk.on_platter(f"/r/{name}") for name in CONTENT} == CONTENT


def test_sha256sum_checks_an_unpacked_backup(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(a_backup().getvalue())) as tar:
        tar.extractall(tmp_path, filter="data")
    done = subprocess.run(
        ["sha256sum", "-c", CHECKSUMS],  # noqa: S607 - coreutils, wherever they are
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{MANIFEST}: OK\n{SNAPSHOT}: OK\n{LOG}: OK\n"


def contents(backup: bytes) -> list[range]:
    """The positions of the files' bytes."""
    with tarfile.open(fileobj=io.BytesIO(backup)) as tar:
        return [range(info.offset_data, info.offset_data + info.size) for info in tar]


def test_every_flipped_byte_of_a_file_is_found() -> None:
    backup = a_backup().getvalue()
    places = [position for span in contents(backup) for position in span]
    assert len(places) > 500
    for position in places:
        spoilt = bytearray(backup)
        spoilt[position] ^= 0x20
        refusal(bytes(spoilt))


def test_a_backup_that_ends_early_is_refused_wherever_it_ends() -> None:
    backup = a_backup().getvalue()
    end = contents(backup)[-1].stop
    for size in range(0, end, 97):
        refusal(backup[:size])


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../meta.properties",
        "meta.properties",
        "__cluster_metadata-0/quorum-state",
        "__cluster_metadata-0/../x.log",
    ],
)
def test_a_name_that_no_backup_has_is_refused(name: str) -> None:
    assert "does not belong into a backup" in refusal(a_backup({name: b"x"}).getvalue())


def test_a_link_is_refused() -> None:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w:") as tar:
        info = tarfile.TarInfo(LOG)
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    assert "does not belong into a backup" in refusal(output.getvalue())


def test_a_backup_of_another_version_is_refused() -> None:
    backup = a_backup().getvalue()
    newer = backup.replace(b'"version": 1', b'"version": 2')
    digest = hashlib.sha256(encode_manifest(MANIFEST_OF_IT)).hexdigest().encode()
    manifest = encode_manifest(MANIFEST_OF_IT).replace(b'"version": 1', b'"version": 2')
    changed = newer.replace(digest, hashlib.sha256(manifest).hexdigest().encode())
    assert "manifest.json is malformed" in refusal(changed)


def test_a_part_that_became_shorter_is_noticed() -> None:
    disk = SimulatedDisk()
    disk.make_dirs("/d")
    write_durably(disk, "/d/log", b"short")
    part = BackupPart(LOG, disk.open("/d/log"), 0, 9)
    with pytest.raises(StorageError, match="has become shorter while it was read"):
        write_backup(MANIFEST_OF_IT, [part], io.BytesIO())
