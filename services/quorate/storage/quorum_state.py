"""quorum-state: epoch, leader and vote, in Kafka's JSON format.

`data_version` 0 belongs to kraft.version 0 and lists the static voters; 1 belongs to kraft.version
1 and has the voted directory. A node that is to join has neither version nor voters yet; it writes
1, or it would lose the directory for which it voted. A voter that loses this file could vote twice
in one epoch, so it is replaced atomically and never guessed (Kafka: FileQuorumStateStore;
rule `quorum_state_required`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from quorate.raft.election.epoch_guard import EPOCH_ACCEPTED_MAX
from quorate.raft.messages import ElectionState
from quorate.records.ids import (
    ZERO_UUID,
    DirectoryId,
    Epoch,
    NodeId,
    ReplicaKey,
    format_uuid,
    parse_uuid,
)
from quorate.storage.errors import FORMAT_EMPTY_HINT, QUORUM_RECOVERY_HINT, StorageError
from quorate.storage.file_system import write_atomically

if TYPE_CHECKING:
    from quorate.records.voters import VoterSet
    from quorate.storage.file_system import FileSystem

_NOBODY = -1


class EpochOutOfRange(ValueError):
    """An epoch so high that a quorum could soon run out of epochs for elections.

    See rule `input_bounds`.
    """


def write_quorum_state(
    fs: FileSystem, path: str, state: ElectionState, *, kraft_version: int, voters: VoterSet
) -> None:
    """Make `state` durable; `voters` are listed at kraft.version 0, where they are static."""
    write_atomically(fs, path, encode_quorum_state(state, kraft_version, voters))


def encode_quorum_state(state: ElectionState, kraft_version: int, voters: VoterSet) -> bytes:
    """Encode the file: Kafka's field order, no blanks, no newline."""
    leader_id = _NOBODY if state.leader_id is None else state.leader_id
    voted_id = _NOBODY if state.voted is None else state.voted.node_id
    fields: dict[str, Any]
    if kraft_version == 0 and voters.voters:
        fields = {
            "clusterId": "",
            "leaderId": leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter.key.node_id} for voter in voters],
            "data_version": 0,
        }
    else:
        directory_id = None if state.voted is None else state.voted.directory_id
        fields = {
            "leaderId": leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted_id,
            "votedDirectoryId": format_uuid(directory_id or ZERO_UUID),
            "data_version": 1,
        }
    return json.dumps(fields, separators=(",", ":")).encode()


def read_quorum_state(fs: FileSystem, path: str) -> ElectionState | None:
    """Read the election state; None if the file does not exist.

    Raises StorageError if the file is malformed: it may have contained a vote.
    """
    if not fs.exists(path):
        return None
    try:
        return decode_quorum_state(fs.read(path))
    except EpochOutOfRange as error:
        raise StorageError(
            f"{path}: {error}. Nothing may be guessed, since the file holds this voter's vote:"
            f" restore it from a backup; or, {FORMAT_EMPTY_HINT}; or, {QUORUM_RECOVERY_HINT}"
        ) from error
    except ValueError as error:
        raise StorageError(
            f"{path}: {error}. It holds this voter's vote, so nothing may be guessed: restore it "
            f"from a backup; or, {FORMAT_EMPTY_HINT}"
        ) from error


def read_without_vote(fs: FileSystem, path: str, known: Epoch) -> tuple[ElectionState | None, str]:
    """Read the state for a quorum recovery, and a finding if the file's epoch is impossible.

    The recovery gives the directory a new identity, so no vote binds it. For an impossible epoch
    `known`, the epoch of the log, is used. Raises StorageError if the file is malformed in any
    other way.
    """
    try:
        if fs.exists(path):
            decode_quorum_state(fs.read(path))
    except EpochOutOfRange as error:
        return ElectionState(known), f"{path}: {error}: it does not count"
    except ValueError:
        pass  # read again below, for the message
    return read_quorum_state(fs, path), ""


def decode_quorum_state(data: bytes) -> ElectionState:
    """Decode the state. Raises ValueError that names the field that is wrong."""
    fields = _object(data)
    version = _integer(fields, "data_version")
    if version not in (0, 1):
        raise ValueError(f"data_version is {version}, known are 0 and 1")
    epoch = _integer(fields, "leaderEpoch")
    leader_id = _integer(fields, "leaderId")
    voted_id = _integer(fields, "votedId")
    if min(epoch, leader_id, voted_id) < _NOBODY:
        raise ValueError("leaderEpoch, leaderId and votedId cannot be below -1")
    if epoch > EPOCH_ACCEPTED_MAX:
        raise EpochOutOfRange(f"leaderEpoch is {epoch}, which no quorum comes near by elections")
    voted = None
    if voted_id != _NOBODY:
        voted = ReplicaKey(NodeId(voted_id), _directory(fields) if version else None)
    return ElectionState(
        Epoch(max(epoch, 0)), None if leader_id == _NOBODY else NodeId(leader_id), voted
    )


def _object(data: bytes) -> dict[str, object]:
    try:
        fields = json.loads(data)
    except ValueError as error:
        raise ValueError(f"not JSON ({error})") from error
    if not isinstance(fields, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004
    return fields


def _integer(fields: dict[str, object], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, an integer is needed")  # noqa: TRY004
    return value


def _directory(fields: dict[str, object]) -> DirectoryId | None:
    value = fields.get("votedDirectoryId")
    if not isinstance(value, str):
        raise ValueError(f"votedDirectoryId is {value!r}, a uuid is needed")  # noqa: TRY004
    directory_id = parse_uuid(value)
    return None if directory_id == ZERO_UUID else DirectoryId(directory_id)
