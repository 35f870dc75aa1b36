"""The backup file: a tar with a manifest and SHA-256 checksums.

`tar -xf FILE && sha256sum -c SHA256SUMS` verifies it by hand. Its content is used only after all of
it has been verified, and names that a log directory does not have are rejected.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from typing import IO, TYPE_CHECKING, Any, Final

from quorate.records.ids import (
    ClusterId,
    Epoch,
    NodeId,
    Offset,
    OffsetAndEpoch,
    format_uuid,
    parse_directory_id,
)
from quorate.records.value_types import keyword_value_type, value_type
from quorate.storage import layout
from quorate.storage.errors import StorageError
from quorate.storage.meta_properties import MetaProperties

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.storage.file_system import File, FileSystem

MANIFEST: Final = "manifest.json"
CHECKSUMS: Final = "SHA256SUMS"
FORMAT: Final = "quorate-backup"
_VERSION: Final = 1
_CHUNK_BYTES: Final = 1024 * 1024
_NAME: Final = re.compile(
    rf"{re.escape(layout.BOOTSTRAP_CHECKPOINT)}"
    rf"|{layout.LOG_DIR}/\d{{20}}(\.log|-\d{{10}}\.checkpoint)"
)


@keyword_value_type
class Manifest:
    """The description of a backup: `epoch` is the highest known epoch, `end` the log end.

    `is_committed`: a leader confirmed that everything in it is committed; otherwise the tail may
    not be.
    """

    meta: MetaProperties
    taken_ms: int
    epoch: Epoch
    end: OffsetAndEpoch
    snapshot: OffsetAndEpoch | None
    is_committed: bool


@value_type
class BackupPart:
    """Bytes of an open file, and their name in the backup."""

    name: str
    file: File
    position: int
    size_bytes: int


# --- writing --------------------------------------------------------------------------------------


def write_backup(manifest: Manifest, parts: Iterable[BackupPart], output: IO[bytes]) -> None:
    """Write the tar file. Raises StorageError if a part has become shorter, OSError."""
    sums: list[tuple[str, str]] = []
    with tarfile.open(fileobj=output, mode="w:", format=tarfile.USTAR_FORMAT) as tar:

        def add(name: str, size_bytes: int, content: IO[bytes] | _PartReader) -> None:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = size_bytes, 0o644, manifest.taken_ms // 1000
            hashed = _HashingReader(content)
            tar.addfile(info, hashed)
            sums.append((name, hashed.digest.hexdigest()))

        data = encode_manifest(manifest)
        add(MANIFEST, len(data), io.BytesIO(data))
        for part in parts:
            add(part.name, part.size_bytes, _PartReader(part))
        lines = "".join(_checksum_line(digest, name) for name, digest in sums).encode()
        add(CHECKSUMS, len(lines), io.BytesIO(lines))


def _checksum_line(digest: str, name: str) -> str:
    """Format a line as `sha256sum` writes and reads it."""
    return f"{digest}  {name}\n"


class _PartReader:
    """A file-like reader of a part, for tarfile."""

    def __init__(self, part: BackupPart) -> None:
        self._part = part
        self._done = 0

    def read(self, size: int = -1, /) -> bytes:
        part = self._part
        left = part.size_bytes - self._done
        wanted = left if size < 0 else min(size, left)
        data = part.file.read_at(part.position + self._done, wanted)
        if len(data) < wanted:
            raise StorageError(
                f"{part.name} has become shorter while it was read: take the backup again"
            )
        self._done += len(data)
        return data


class _HashingReader:
    def __init__(self, content: IO[bytes] | _PartReader) -> None:
        self.digest = hashlib.sha256()
        self._content = content

    def read(self, size: int = -1, /) -> bytes:
        data = self._content.read(size)
        self.digest.update(data)
        return data


# --- reading --------------------------------------------------------------------------------------


@value_type
class CheckedBackup:
    """A verified backup: its manifest, the digest of the whole file, the names of its files."""

    manifest: Manifest
    digest: str
    names: tuple[str, ...]


def digest_of(backup: IO[bytes]) -> str:
    """The SHA-256 of a whole file, as `sha256sum` prints it."""
    backup.seek(0)
    digest = hashlib.sha256()
    while data := backup.read(_CHUNK_BYTES):
        digest.update(data)
    return digest.hexdigest()


def check_backup(backup: IO[bytes], name: str) -> CheckedBackup:
    """Read a backup to its end. Raises StorageError if anything fails verification."""
    digest_of_all = digest_of(backup)
    found: dict[str, str] = {}
    manifest = sums = b""
    for member, chunks in _members(backup, name):
        digest = hashlib.sha256()
        for chunk in chunks:
            digest.update(chunk)
            if member == MANIFEST:
                manifest += chunk
            elif member == CHECKSUMS:
                sums += chunk
        if member != CHECKSUMS:
            found[member] = digest.hexdigest()
    if not sums:
        raise _damaged(name, f"it has no {CHECKSUMS}, so its end is missing")
    lines = [_checksum_line(digest, member) for member, digest in found.items()]
    if "".join(lines).encode() != sums:
        wrong = next((n for n in found if _checksum_line(found[n], n).encode() not in sums), None)
        raise _damaged(name, f"{wrong or 'the list of files'} is not what {CHECKSUMS} says")
    try:
        decoded = decode_manifest(manifest)
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(name, f"{MANIFEST} is malformed ({error!r})") from error
    names = tuple(member for member in found if member != MANIFEST)
    return CheckedBackup(decoded, digest_of_all, names)


def extract(backup: IO[bytes], name: str, fs: FileSystem, directory: str) -> None:
    """Write the files of a verified backup; flushed, their names durable on return."""
    for member, chunks in _members(backup, name):
        if member in (MANIFEST, CHECKSUMS):
            continue
        file = fs.open(f"{directory}/{member}", create=True)
        try:
            file.truncate(0)
            position = 0
            for chunk in chunks:
                file.write_at(position, chunk)
                position += len(chunk)
            file.fdatasync()
        finally:
            file.close()
        if member.endswith(layout.CHECKPOINT_SUFFIX):
            fs.make_read_only(f"{directory}/{member}")
    fs.sync_dir(directory)
    fs.sync_dir(f"{directory}/{layout.LOG_DIR}")


def _members(backup: IO[bytes], name: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield name and content of each file; reject names that a backup does not have."""
    backup.seek(0)
    try:
        with tarfile.open(fileobj=backup, mode="r:") as tar:
            for info in tar:
                is_known = info.name in (MANIFEST, CHECKSUMS) or _NAME.fullmatch(info.name)
                content = tar.extractfile(info) if info.isreg() and is_known else None
                if content is None:
                    raise _damaged(name, f"{info.name!r} does not belong into a backup")
                yield info.name, _chunks(content, name)
    except tarfile.TarError as error:
        raise _damaged(name, str(error)) from error


