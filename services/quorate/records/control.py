"""Control records: what the quorum writes into its own log beside the metadata (KIP-595, 630, 853).

A control record has a key of four bytes, version and type, and a value that starts with the version
of its own message. Control records stand in batches of their own, marked by an attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from quorate.records.ids import NodeId
    from quorate.records.voters import VoterSet


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """The first record of an epoch: who leads it, and which voters granted it (KIP-595).

    `verbatim` is the value as it was read where it holds more than these fields: directory ids of
    version 1, unknown tagged fields. It keeps decode and encode equal byte for byte.
    """

    leader_id: NodeId
    voters: tuple[NodeId, ...]
    granting_voters: tuple[NodeId, ...]
    version: int = 0
    verbatim: bytes | None = None


@dataclass(frozen=True, slots=True)
class KRaftVersion:
    """The finalised kraft.version from here on (KIP-853); `verbatim` as in LeaderChange."""

    kraft_version: int
    verbatim: bytes | None = None


@dataclass(frozen=True, slots=True)
class KRaftVoters:
    """The voter set from here on (KIP-853); `verbatim` as in LeaderChange."""

    voters: VoterSet
    verbatim: bytes | None = None


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """The first record of a snapshot (KIP-630): the timestamp of the last record that it covers."""

    last_contained_log_timestamp_ms: int
    verbatim: bytes | None = None


@dataclass(frozen=True, slots=True)
class SnapshotFooter:
    """The last record of a snapshot (KIP-630): without it the file is not whole."""

    verbatim: bytes | None = None


ControlRecord: TypeAlias = (
    LeaderChange | KRaftVersion | KRaftVoters | SnapshotHeader | SnapshotFooter
)
