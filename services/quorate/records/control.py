"""Control records: records of the quorum itself in the metadata log (KIP-595, 630, 853).

A control record has a key of four bytes, version and type, and a value that starts with the version
of its own message. Control records are in separate batches, marked by an attribute.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias, TypeVar

from quorate.records.batch import BatchHeader, encode_batch, read_records
from quorate.records.codec.compiler import codec_of
from quorate.records.codec.schema import SchemaError, Tagged, Wire, message, structure
from quorate.records.ids import ZERO_UUID, DirectoryId, NodeId, ReplicaKey
from quorate.records.value_types import value_type
from quorate.records.voters import Endpoint, Voter, VoterSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.records.codec.varint import Buffer


T = TypeVar("T")


class ControlType(IntEnum):
    """The type in a control record's key."""

    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@value_type
class LeaderChange:
    """The first record of an epoch: its leader, and the voters that voted for it (KIP-595).

    `verbatim` is the encoded value if it has more than these fields: directory ids of version 1,
    unknown tagged fields. It makes decoding and encoding byte-exact.
    """

    leader_id: NodeId
    voters: tuple[NodeId, ...]
    granting_voters: tuple[NodeId, ...]
    version: int = 0
    verbatim: bytes | None = None


@value_type
class KRaftVersion:
    """The finalised kraft.version from here on (KIP-853); `verbatim` as in LeaderChange."""

    kraft_version: int
    verbatim: bytes | None = None


@value_type
class KRaftVoters:
    """The voter set from here on (KIP-853); `verbatim` as in LeaderChange."""

    voters: VoterSet
    verbatim: bytes | None = None


@value_type
class SnapshotHeader:
    """The first record of a snapshot (KIP-630): the timestamp of the last record that it covers."""

    last_contained_log_timestamp_ms: int
    verbatim: bytes | None = None


@value_type
class SnapshotFooter:
    """The last record of a snapshot (KIP-630): a file without it is incomplete."""

    verbatim: bytes | None = None


ControlRecord: TypeAlias = (
    LeaderChange | KRaftVersion | KRaftVoters | SnapshotHeader | SnapshotFooter
)

_KEY: Final = struct.Struct(">hh")
_KEY_VERSION: Final = 0
_MESSAGE_VERSION: Final = struct.Struct(">h")


def encode_control_batch(
    records: Sequence[ControlRecord], *, timestamp_ms: int, base_offset: int = 0, epoch: int = 0
) -> bytes:
    """Encode one control batch of these records, as KRaft writes it."""
    encoded = [encode_control(record) for record in records]
    return encode_batch(
        [value for _, value in encoded],
        keys=[key for key, _ in encoded],
        timestamp_ms=timestamp_ms,
        base_offset=base_offset,
        epoch=epoch,
        is_control=True,
    )


def control_records(
    buffer: Buffer, position: int, header: BatchHeader
) -> tuple[ControlRecord, ...]:
    """The control records of the verified batch at `position`; empty for a data batch."""
    if not header.is_control:
        return ()
    return tuple(
        decode_control(record.key, record.value)
        for record in read_records(buffer, position, header)
    )


def encode_control(record: ControlRecord) -> tuple[bytes, bytes]:
    """Key and value of a control record."""
    control_type, value = _encode(record)
    key = _KEY.pack(_KEY_VERSION, control_type)
    if record.verbatim is not None and decode_control(key, record.verbatim) == record:
        return key, record.verbatim
    return key, value


# The same few records are read repeatedly: from each snapshot, segment and fetched range.
@lru_cache(maxsize=128)
def decode_control(key: bytes | None, value: bytes | None) -> ControlRecord:
    """The control record with this key and value.

    Raises SchemaError if either is malformed, or the type or version is unknown.
    """
    if key is None or value is None or len(key) < _KEY.size or len(value) < _MESSAGE_VERSION.size:
        raise SchemaError(f"a control record needs a key and a value, not {key!r} and {value!r}")
    _, control_type = _KEY.unpack_from(key)
    try:
        record = _decode(control_type, value)
    except SchemaError:
        raise
    except ValueError as error:
        raise SchemaError(f"control record of type {control_type}: {error}") from error
    if _encode(record)[1] != value:
        return replace(record, verbatim=value)
    return record


