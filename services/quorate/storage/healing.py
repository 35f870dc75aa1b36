"""healing: what a damaged voter must remember until it has recovered its log.

See rules `empty_log_abstains` and `damaged_voter_heals`. The healing target is durable before a
damaged log is touched, and is removed only when the log has reached it again. A checksum detects a
flipped bit, which could lower it. `abstains` marks a directory of kraft.version 0 that came up
empty without the mark of a first bootstrap: it cannot be distinguished from one that lost its disk
and with it a vote. The mark stays, whatever the log holds, until the core reports that this voter
knows all that it may have known.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from quorate.records.crc import crc32c
from quorate.records.ids import (
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    format_uuid,
    parse_directory_id,
)
from quorate.records.value_types import value_type
from quorate.storage.errors import FORMAT_EMPTY_HINT, StorageError
from quorate.storage.file_system import remove_durably, write_atomically

if TYPE_CHECKING:
    from quorate.storage.file_system import FileSystem

_CHECKSUM = "checksum"


@value_type
class HealingState:
    """The file's content; `voters` is the set in effect at the healing target, if known."""

    remembered_end: OffsetAndEpoch | None = None
    voters: tuple[ReplicaKey, ...] = ()
    abstains: bool = False


def read_healing(fs: FileSystem, path: str) -> HealingState:
    """Read the file; the result is empty if it does not exist.

    Raises StorageError if it is malformed: a damaged voter would otherwise count itself as intact.
    """
    if not fs.exists(path):
        return HealingState()
    try:
        return decode_healing(fs.read(path))
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{path}: malformed ({error!r}). It says how far this voter's log once came: restore "
            f"it from a backup; or, {FORMAT_EMPTY_HINT}"
        ) from error


def write_healing(fs: FileSystem, path: str, healing_state: HealingState) -> None:
    """Write the file, durable on return; remove it if it would be empty."""
    if healing_state.remembered_end is None and not healing_state.abstains:
        remove_durably(fs, path)
    else:
        write_atomically(fs, path, encode_healing(healing_state))


def encode_healing(healing_state: HealingState) -> bytes:
    """Encode the file: JSON, for operators who inspect a directory that heals."""
    end = healing_state.remembered_end
    fields: dict[str, Any] = {
        "version": 1,
        "rememberedEnd": None if end is None else {"offset": end.offset, "epoch": end.epoch},
        "voters": [
            {
                "id": key.node_id,
                "directoryId": None if key.directory_id is None else format_uuid(key.directory_id),
            }
            for key in healing_state.voters
        ],
        "abstains": healing_state.abstains,
    }
    fields[_CHECKSUM] = _checksum(fields)
    return json.dumps(fields, indent=2).encode() + b"\n"


def decode_healing(data: bytes) -> HealingState:
    """Decode the file. Raises ValueError, KeyError or TypeError if it is malformed."""
    fields = json.loads(data)
    if fields["version"] != 1:
        raise ValueError(f"version {fields['version']}, known is 1")
    # Earlier releases wrote no checksum.
    checksum = fields.pop(_CHECKSUM, None)
    if checksum is not None and checksum != _checksum(fields):
        raise ValueError(f"the checksum is {checksum}, its content has {_checksum(fields)}")
    end = fields["rememberedEnd"]
    remembered = None
    if end is not None:
        remembered = OffsetAndEpoch(
            epoch=Epoch(int(end["epoch"])), offset=Offset(int(end["offset"]))
        )
    voters = tuple(
        ReplicaKey(NodeId(int(voter["id"])), _directory(voter["directoryId"]))
        for voter in fields["voters"]
    )
    return HealingState(remembered, voters, bool(fields["abstains"]))


def _checksum(fields: dict[str, Any]) -> int:
    """CRC-32C of the file's content, independent of its layout."""
    return crc32c(json.dumps(fields, sort_keys=True).encode())


def _directory(text: str | None) -> DirectoryId | None:
    return None if text is None else parse_directory_id(text)
