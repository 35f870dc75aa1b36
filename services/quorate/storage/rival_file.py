"""The file `rival`: the leader of another quorum that a single voter has found.

See rule `sole_voter_conflict`. It is durable before anything else is done. Kafka's `quorum-state`
could name a leader, but not one that this replica does not follow, nor one of an epoch that it has
led itself. So the rival has a file of its own, which is removed when an operator has decided
(`quorate storage recover`, or a directory that is formatted again). The file names the directory in
which it was written; any other directory ignores it, and so does a replica of a multi-voter quorum.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from quorate.raft.identity.rival_leader import Rival
from quorate.records.ids import (
    ClusterId,
    Epoch,
    NodeId,
    ReplicaKey,
    format_uuid,
    parse_directory_id,
)
from quorate.records.value_types import value_type
from quorate.records.voters import VoterSet
from quorate.storage import layout
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.meta_properties import MetaProperties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.raft.messages import VotersAt
    from quorate.storage.file_system import FileSystem

_VERSION: Final = 1


@value_type
class RememberedRival:
    """A rival, and the directory of the single voter that found it."""

    finder: MetaProperties
    rival: Rival

    def reason_to_ignore(self, meta: MetaProperties, voters: VoterSet) -> str | None:
        """Return why the rival does not concern a directory with these voters; None if it does."""
        if self.finder != meta:
            return f"found by {self.finder}, and this is {meta}"
        key = ReplicaKey(meta.node_id, meta.directory_id)
        if len(voters) != 1 or key not in voters:
            return f"found by a single voter, and the voters are {voters.ids}"
        return None


def read_rival(fs: FileSystem, path: str) -> RememberedRival | None:
    """Read the rival; None if the file does not exist.

    Raises StorageError if it is malformed: this replica could lead in parallel with another quorum.
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


def rival_of(
    fs: FileSystem, directory: str, meta: MetaProperties, voters: Sequence[VotersAt]
) -> tuple[Rival | None, tuple[str, ...]]:
    """Return the rival of the replica with these voter sets, and findings about an ignored file.

    Raises StorageError as `read_rival` does.
    """
    path = f"{directory}/{layout.RIVAL}"
    remembered = read_rival(fs, path)
    if remembered is None:
        return None, ()
    reason = remembered.reason_to_ignore(meta, voters[-1].voters if voters else VoterSet())
    return (remembered.rival, ()) if reason is None else (None, (f"{path}: {reason}: ignored",))


def write_rival(fs: FileSystem, path: str, remembered: RememberedRival) -> None:
    """Persist the rival, durable on return."""
    write_atomically(fs, path, encode_rival(remembered))


def encode_rival(remembered: RememberedRival) -> bytes:
    """Encode the file: JSON, for operators who inspect a directory that does not lead."""
    finder, rival = remembered.finder, remembered.rival
    fields = {
        "version": _VERSION,
        "nodeId": finder.node_id,
        "clusterId": finder.cluster_id,
        "directoryId": format_uuid(finder.directory_id),
        "leaderId": rival.leader_id,
        "leaderEpoch": rival.epoch,
        "host": rival.host,
        "port": rival.port,
    }
    return json.dumps(fields, indent=2).encode() + b"\n"


def decode_rival(data: bytes) -> RememberedRival:
    """Decode the file. Raises ValueError, KeyError or TypeError if it is malformed."""
    fields = json.loads(data)
    if fields["version"] != _VERSION:
        raise ValueError(f"version {fields['version']}, known is {_VERSION}")
    finder = MetaProperties(
        node_id=NodeId(int(fields["nodeId"])),
        cluster_id=ClusterId(str(fields["clusterId"])),
        directory_id=parse_directory_id(str(fields["directoryId"])),
    )
    rival = Rival(
        leader_id=NodeId(int(fields["leaderId"])),
        epoch=Epoch(int(fields["leaderEpoch"])),
        host=str(fields["host"]),
        port=int(fields["port"]),
    )
    return RememberedRival(finder, rival)
