"""The file `founding`: the directory id under which this disk is about to bootstrap a quorum.

It is durable before the bootstrap record that names the id is created elsewhere, and is removed
once the directory is formatted. So a process that was killed between the two resumes its own
bootstrap, and every other disk that finds the record joins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import DirectoryId, format_uuid, parse_directory_id
from quorate.storage.file_system import remove_durably, write_atomically
from quorate.storage.layout import FOUNDING

if TYPE_CHECKING:
    from quorate.storage.file_system import FileSystem


def read_founding(fs: FileSystem, metadata_log_dir: str) -> DirectoryId | None:
    """Read the directory id; None if no bootstrap is in progress.

    An invalid id counts as None: no record can name it, so this disk joins or starts over.
    """
    path = f"{metadata_log_dir}/{FOUNDING}"
    if not fs.exists(path):
        return None
    try:
        return parse_directory_id(fs.read(path).decode().strip())
    except ValueError:
        return None


def write_founding(fs: FileSystem, metadata_log_dir: str, directory_id: DirectoryId) -> None:
    """Persist the id, durable on return."""
    text = f"{format_uuid(directory_id)}\n"
    write_atomically(fs, f"{metadata_log_dir}/{FOUNDING}", text.encode())


def end_founding(fs: FileSystem, metadata_log_dir: str) -> None:
    """Remove the id, durable on return."""
    remove_durably(fs, f"{metadata_log_dir}/{FOUNDING}")
