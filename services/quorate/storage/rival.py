"""The rival that the only voter of a quorum has found (rule 34): durable before anything else.

Kafka's `quorum-state` could name a leader, but not one that this replica does not follow, nor one
of an epoch that it has led itself. So it has a file of its own, which goes when a person has
decided (`quorate storage recover`, or a directory that is formatted anew).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from quorate.raft.rival import Rival
from quorate.records.ids import Epoch, NodeId
from quorate.storage.errors import StorageError
from quorate.storage.files import write_atomically

if TYPE_CHECKING:
    from quorate.storage.files import FileSystem

_VERSION: Final = 1


def read_rival(fs: FileSystem, path: str) -> Rival | None:
    """The rival that was found; None where there is no file.

    Raises StorageError when it is malformed: this replica could lead beside another quorum.
    """
    if not fs.exists(path):
        return None
    try:
        return decode_rival(fs.read(path))
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{path}: malformed ({error!r}). It names the leader of another quorum of this "
            "cluster: restore it from a backup, or, once the other quorum is gone, run `quorate "
            "storage recover` on this directory"
        ) from error


def write_rival(fs: FileSystem, path: str, rival: Rival) -> None:
    """Remember the rival, durable on return."""
    write_atomically(fs, path, encode_rival(rival))


def encode_rival(rival: Rival) -> bytes:
    """The file's bytes: JSON, for people who look into a directory that stands down."""
    fields = {
        "version": _VERSION,
        "leaderId": rival.leader_id,
        "leaderEpoch": rival.epoch,
        "host": rival.host,
        "port": rival.port,
    }
    return json.dumps(fields, indent=2).encode() + b"\n"


def decode_rival(data: bytes) -> Rival:
    """The file's content. Raises ValueError, KeyError or TypeError where it is malformed."""
    fields = json.loads(data)
    if fields["version"] != _VERSION:
        raise ValueError(f"version {fields['version']}, known is {_VERSION}")
    return Rival(
        leader_id=NodeId(int(fields["leaderId"])),
        epoch=Epoch(int(fields["leaderEpoch"])),
        host=str(fields["host"]),
        port=int(fields["port"]),
    )
