"""The durable plan of a quorum recovery or restore, later kept as its record.

The file `rescue` is durable before anything else in a directory is touched. It holds all decisions,
so that an interrupted recovery resumes under the same ids and in the same epoch. While it exists no
controller starts on the directory. At the end it becomes `rescue-EPOCH.json`, which nothing reads.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from quorate.records.ids import (
    ClusterId,
    Epoch,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    format_uuid,
    parse_directory_id,
)
from quorate.records.value_types import keyword_value_type
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.storage import layout
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.meta_properties import MetaProperties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.storage.file_system import FileSystem

_VERSION = 1


class RecoveryKind(Enum):
    """The command that created the quorum."""

    RECOVER = "recover"
    RESTORE = "restore"


@keyword_value_type
class ConsultedLog:
    """A directory or backup that was consulted: the end of its log, and its highest end ever."""

    source: str
    key: ReplicaKey
    epoch: Epoch
    end: OffsetAndEpoch
    highest_end: OffsetAndEpoch


@keyword_value_type
class RecoveryPlan:
    """A single-voter quorum that replaces a lost one.

    `before` and `after` are the directory's identities, `voters_before` the voter set in effect at
    `end`, which is the end of the log that is kept. `epoch` is the one in which the new set begins.
    """

    kind: RecoveryKind
    started_ms: int
    before: MetaProperties
    after: MetaProperties
    end: OffsetAndEpoch
    epoch: Epoch
    endpoints: tuple[Endpoint, ...]
    voters_before: VoterSet
    witnesses: tuple[ConsultedLog, ...]

    @property
    def key(self) -> ReplicaKey:
        """The single voter of the new quorum."""
        return ReplicaKey(self.after.node_id, self.after.directory_id)

    @property
    def voters(self) -> VoterSet:
        """The new voter set. The old voters do not auto-join it: their disks are to be wiped."""
        gone = self.voters_before
        for voter in self.voters_before:
            if voter.key.directory_id is not None:
                gone = gone.without(voter.key)
        return VoterSet((Voter(self.key, self.endpoints),), gone.decommissioned)


def read_plan(fs: FileSystem, metadata_log_dir: str) -> RecoveryPlan | None:
    """Read the plan of an interrupted recovery; None if there is none. Raises StorageError."""
    path = f"{metadata_log_dir}/{layout.RESCUE}"
    if not fs.exists(path):
        return None
    try:
        return decode_plan(fs.read(path))
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{path}: malformed ({error!r}). It says what an interrupted rescue was about to do: "
            "begin again with an untouched copy of this disk"
        ) from error


def write_plan(fs: FileSystem, metadata_log_dir: str, plan: RecoveryPlan) -> None:
    """Begin a recovery, durable on return."""
    write_atomically(fs, f"{metadata_log_dir}/{layout.RESCUE}", encode_plan(plan))


def complete_plan(fs: FileSystem, metadata_log_dir: str, plan: RecoveryPlan) -> str:
    """End the recovery: rename its file to the record that stays; return that path."""
    path = f"{metadata_log_dir}/{layout.rescue_record_name(plan.epoch)}"
    fs.rename(f"{metadata_log_dir}/{layout.RESCUE}", path)
    fs.sync_dir(metadata_log_dir)
    return path


def check_no_unfinished_recovery(fs: FileSystem, metadata_log_dir: str) -> None:
    """Raise StorageError if a recovery is unfinished: the directory is partly changed."""
    plan = read_plan(fs, metadata_log_dir)
    if plan is not None:
        raise StorageError(
            f"{metadata_log_dir}/{layout.RESCUE}: `quorate storage {plan.kind.value}` was "
            "interrupted here, and the directory is half changed: run the same command again, it "
            "goes on where it stopped"
        )


# --- the file -------------------------------------------------------------------------------------


def encode_plan(plan: RecoveryPlan) -> bytes:
    """Encode the file: JSON, for operators who want to know later what was done."""
    started = datetime.fromtimestamp(plan.started_ms / 1000, UTC)
    fields: dict[str, Any] = {
        "version": _VERSION,
        "kind": plan.kind.value,
        "startedMs": plan.started_ms,
        "started": started.isoformat(timespec="seconds"),
        "nodeId": plan.after.node_id,
        "before": {
            "clusterId": plan.before.cluster_id,
            "directoryId": format_uuid(plan.before.directory_id),
            "nodeId": plan.before.node_id,
            "logEnd": _end_fields(plan.end),
            "voters": [_voter_fields(voter) for voter in plan.voters_before],
            "decommissioned": [_key_fields(key) for key in plan.voters_before.decommissioned],
        },
        "after": {
            "clusterId": plan.after.cluster_id,
            "directoryId": format_uuid(plan.after.directory_id),
            "epoch": plan.epoch,
            "endpoints": [_endpoint_fields(endpoint) for endpoint in plan.endpoints],
        },
        "witnesses": [
            {
                "source": witness.source,
                **_key_fields(witness.key),
                "epoch": witness.epoch,
                "logEnd": _end_fields(witness.end),
                "highestLogEnd": _end_fields(witness.highest_end),
            }
            for witness in plan.witnesses
        ],
    }
    return json.dumps(fields, indent=2, ensure_ascii=False).encode() + b"\n"


def decode_plan(data: bytes) -> RecoveryPlan:
    """Decode the plan. Raises ValueError, KeyError or TypeError if it is malformed."""
    fields = json.loads(data)
    if fields["version"] != _VERSION:
        raise ValueError(f"version {fields['version']}, known is {_VERSION}")
    before, after = fields["before"], fields["after"]
    return RecoveryPlan(
        kind=RecoveryKind(fields["kind"]),
        started_ms=int(fields["startedMs"]),
        before=MetaProperties(
            NodeId(int(before["nodeId"])),
            ClusterId(str(before["clusterId"])),
            parse_directory_id(before["directoryId"]),
        ),
        after=MetaProperties(
            NodeId(int(fields["nodeId"])),
            ClusterId(str(after["clusterId"])),
            parse_directory_id(after["directoryId"]),
        ),
        end=_end(before["logEnd"]),
        epoch=Epoch(int(after["epoch"])),
        endpoints=_endpoints(after["endpoints"]),
        voters_before=VoterSet.of(
            (Voter(_key(voter), _endpoints(voter["endpoints"])) for voter in before["voters"]),
            tuple(_key(key) for key in before["decommissioned"]),
        ),
        witnesses=tuple(
            ConsultedLog(
                source=str(witness["source"]),
                key=_key(witness),
                epoch=Epoch(int(witness["epoch"])),
                end=_end(witness["logEnd"]),
                highest_end=_end(witness["highestLogEnd"]),
            )
            for witness in fields["witnesses"]
        ),
    )


def _end_fields(end: OffsetAndEpoch) -> dict[str, int]:
    return {"offset": end.offset, "epoch": end.epoch}


def _end(fields: dict[str, Any]) -> OffsetAndEpoch:
    return OffsetAndEpoch(epoch=Epoch(int(fields["epoch"])), offset=Offset(int(fields["offset"])))


def _key_fields(key: ReplicaKey) -> dict[str, Any]:
    directory = None if key.directory_id is None else format_uuid(key.directory_id)
    return {"id": key.node_id, "directoryId": directory}


def _key(fields: dict[str, Any]) -> ReplicaKey:
    text = fields["directoryId"]
    known = None if text is None else parse_directory_id(text)
    return ReplicaKey(NodeId(int(fields["id"])), known)


def _endpoint_fields(endpoint: Endpoint) -> dict[str, Any]:
    return {"name": endpoint.name, "host": endpoint.host, "port": endpoint.port}


def _endpoints(items: Sequence[dict[str, Any]]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(str(e["name"]), str(e["host"]), int(e["port"])) for e in items)


def _voter_fields(voter: Voter) -> dict[str, Any]:
    endpoints = [_endpoint_fields(endpoint) for endpoint in voter.endpoints]
    return {**_key_fields(voter.key), "endpoints": endpoints}
