"""Voters' directories that grow as their disks did, and what is committed in them.

A full log is written first. Each directory is then given more of its bytes, cut anywhere, as a
process that reads in parallel with its writer finds them. What is committed follows from the full
directories: nothing of the source has a part in it.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from os.path import commonpath
from typing import TYPE_CHECKING, NamedTuple

from tests.pipeline.kafka_bytes import HEADER, Definitions, records_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence
    from pathlib import Path

LOG_DIR = "__cluster_metadata-0"
EPOCHS = "leader-epoch-checkpoint"
TAIL_BATCHES = 5
# Of a batch: what stands in front of the bytes that its length counts, and of those that its CRC
# guards; the last byte of its first time.
_LENGTH_END = 12
_CRC_END = 21
_TIME_END = 34


class Kept(NamedTuple):
    """A record as a lake has to hold it."""

    offset: int
    epoch: int
    record_type: str | None
    value: bytes | None
    timestamp: dt.datetime


class Place(NamedTuple):
    """A batch in a directory: where it ends among the bytes of all segments, and its offsets."""

    end: int
    base: int
    behind: int
    epoch: int


@dataclass(frozen=True)
class GrowingVoter:
    """One directory: `whole` has all that it will ever hold, `path` what it holds by now."""

    whole: Path
    path: Path

    @cached_property
    def segments(self) -> list[tuple[str, bytes]]:
        """The names and bytes of all segments, in order."""
        files = sorted((self.whole / LOG_DIR).glob("*.log"))
        return [(file.name, file.read_bytes()) for file in files]

    @cached_property
    def places(self) -> list[Place]:
        """All batches, in order."""
        found, before = [], 0
        for _, data in self.segments:
            at = 0
            while at < len(data):
                base, size, epoch, *_, count = HEADER.unpack_from(data, at)
                at += _LENGTH_END + size
                found.append(Place(before + at, base, base + count, epoch))
            before += len(data)
        return found

    @property
    def size_bytes(self) -> int:
        """The size of all segments in the end."""
        return self.places[-1].end

    def end_at(self, size_bytes: int) -> int:
        """The offset behind the last batch that is whole among so many bytes."""
        return max((each.behind for each in self.places if each.end <= size_bytes), default=0)

    def grow(self, size_bytes: int) -> None:
        """Hold so many of all bytes, and nothing else."""
        log = self.path / LOG_DIR
        log.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.whole / "meta.properties", self.path)
        left = size_bytes
        for name, data in self.segments:
            if left <= 0:
                break
            wanted = data[:left]
            left -= len(wanted)
            file = log / name
            held = file.read_bytes() if file.exists() else b""
            same = len(commonpath([held, wanted]))
            # A reader in parallel never sees the file shorter than what stays.
            with file.open("ab") as opened:
                opened.truncate(same)
                opened.write(wanted[same:])
        self._write_epochs(size_bytes)

    def _write_epochs(self, size_bytes: int, *own: tuple[int, int]) -> None:
        end = self.end_at(size_bytes)
        starts: dict[int, int] = {}
        for each in self.places:
            if each.behind <= end:
                starts.setdefault(each.epoch, each.base)
        lines = [f"{epoch} {start}" for epoch, start in (*starts.items(), *own)]
        text = "\n".join(["0", str(len(lines)), *lines, ""])
        (self.path / LOG_DIR / EPOCHS).write_text(text)

    def diverge(self, size_bytes: int) -> None:
        """Hold so many bytes, and behind their last batch a tail that no other voter has.

        It is the next batches of the whole log in an epoch of their own, of other times: their CRCs
        are right.
        """
        end = self.end_at(size_bytes)
        position = max((each.end for each in self.places if each.behind <= end), default=0)
        self.grow(position)
        data = b"".join(data for _, data in self.segments)
        file, _ = self.file_at(max(position - 1, 0))
        epoch = max(each.epoch for each in self.places) + 1
        tail = [each for each in self.places if each.base >= end][:TAIL_BATCHES]
        with file.open("ab") as opened:
            for place in tail:
                opened.write(_of_epoch(data[position : place.end], epoch))
                position = place.end
        self._write_epochs(size_bytes, (epoch, end))

    def file_at(self, position: int) -> tuple[Path, int]:
        """The segment that holds this byte of all, and its place there."""
        for name, data in self.segments:
            if position < len(data):
                return self.path / LOG_DIR / name, position
            position -= len(data)
        raise AssertionError(position)


def _of_epoch(batch: bytes, epoch: int) -> bytes:
    parts = list(HEADER.unpack_from(batch))
    parts[2] = epoch
    changed = bytearray(HEADER.pack(*parts) + batch[HEADER.size :])
    changed[_TIME_END] ^= 1
    changed[17:_CRC_END] = crc32c(bytes(changed[_CRC_END:])).to_bytes(4, "big")
    return bytes(changed)


def crc32c(data: bytes) -> int:
    """The checksum of batches, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


def committed(voters: Sequence[GrowingVoter], definitions: Definitions) -> dict[int, Kept]:
    """The records that most of the whole directories hold, by offset."""
    counts: Counter[Kept] = Counter()
    for voter in voters:
        for file in sorted((voter.whole / LOG_DIR).glob("*.log")):
            counts.update(
                Kept(row.offset, row.leader_epoch, row.record_type, row.value, row.timestamp)
                for row in records_of(file, definitions)
            )
    majority = len(voters) // 2 + 1
    return {kept.offset: kept for kept, count in counts.items() if count >= majority}
