"""Metadata kinds whose records are only kept: ACLs, SCRAM, tokens, producer ids and others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from quorate.controller.metadata_kind import MetadataKind
from quorate.controller.opaque.records import OpaqueRecords, replay_unknown
from quorate.records.metadata import (
    AccessControlEntryRecord,
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
    from collections.abc import Iterable, Mapping

    from immutables import Map

    from quorate.controller.image import MetadataDelta, MetadataImage
    from quorate.controller.metadata_kind import Replay


def _opaque(opaque_records: OpaqueRecords, replay: Mapping[type, Replay]) -> MetadataKind:
    def large(image: MetadataImage) -> Iterable[Map[Any, Any]]:
        return (image.opaque.group(opaque_records.name),)

    return MetadataKind(replay=replay, snapshot=opaque_records.records, large_parts=large)


_controllers = OpaqueRecords("controllers", lambda record: (record.controller_id,))
CONTROLLERS: Final = _opaque(_controllers, {RegisterControllerRecord: _controllers.put})


def _replay_producer_ids(delta: MetadataDelta, record: ProducerIdsRecord) -> None:
    """Set the next producer ids; Kafka's snapshots omit the broker that got the latest block."""
    _producer_ids.put(delta, replace(record, broker_id=-1, broker_epoch=-1))


_producer_ids = OpaqueRecords("producer ids", lambda _: ())
PRODUCER_IDS: Final = _opaque(_producer_ids, {ProducerIdsRecord: _replay_producer_ids})

_acls = OpaqueRecords("acls", lambda record: (record.id,))
ACLS: Final = _opaque(
    _acls,
    {AccessControlEntryRecord: _acls.put, RemoveAccessControlEntryRecord: _acls.remove},
)

_scram = OpaqueRecords("scram credentials", lambda record: (record.mechanism, record.name))
SCRAM_CREDENTIALS: Final = _opaque(
    _scram,
    {UserScramCredentialRecord: _scram.put, RemoveUserScramCredentialRecord: _scram.remove},
)

_tokens = OpaqueRecords("delegation tokens", lambda record: (record.token_id,))
DELEGATION_TOKENS: Final = _opaque(
    _tokens,
    {DelegationTokenRecord: _tokens.put, RemoveDelegationTokenRecord: _tokens.remove},
)

_zk_migration = OpaqueRecords("zk migration", lambda _: ())
ZK_MIGRATION: Final = _opaque(_zk_migration, {ZkMigrationStateRecord: _zk_migration.put})

UNKNOWN: Final = MetadataKind(
    replay={UnknownRecord: replay_unknown}, snapshot=lambda image: iter(image.opaque.unknown)
)
