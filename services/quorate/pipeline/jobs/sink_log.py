"""Metadata log of Spark's file sink: the files that belong to an output, by their full paths.

Spark's readers rely on it. If an output was moved or copied, or days of it were removed, its sink
log names other files than it has, so the log is rewritten before the ingest resumes.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, date, datetime
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from quorate.pipeline.jobs.registry import PipelineError
from quorate.records.value_types import value_type
from quorate.storage.file_system import OsFileSystem, write_atomically
from quorate.storage.layout import TEMPORARY_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NOTES: Final = "_spark_metadata"
_DAY: Final = "/day="
_VERSION: Final = "v1"


@value_type
class _Entry:
    """A file that belongs to the output: `root` is the output's URL, `rest` the path below it."""

    root: str
    rest: str
    fields: dict[str, Any]

    @property
    def day(self) -> str:
        return self.rest.removeprefix(_DAY).partition("/")[0]

    @property
    def path(self) -> str:
        """Its path below the output."""
        return unquote(self.rest).lstrip("/")


def mend_notes(output: str, root: str, keep_days: int | None) -> Iterator[str]:
    """Rewrite the sink log to name the existing files, and yield a line for each correction.

    `root` is the output as a URL of Spark. With `keep_days`, days that are that far before the
    newest one (today at the latest) are removed. No batch may be in progress.

    Raises PipelineError if files of an existing day are missing, if no day exists, and for a
    truncated file of the sink log.
    """
    notes = {name: _read(f"{output}/{NOTES}/{name}") for name in _names(output)}
    entries = [entry for noted in notes.values() for entry in noted]
    days = {entry.day for entry in entries}
    gone = {day for day in days if not os.path.isdir(f"{output}/{_folder(day)}")}
    if days and gone == days:
        raise PipelineError(
            f"--output: {output} has none of the {len(days)} days that its {NOTES} names: copy it"
            " whole, or name another --output with another --checkpoint"
        )
    old = _older(days - gone, keep_days)
    moved = {entry.root for entry in entries if not _is_same(entry.root, root, output)}
    if not moved and not gone and not old:
        return
    kept = {
        name: [entry for entry in noted if entry.day not in gone | old]
        for name, noted in notes.items()
    }
    _check_files(output, (entry for noted in kept.values() for entry in noted))
    for name, noted in kept.items():
        _write(f"{output}/{NOTES}", name, noted, root)
    for day in old:
        folder = f"{output}/{_folder(day)}"
        if os.path.islink(folder):
            os.remove(folder)
        else:
            rmtree(folder)
    if moved:
        before = ", ".join(sorted(map(_local, moved)))
        yield f"{output} was {before}: its notes name its own files now"
    if gone:
        yield f"{_span(gone)} removed from {output}: its notes no longer name their files"
    if old:
        yield f"{_span(old)} removed from {output}, as --keep-days says"


def _names(output: str) -> list[str]:
    folder = f"{output}/{NOTES}"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [name for name in names if name[:1].isdecimal() and not name.endswith(TEMPORARY_SUFFIX)]


def _read(path: str) -> list[_Entry]:
    """The entries of one file. Raises PipelineError if it is truncated, as by a power loss."""
    with open(path, encoding="utf-8") as file:
        version, *lines = file.read().splitlines() or [""]
    found = []
    try:
        for line in lines:
            fields = json.loads(line)
            root, day, rest = str(fields["path"]).rpartition(_DAY)
            found.append(_Entry(root, day + rest, fields))
    except (ValueError, KeyError, TypeError):
        version = ""
    if version != _VERSION:
        raise PipelineError(
            f"--output: {path} is no whole note of Spark: copy the output once more, or take the"
            " note from a backup"
        )
    return found


def _write(folder: str, name: str, entries: Iterable[_Entry], root: str) -> None:
    """Replace a file of the sink log atomically."""
    lines = [_VERSION]
    for entry in entries:
        fields = {**entry.fields, "path": root + entry.rest}
        lines.append(json.dumps(fields, separators=(",", ":")))
    # Hadoop's checksum of the old content; Hadoop accepts a file without one.
    with suppress(FileNotFoundError):
        os.remove(f"{folder}/.{name}.crc")
    write_atomically(OsFileSystem(), f"{folder}/{name}", "\n".join(lines).encode())


def _is_same(noted: str, root: str, output: str) -> bool:
    """True if a recorded root is the output, maybe by a different path."""
    if noted == root:
        return True
    with suppress(OSError):
        return os.path.samefile(_local(noted), output)
    return False


def _local(url: str) -> str:
    return unquote(urlsplit(url).path)


def _folder(day: str) -> str:
    return f"day={unquote(day)}"


def _older(days: Iterable[str], keep_days: int | None) -> set[str]:
    """The days that are `keep_days` or more before the newest; other names stay.

    A future day comes from a leader whose clock was ahead, and does not count as the newest.
    """
    dated: dict[str, date] = {}
    for day in days:
        with suppress(ValueError):
            dated[day] = date.fromisoformat(day)
    today = datetime.now(UTC).date()
    newest = max((when for when in dated.values() if when <= today), default=None)
    if keep_days is None or newest is None:
        return set()
    first = newest.toordinal() - keep_days + 1
    return {day for day, when in dated.items() if when.toordinal() < first}


def _check_files(output: str, entries: Iterable[_Entry]) -> None:
    # Later notes repeat earlier ones.
    paths = {entry.path for entry in entries}
    missing = [path for path in paths if not os.path.exists(f"{output}/{path}")]
    if missing:
        raise PipelineError(
            f"--output: {output} lacks {len(missing)} of the files that its {NOTES} names, such as"
            f" {min(missing)}: copy it whole, or remove whole days"
        )


def _span(days: Iterable[str]) -> str:
    ordered = sorted(map(_folder, days))
    return (
        ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}, {len(ordered)} days,"
    )