# The messages on the wire. Each starts with its own version again.


@structure
class LeaderChangeVoter:
    """A voter in a LeaderChange; version 1 added the directory id."""

    voter_id: Annotated[NodeId, Wire("int32")]
    voter_directory_id: Annotated[DirectoryId, Wire("uuid", "1+")] = DirectoryId(ZERO_UUID)
    tagged: Tagged = ()


@message(api_key=None, versions="0-1")
class LeaderChangeMessage:
    """The value of a LEADER_CHANGE record."""

    version: Annotated[int, Wire("int16")]
    leader_id: Annotated[NodeId, Wire("int32")]
    voters: Annotated[tuple[LeaderChangeVoter, ...], Wire("[]LeaderChangeVoter")]
    granting_voters: Annotated[tuple[LeaderChangeVoter, ...], Wire("[]LeaderChangeVoter")]
    tagged: Tagged = ()


@message(api_key=None)
class SnapshotHeaderRecord:
    """The value of a SNAPSHOT_HEADER record."""

    version: Annotated[int, Wire("int16")]
    last_contained_log_timestamp: Annotated[int, Wire("int64")]
    tagged: Tagged = ()


@message(api_key=None)
class SnapshotFooterRecord:
    """The value of a SNAPSHOT_FOOTER record."""

    version: Annotated[int, Wire("int16")]
    tagged: Tagged = ()


@message(api_key=None)
class KRaftVersionRecord:
    """The value of a KRAFT_VERSION record."""

    version: Annotated[int, Wire("int16")]
    kraft_version: Annotated[int, Wire("int16")]
    tagged: Tagged = ()


@structure
class VoterEndpoint:
    """A listener of a voter."""

    name: Annotated[str, Wire("string")]
    host: Annotated[str, Wire("string")]
    port: Annotated[int, Wire("uint16")]
    tagged: Tagged = ()


@structure
class KRaftVersionFeature:
    """The kraft.versions that a voter supports."""

    min_supported_version: Annotated[int, Wire("int16")]
    max_supported_version: Annotated[int, Wire("int16")]
    tagged: Tagged = ()


@structure
class VoterRow:
    """A voter in a KRAFT_VOTERS record."""

    voter_id: Annotated[NodeId, Wire("int32")]
    voter_directory_id: Annotated[DirectoryId, Wire("uuid")]
    endpoints: Annotated[tuple[VoterEndpoint, ...], Wire("[]VoterEndpoint")]
    kraft_version_feature: Annotated[KRaftVersionFeature, Wire("KRaftVersionFeature")]
    tagged: Tagged = ()


@structure
class DecommissionedRow:
    """A voter that was removed and must not auto-join again; not in Kafka."""

    voter_id: Annotated[NodeId, Wire("int32")]
    voter_directory_id: Annotated[DirectoryId, Wire("uuid")]
    tagged: Tagged = ()


@message(api_key=None)
class VotersRecord:
    """The value of a KRAFT_VOTERS record; Kafka's readers skip Quorate's own tagged field."""

    version: Annotated[int, Wire("int16")]
    voters: Annotated[tuple[VoterRow, ...], Wire("[]VoterRow")]
    decommissioned: Annotated[
        tuple[DecommissionedRow, ...], Wire("[]DecommissionedRow", tag=10_000)
    ] = ()
    tagged: Tagged = ()


