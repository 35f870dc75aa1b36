"""All metadata record types of Kafka 4.3.1 as one type, and their frame.

A record's value is: frame version 1, api key, version (each an unsigned varint), then the message.
Unknown types or versions stay opaque, so that the log of a newer release is preserved.
`record_version` maps a metadata.version level to the version of a type.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

from quorate.records.codec.compiler import Codec, codec_of
from quorate.records.codec.schema import SchemaError, schema_of
from quorate.records.codec.varint import Buffer, encode_uvarint, read_uvarint
from quorate.records.record_types.brokers import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from quorate.records.record_types.cluster import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    NoOpRecord,
    ProducerIdsRecord,
    ZkMigrationStateRecord,
)
from quorate.records.record_types.security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorate.records.record_types.topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "METADATA_VERSION_LATEST",
    "METADATA_VERSION_MIN",
    "RECORD_TYPES",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerEndpoint",
    "BrokerFeature",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "ControllerEndpoint",
    "ControllerFeature",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "EntityData",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "KnownRecord",
    "MetadataRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnknownRecord",
    "UnregisterBrokerRecord",
    "UserScramCredentialRecord",
    "ZkMigrationStateRecord",
    "decode_record",
    "encode_record",
    "frame_of",
    "record_frame",
    "record_version",
]


@value_type
class UnknownRecord:
    """A record of a type, or of a version of a type, that this release does not know."""

    api_key: int
    version: int
    body: bytes


KnownRecord: TypeAlias = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | RemoveTopicRecord
    | DelegationTokenRecord
    | UserScramCredentialRecord
    | FeatureLevelRecord
    | ClientQuotaRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | NoOpRecord
    | ZkMigrationStateRecord
    | RemoveUserScramCredentialRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | RemoveDelegationTokenRecord
    | RegisterControllerRecord
    | ClearElrRecord
)
MetadataRecord: TypeAlias = KnownRecord | UnknownRecord

METADATA_VERSION_MIN: Final = 7
METADATA_VERSION_LATEST: Final = 30

_FRAME_VERSION: Final = 1
# Each of the three numbers takes one byte in all known records.
_FRAME_BYTES: Final = 3
_CODECS: Final[dict[bytes, Codec[KnownRecord]]] = {}


RECORD_TYPES: Final[Mapping[int, type[KnownRecord]]] = {
    api_key: record_type
    for record_type in get_args(KnownRecord)
    if (api_key := schema_of(record_type).api_key) is not None
}
_API_KEYS: Final[Mapping[type[KnownRecord], int]] = {
    record_type: api_key for api_key, record_type in RECORD_TYPES.items()
}

# Per type: (metadata.version level, version written from that level on). All other types have
# version 0 at every level. Source: MetadataVersion of Kafka 4.3.1; a registration change gained its
# fields at the same levels as registrations.
_VERSIONS_BY_LEVEL: Final[Mapping[type[KnownRecord], tuple[tuple[int, int], ...]]] = {
    RegisterBrokerRecord: ((30, 4), (17, 3), (8, 2), (7, 1)),
    BrokerRegistrationChangeRecord: ((30, 3), (17, 2), (7, 1)),
    PartitionRecord: ((23, 2), (17, 1), (7, 0)),
    PartitionChangeRecord: ((23, 2), (17, 1), (7, 0)),
    ZkMigrationStateRecord: ((8, 0),),
    UserScramCredentialRecord: ((11, 0),),
    RemoveUserScramCredentialRecord: ((11, 0),),
    BeginTransactionRecord: ((13, 0),),
    EndTransactionRecord: ((13, 0),),
    AbortTransactionRecord: ((13, 0),),
    DelegationTokenRecord: ((14, 0),),
    RemoveDelegationTokenRecord: ((14, 0),),
    RegisterControllerRecord: ((15, 0),),
    ClearElrRecord: ((23, 0),),
}
_ANY_LEVEL: Final = ((METADATA_VERSION_MIN, 0),)


def record_version(record_type: type[KnownRecord], level: int) -> int:
    """The highest version of a type that every node at this metadata.version level can read.

    Raises ValueError if nodes at that level do not know the type.
    """
    for first_level, version in _VERSIONS_BY_LEVEL.get(record_type, _ANY_LEVEL):
        if level >= first_level:
            return version
    raise ValueError(f"{record_type.__name__} does not exist at metadata.version level {level}")


def encode_record(record: MetadataRecord, version: int) -> bytes:
    """Encode a record's value, including the frame.

    Raises SchemaError if the version cannot encode the record.
    """
    if isinstance(record, UnknownRecord):
        if version != record.version:
            raise SchemaError(
                f"an unknown record of version {record.version} cannot become version {version}"
            )
        return _frame(record.api_key, version) + record.body
    known = _codec(_API_KEYS[type(record)], version)
    if known is None:
        raise SchemaError(f"{type(record).__name__} has no version {version}")
    frame, codec = known
    out = bytearray(frame)
    codec.encode_into(out, record)
    return bytes(out)


def decode_record(value: Buffer) -> tuple[MetadataRecord, int]:
    """Decode the record in a value; returns it and its version.

    Raises SchemaError if the frame is not Kafka's or the message does not fill the value exactly.
    """
    # The usual frame: three bytes. A writer may encode the same numbers in longer varints, which
    # `_read_frame` reads.
    position = _FRAME_BYTES
    codec = _CODECS.get(bytes(value[:position]))
    if codec is None:
        api_key, version, position = _read_frame(value)
        known = _codec(api_key, version)
        if known is None:
            return UnknownRecord(api_key, version, bytes(value[position:])), version
        frame, codec = known
        _CODECS[frame] = codec
    record, end = codec.decode(value, position)
    if end != len(value):
        raise SchemaError(f"{codec.name}: {len(value) - end} bytes are left behind its end")
    return record, codec.version


def record_frame(value: Buffer) -> tuple[int, int]:
    """Api key and version of the record in a value, which is not decoded further.

    Raises SchemaError if the frame is not Kafka's.
    """
    api_key, version, _ = _read_frame(value)
    return api_key, version


def frame_of(record_type: type[KnownRecord], version: int) -> bytes:
    """The bytes before every record of that type and version."""
    return _frame(_API_KEYS[record_type], version)


def _read_frame(value: Buffer) -> tuple[int, int, int]:
    try:
        frame_version, position = read_uvarint(value, 0)
        api_key, position = read_uvarint(value, position)
        version, position = read_uvarint(value, position)
    except ValueError as error:
        raise SchemaError(f"frame of a metadata record: {error}") from error
    if frame_version != _FRAME_VERSION:
        raise SchemaError(f"frame version {frame_version} instead of {_FRAME_VERSION}")
    return api_key, version, position


def _frame(api_key: int, version: int) -> bytes:
    return b"".join(map(encode_uvarint, (_FRAME_VERSION, api_key, version)))


@cache
def _codec(api_key: int, version: int) -> tuple[bytes, Codec[KnownRecord]] | None:
    """Frame and codec, or None if this release does not know the type or the version."""
    record_type = RECORD_TYPES.get(api_key)
    if record_type is None or version not in schema_of(record_type).versions:
        return None
    return _frame(api_key, version), codec_of(record_type, version)