def _chunks(content: IO[bytes], name: str) -> Iterator[bytes]:
    try:
        while chunk := content.read(_CHUNK_BYTES):
            yield chunk
    except tarfile.TarError as error:
        raise _damaged(name, str(error)) from error


def _damaged(name: str, reason: str) -> StorageError:
    return StorageError(
        f"{name} is no backup that can be restored: {reason}. Use another one; nothing was changed"
    )


# --- the manifest ---------------------------------------------------------------------------------


def encode_manifest(manifest: Manifest) -> bytes:
    """Encode the manifest: JSON, the first file in the backup."""
    meta, snapshot = manifest.meta, manifest.snapshot
    fields: dict[str, Any] = {
        "format": FORMAT,
        "version": _VERSION,
        "takenMs": manifest.taken_ms,
        "clusterId": meta.cluster_id,
        "nodeId": meta.node_id,
        "directoryId": format_uuid(meta.directory_id),
        "epoch": manifest.epoch,
        "logEnd": _end_fields(manifest.end),
        "snapshot": None if snapshot is None else _end_fields(snapshot),
        "isCommitted": manifest.is_committed,
    }
    return json.dumps(fields, indent=2).encode() + b"\n"


def decode_manifest(data: bytes) -> Manifest:
    """Decode the manifest. Raises ValueError, KeyError or TypeError if it is malformed."""
    fields = json.loads(data)
    if (fields["format"], fields["version"]) != (FORMAT, _VERSION):
        raise ValueError(f"{fields['format']} {fields['version']}, known is {FORMAT} {_VERSION}")
    snapshot = fields["snapshot"]
    return Manifest(
        meta=MetaProperties(
            NodeId(int(fields["nodeId"])),
            ClusterId(str(fields["clusterId"])),
            parse_directory_id(fields["directoryId"]),
        ),
        taken_ms=int(fields["takenMs"]),
        epoch=Epoch(int(fields["epoch"])),
        end=_end_of(fields["logEnd"]),
        snapshot=None if snapshot is None else _end_of(snapshot),
        is_committed=bool(fields["isCommitted"]),
    )


def _end_fields(end: OffsetAndEpoch) -> dict[str, int]:
    return {"offset": end.offset, "epoch": end.epoch}


def _end_of(fields: dict[str, Any]) -> OffsetAndEpoch:
    return OffsetAndEpoch(epoch=Epoch(int(fields["epoch"])), offset=Offset(int(fields["offset"])))
