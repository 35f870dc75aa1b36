"""flushed-end: the durable log end; damage below it is data loss, above it a tail.

See rule `flushed_end_file`. The file lies next to the log. Its two slots are written alternately.
Each has a sequence number, a checksum and a block of its own, so a torn write or a bad sector
destroys at most one of them. (Earlier releases had both in the first block.) After a flush of the
log it is written without an fsync: a killed process loses nothing, and a power failure may bring
back an older slot, which only gives a lower end. That loss is bounded: within SYNC_AFTER_MS of a
flush `sync` makes it durable, in parallel with the flushes of the log. Anything that lowers the end
(a truncation) is durable in both slots before the log is touched, because a larger end that came
back would make a healthy log look damaged.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from quorate.records.crc import crc32c
from quorate.records.ids import (
    ZERO_UUID,
    ClusterId,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
)
from quorate.records.value_types import value_type
from quorate.storage.file_system import parent

if TYPE_CHECKING:
    from quorate.storage.file_system import File, FileSystem

SLOT_BYTES: Final = 512
# The largest common disk sector, and the unit in which the page cache writes.
BLOCK_BYTES: Final = 4096
SLOTS: Final = (0, BLOCK_BYTES)
_OLD_SLOT: Final = SLOT_BYTES
SYNC_AFTER_MS: Final = 1000
_MAGIC: Final = b"QFE1"
# magic, sequence, offset, epoch, flags, last CRC, voters in all, directory id, cluster id
_HEAD: Final = struct.Struct(">4sQqiBIH16sB")
_HAS_BATCH: Final = 1
_IS_HEALING: Final = 2
_VOTER: Final = struct.Struct(">i16s")
_CRC: Final = struct.Struct(">I")
_BODY_BYTES: Final = SLOT_BYTES - _CRC.size


@value_type
class FlushedEnd:
    """The state of the disk when the last acknowledgement was given.

    `last_crc` is the CRC of the last batch, None if the log was empty. `voters` are the keys of the
    voter set in effect, and `voter_count` is its size (a very large set is not listed completely).
    While `is_healing`, the healing file must exist: it holds the healing target.
    """

    end: OffsetAndEpoch
    last_crc: int | None
    voters: tuple[ReplicaKey, ...]
    voter_count: int
    cluster_id: ClusterId
    directory_id: DirectoryId
    is_healing: bool = False


class FlushedEndFile:
    """The file, kept open as long as the log is."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self.path = path
        self._fs = fs
        self._file: File | None = None
        self._sequence = 0
        self._slot = 0

    def load(self) -> FlushedEnd | None:
        """Read the newest valid slot; None without such a slot or file."""
        if not self._fs.exists(self.path):
            return None
        self._file = self._fs.open(self.path)
        found = newest_slot(self._file.read_at(0, 2 * BLOCK_BYTES))
        if found is None:
            return None
        position, self._sequence, newest = found
        self._slot = position // BLOCK_BYTES
        return newest

    def write(self, entry: FlushedEnd) -> None:
        """Write `entry` into the other slot, without waiting for the disk."""
        assert self._file is not None, "the file is made durable once before it is written"
        self._write_next(self._file, entry)

    def sync(self) -> None:
        """Make what was written durable; may run in parallel with `write`."""
        if self._file is not None:
            self._file.fdatasync()

    def store(self, entry: FlushedEnd) -> None:
        """Write `entry` into both slots, durable on return: no older end can come back."""
        if self._file is None:
            self._file = self._fs.open(self.path, create=True)
            self._fs.sync_dir(parent(self.path))
        for _ in SLOTS:
            # Write the whole block; in the first one this clears the second slot of earlier
            # releases.
            self._write_next(self._file, entry, BLOCK_BYTES)
            self._file.fdatasync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_next(self, file: File, entry: FlushedEnd, size_bytes: int = SLOT_BYTES) -> None:
        self._slot = 1 - self._slot
        self._sequence += 1
        data = encode_slot(self._sequence, entry).ljust(size_bytes, b"\0")
        file.write_at(SLOTS[self._slot], data)


def newest_slot(data: bytes) -> tuple[int, int, FlushedEnd] | None:
    """Return position, sequence and content of the newest valid slot in the file's bytes."""
    newest: tuple[int, int, FlushedEnd] | None = None
    for position in (*SLOTS, _OLD_SLOT):
        read = decode_slot(data[position : position + SLOT_BYTES])
        if read is not None and (newest is None or read[0] > newest[1]):
            newest = (position, *read)
    return newest


def encode_slot(sequence: int, entry: FlushedEnd) -> bytes:
    """Encode one slot: SLOT_BYTES, the last four of which are the CRC-32C of the rest."""
    cluster_id = entry.cluster_id.encode()
    body = bytearray(
        _HEAD.pack(
            _MAGIC,
            sequence,
            entry.end.offset,
            entry.end.epoch,
            (entry.last_crc is not None) * _HAS_BATCH | entry.is_healing * _IS_HEALING,
            entry.last_crc or 0,
            entry.voter_count,
            entry.directory_id,
            len(cluster_id),
        )
    )
    body += cluster_id
    room = (_BODY_BYTES - len(body)) // _VOTER.size
    for key in entry.voters[:room]:
        body += _VOTER.pack(key.node_id, key.directory_id or ZERO_UUID)
    body += bytes(_BODY_BYTES - len(body))
    return bytes(body) + _CRC.pack(crc32c(bytes(body)))


def decode_slot(data: bytes) -> tuple[int, FlushedEnd] | None:
    """Decode sequence and content of a slot; None if it fails verification."""
    if len(data) != SLOT_BYTES or not data.startswith(_MAGIC):
        return None
    if _CRC.unpack_from(data, _BODY_BYTES)[0] != crc32c(data[:_BODY_BYTES]):
        return None
    _, sequence, offset, epoch, flags, crc, count, directory_id, length = _HEAD.unpack_from(data)
    position = _HEAD.size + length
    room = (_BODY_BYTES - position) // _VOTER.size
    voters = []
    for index in range(min(count, room)):
        node_id, voter_directory = _VOTER.unpack_from(data, position + index * _VOTER.size)
        known = None if voter_directory == ZERO_UUID else DirectoryId(voter_directory)
        voters.append(ReplicaKey(NodeId(node_id), known))
    return sequence, FlushedEnd(
        OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(offset)),
        crc if flags & _HAS_BATCH else None,
        tuple(voters),
        count,
        ClusterId(data[_HEAD.size : position].decode()),
        DirectoryId(directory_id),
        bool(flags & _IS_HEALING),
    )
