"""Subjects that are not built yet: what Kafka's controllers write of them is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quorate.controller.opaque.records import (
    ACL_ROWS,
    CONTROLLER_ROWS,
    PRODUCER_ID_ROWS,
    QUOTA_ROWS,
    SCRAM_ROWS,
    TOKEN_ROWS,
    ZK_ROWS,
    replay_producer_ids,
    replay_quota,
    replay_unknown,
)
from quorate.controller.subject import Subject
from quorate.records.metadata import (
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
    from collections.abc import Iterable, Mapping

    from immutables import Map

    from quorate.controller.image import MetadataImage
    from quorate.controller.opaque.records import Group
    from quorate.controller.subject import Replay


def _opaque(group: Group, replay: Mapping[type, Replay]) -> Subject:
    def large(image: MetadataImage) -> Iterable[Map[Any, Any]]:
        return (image.opaque.group(group.name),)

    return Subject(replay=replay, snapshot=group.records, large=large)


CONTROLLERS: Final = _opaque(CONTROLLER_ROWS, {RegisterControllerRecord: CONTROLLER_ROWS.put})
CLIENT_QUOTAS: Final = _opaque(QUOTA_ROWS, {ClientQuotaRecord: replay_quota})
PRODUCER_IDS: Final = _opaque(PRODUCER_ID_ROWS, {ProducerIdsRecord: replay_producer_ids})
ACLS: Final = _opaque(
    ACL_ROWS,
    {
        AccessControlEntryRecord: ACL_ROWS.put,
        RemoveAccessControlEntryRecord: ACL_ROWS.remove,
    },
)
SCRAM_CREDENTIALS: Final = _opaque(
    SCRAM_ROWS,
    {
        UserScramCredentialRecord: SCRAM_ROWS.put,
        RemoveUserScramCredentialRecord: SCRAM_ROWS.remove,
    },
)
DELEGATION_TOKENS: Final = _opaque(
    TOKEN_ROWS,
    {
        DelegationTokenRecord: TOKEN_ROWS.put,
        RemoveDelegationTokenRecord: TOKEN_ROWS.remove,
    },
)
ZK_MIGRATION: Final = _opaque(ZK_ROWS, {ZkMigrationStateRecord: ZK_ROWS.put})
UNKNOWN: Final = Subject(
    replay={UnknownRecord: replay_unknown}, snapshot=lambda image: iter(image.opaque.unknown)
)
