"""Records whose subject is not built yet: kept by key, removed by their removals (rule 22).

Opening a directory of stock Kafka and writing a snapshot of it must not lose its ACLs, quotas,
credentials, tokens, producer ids or controllers, so each such record is a row under a key, newest
record wins, and goes back into snapshots as it came.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from quorate.controller.errors import UnsupportedMetadataVersionError
from quorate.records.metadata import (
    RECORD_TYPES,
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    ProducerIdsRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UnknownRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)

if TYPE_CHECKING:
    from quorate.controller.image import MetadataDelta
    from quorate.controller.opaque.image import RowKey

CONTROLLERS: Final = 0
_QUOTAS, _PRODUCER_IDS, _ACLS, _SCRAM, _TOKENS, _ZK = range(1, 7)

RowRecord: TypeAlias = (
    RegisterControllerRecord
    | ClientQuotaRecord
    | ProducerIdsRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
    | ZkMigrationStateRecord
)


def row_key(record: RowRecord) -> RowKey:
    """Where a record's row is: the group, in the order of Kafka's snapshots, and the key in it.

    A record and the one that removes it have the same key.
    """
    match record:
        case RegisterControllerRecord():
            return (CONTROLLERS, (record.controller_id,))
        case ClientQuotaRecord():
            entity = sorted(
                (part.entity_type, part.entity_name is not None, part.entity_name or "")
                for part in record.entity
            )
            return (_QUOTAS, (*(field for part in entity for field in part), record.key))
        case ProducerIdsRecord():
            return (_PRODUCER_IDS, ())
        case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
            return (_ACLS, (record.id,))
        case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
            return (_SCRAM, (record.mechanism, record.name))
        case DelegationTokenRecord() | RemoveDelegationTokenRecord():
            return (_TOKENS, (record.token_id,))
        case ZkMigrationStateRecord():
            return (_ZK, ())
        case _:
            assert_never(record)


def replay_row(delta: MetadataDelta, record: RowRecord) -> None:
    """Set the row."""
    delta.opaque.rows[row_key(record)] = record


def replay_producer_ids(delta: MetadataDelta, record: ProducerIdsRecord) -> None:
    """Set which ids come next; the broker that got the last ones is in no snapshot of Kafka's."""
    replay_row(delta, replace(record, broker_id=-1, broker_epoch=-1))


def replay_row_removal(delta: MetadataDelta, record: RowRecord) -> None:
    """Remove the row, if there is one."""
    delta.opaque.rows.pop(row_key(record), None)


def replay_quota(delta: MetadataDelta, record: ClientQuotaRecord) -> None:
    """Set a quota, or remove it: both are the same record."""
    if record.remove:
        replay_row_removal(delta, record)
    else:
        replay_row(delta, record)


def replay_unknown(delta: MetadataDelta, record: UnknownRecord) -> None:
    """Keep a record of an unknown type as it is.

    Raises UnsupportedMetadataVersionError for an unknown version of a known type: what it changes
    in the subjects that exist here would be lost.
    """
    known = RECORD_TYPES.get(record.api_key)
    if known is not None:
        raise UnsupportedMetadataVersionError(
            f"{known.__name__} of version {record.version} is newer than this release; run one that"
            " knows it"
        )
    delta.opaque.unknown.append(record)