def _encode(record: ControlRecord) -> tuple[ControlType, bytes]:
    match record:
        case LeaderChange():
            body = LeaderChangeMessage(
                version=record.version,
                leader_id=record.leader_id,
                voters=_named(record.voters),
                granting_voters=_named(record.granting_voters),
            )
            encoded = codec_of(LeaderChangeMessage, record.version).encode(body)
            return ControlType.LEADER_CHANGE, encoded
        case SnapshotHeader(last_contained_log_timestamp_ms=timestamp_ms):
            header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=timestamp_ms)
            return ControlType.SNAPSHOT_HEADER, codec_of(SnapshotHeaderRecord, 0).encode(header)
        case SnapshotFooter():
            footer = SnapshotFooterRecord(version=0)
            return ControlType.SNAPSHOT_FOOTER, codec_of(SnapshotFooterRecord, 0).encode(footer)
        case KRaftVersion(kraft_version=kraft_version):
            version = KRaftVersionRecord(version=0, kraft_version=kraft_version)
            return ControlType.KRAFT_VERSION, codec_of(KRaftVersionRecord, 0).encode(version)
    rows = VotersRecord(
        version=0,
        voters=tuple(_row(voter) for voter in record.voters),
        decommissioned=tuple(
            DecommissionedRow(
                voter_id=key.node_id,
                voter_directory_id=key.directory_id or DirectoryId(ZERO_UUID),
            )
            for key in record.voters.decommissioned
        ),
    )
    return ControlType.KRAFT_VOTERS, codec_of(VotersRecord, 0).encode(rows)


def _decode(control_type: int, value: bytes) -> ControlRecord:
    (version,) = _MESSAGE_VERSION.unpack_from(value)
    match control_type:
        case ControlType.LEADER_CHANGE:
            change = _read(LeaderChangeMessage, version, value)
            return LeaderChange(
                change.leader_id,
                tuple(voter.voter_id for voter in change.voters),
                tuple(voter.voter_id for voter in change.granting_voters),
                version,
            )
        case ControlType.SNAPSHOT_HEADER:
            header = _read(SnapshotHeaderRecord, version, value)
            return SnapshotHeader(header.last_contained_log_timestamp)
        case ControlType.SNAPSHOT_FOOTER:
            _read(SnapshotFooterRecord, version, value)
            return SnapshotFooter()
        case ControlType.KRAFT_VERSION:
            return KRaftVersion(_read(KRaftVersionRecord, version, value).kraft_version)
        case ControlType.KRAFT_VOTERS:
            rows = _read(VotersRecord, version, value)
            gone = tuple(
                ReplicaKey(row.voter_id, row.voter_directory_id) for row in rows.decommissioned
            )
            return KRaftVoters(VoterSet.of((_voter(row) for row in rows.voters), gone))
        case _:
            raise SchemaError(f"unknown control record type {control_type}")


def _read(cls: type[T], version: int, value: bytes) -> T:
    read, end = codec_of(cls, version).decode(value)
    if end != len(value):
        raise SchemaError(f"{cls.__name__}: {len(value) - end} bytes are left behind its end")
    return read


def _named(ids: tuple[NodeId, ...]) -> tuple[LeaderChangeVoter, ...]:
    return tuple(LeaderChangeVoter(voter_id=node_id) for node_id in ids)


def _row(voter: Voter) -> VoterRow:
    return VoterRow(
        voter_id=voter.key.node_id,
        voter_directory_id=voter.key.directory_id or DirectoryId(ZERO_UUID),
        endpoints=tuple(
            VoterEndpoint(name=e.name, host=e.host, port=e.port) for e in voter.endpoints
        ),
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=voter.kraft_version_min,
            max_supported_version=voter.kraft_version_max,
        ),
    )


def _voter(row: VoterRow) -> Voter:
    directory_id = None if row.voter_directory_id == ZERO_UUID else row.voter_directory_id
    return Voter(
        ReplicaKey(row.voter_id, directory_id),
        tuple(Endpoint(e.name, e.host, e.port) for e in row.endpoints),
        row.kraft_version_feature.min_supported_version,
        row.kraft_version_feature.max_supported_version,
    )
