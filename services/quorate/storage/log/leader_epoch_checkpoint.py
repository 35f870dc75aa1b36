"""leader-epoch-checkpoint: start offsets of the log's epochs, in Kafka's format.

The CRC of a batch does not cover its epoch; this file is one of the sources that reveal a flipped
one. It is durable before the first record of an epoch counts as flushed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import EpochStart
from quorate.records.ids import Epoch, Offset
from quorate.settings.integers import INT32_MAX, is_whole_number
from quorate.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.storage.file_system import FileSystem

_VERSION = "0"


def entries_between(
    epochs: Iterable[EpochStart], *, log_start: int, end: int
) -> tuple[EpochStart, ...]:
    """Return the file's entries for a log from `log_start` to `end`.

    Like Kafka's, it lists no epoch without records. An epoch that began below the log's start is
    listed at the start.
    """
    last_of_start = {max(e.start_offset, log_start): e.epoch for e in epochs}
    return tuple(
        EpochStart(epoch, Offset(start))
        for start, epoch in last_of_start.items()
        if start < end or start == log_start
    )


def encode_epochs(entries: Iterable[EpochStart]) -> bytes:
    """Encode the file: version, count, then one line per epoch with its start offset."""
    lines = [f"{entry.epoch} {entry.start_offset}" for entry in entries]
    return "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode()


def decode_epochs(data: bytes) -> tuple[EpochStart, ...]:
    """Decode the entries. Raises ValueError that names the line at fault."""
    lines = data.decode("ascii").split("\n")
    if lines.pop() or len(lines) < 2 or lines[0] != _VERSION:
        raise ValueError(f"does not begin with version {_VERSION} and a count, or ends in mid-line")
    if not is_whole_number(lines[1]) or int(lines[1]) != len(lines) - 2:
        raise ValueError(f"the count is {lines[1]!r}, and {len(lines) - 2} entries follow")
    entries: list[EpochStart] = []
    for number, line in enumerate(lines[2:], start=3):
        fields = line.split(" ")
        if not (
            len(fields) == 2
            and is_whole_number(fields[0], maximum=INT32_MAX)
            and is_whole_number(fields[1])
        ):
            raise ValueError(f"line {number} is {line!r}, an epoch and an offset are needed")
        entry = EpochStart(Epoch(int(fields[0])), Offset(int(fields[1])))
        if entries and not (
            entry.epoch > entries[-1].epoch and entry.start_offset > entries[-1].start_offset
        ):
            raise ValueError(f"line {number}: epochs and offsets must rise")
        entries.append(entry)
    return tuple(entries)


def read_epochs(fs: FileSystem, path: str) -> tuple[EpochStart, ...] | None:
    """Read the epoch history; None if the file does not exist.

    Raises StorageError if it is malformed.
    """
    if not fs.exists(path):
        return None
    try:
        return decode_epochs(fs.read(path))
    except ValueError as error:
        raise StorageError(
            f"{path}: {error}. Remove the file: it is built anew from the log, whose batches all "
            "check by themselves; only a flipped epoch in a batch that is alone in its epoch would "
            "then go unnoticed"
        ) from error


def check_history(
    path: str,
    recorded: Iterable[EpochStart] | None,
    scanned: Iterable[EpochStart],
    *,
    first: int,
    end: int,
    flushed: int | None,
) -> None:
    """Compare the file with the epochs that the log itself shows, from `first` to `end`.

    Entries for records that are no longer or not yet in the log are not contradictions, nor are
    epochs that began above the flushed end. If the flushed end is unknown, the file may lack the
    newest ones. Raises StorageError if file and log contradict each other.
    """
    known = [entry for entry in recorded or () if first <= entry.start_offset < end]
    entries = entries_between(known, log_start=first, end=end)
    if not entries:
        return
    log_start = entries[0].start_offset
    if flushed is not None and len(entries) == 1 and log_start >= flushed:
        # The entry of an empty log, which names the epoch below it: all records came later.
        return
    seen = entries_between(scanned, log_start=log_start, end=end)
    newest = entries[-1].start_offset
    limit = newest + 1 if flushed is None else max(flushed, newest + 1)
    expected = tuple(entry for entry in seen if entry.start_offset < limit)
    if entries != expected:
        raise StorageError(
            f"{path}: says that epochs begin at {_shown(entries)}, the log {_shown(expected)}. "
            "Every batch of the log checks: remove the file, it is made anew from the log"
        )


def _shown(entries: Iterable[EpochStart]) -> str:
    return (
        ", ".join(f"{entry.start_offset} (epoch {entry.epoch})" for entry in entries) or "nowhere"
    )
