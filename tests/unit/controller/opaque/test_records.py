from __future__ import annotations

import pytest

from quorate.controller.errors import UnsupportedMetadataVersionError
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from quorate.controller.replay import replay_record
from quorate.controller.snapshot import snapshot_records
from quorate.records.ids import Offset
from quorate.records.metadata import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    MetadataRecord,
    ProducerIdsRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UnknownRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)

ID = b"i" * 16
TICKET = "t"


def acl(host: str = "*", id_: bytes = ID) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=id_,
        resource_type=2,
        resource_name="a",
        pattern_type=3,
        principal="User:a",
        host=host,
        operation=3,
        permission_type=3,
    )


def scram(iterations: int = 4096, mechanism: int = 1) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name="bob",
        mechanism=mechanism,
        salt=b"s",
        stored_key=b"k",
        server_key=b"v",
        iterations=iterations,
    )


def token(max_timestamp: int = 5) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner="User:a",
        requester="User:a",
        renewers=(),
        issue_timestamp=1,
        max_timestamp=max_timestamp,
        expiration_timestamp=3,
        token_id=TICKET,
    )


def controller(controller_id: int, incarnation: bytes = ID) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller_id, incarnation_id=incarnation, end_points=(), features=()
    )


def producer_ids(next_producer_id: int, broker_id: int = -1) -> ProducerIdsRecord:
    return ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker_id, next_producer_id=next_producer_id
    )


def image_of(*records: MetadataRecord) -> MetadataImage:
    delta = MetadataDelta(MetadataImage())
    for record in records:
        replay_record(delta, record, Offset(0))
    return delta.apply(LOG_BEGIN)


def rows(*records: MetadataRecord) -> list[MetadataRecord]:
    image = image_of(*records)
    return [record for record in snapshot_records(image) if record is not None]


@pytest.mark.rule("lossless_replay")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (acl("old"), acl("new")),
        (scram(1), scram(2)),
        (token(1), token(2)),
        (controller(1), controller(1, b"n" * 16)),
        (producer_ids(1), producer_ids(2)),
        (
            ZkMigrationStateRecord(zk_migration_state=1),
            ZkMigrationStateRecord(zk_migration_state=3),
        ),
    ],
)
def test_the_newest_record_of_a_key_is_kept(old: MetadataRecord, new: MetadataRecord) -> None:
    assert rows(old, new) == [new]


@pytest.mark.parametrize(
    ("record", "removal"),
    [
        (acl(), RemoveAccessControlEntryRecord(id=ID)),
        (scram(), RemoveUserScramCredentialRecord(name="bob", mechanism=1)),
        (token(), RemoveDelegationTokenRecord(token_id=TICKET)),
    ],
)
def test_a_removal_removes_and_may_come_twice(
    record: MetadataRecord, removal: MetadataRecord
) -> None:
    assert rows(record, removal, removal) == []


def test_rows_with_other_keys_stay() -> None:
    others: list[MetadataRecord] = [
        controller(1),
        controller(2),
        acl(),
        acl(id_=b"j" * 16),
        scram(),
        scram(mechanism=2),
    ]
    assert rows(*reversed(others)) == others


def test_who_got_producer_ids_is_no_state() -> None:
    assert rows(producer_ids(2000, broker_id=7)) == [producer_ids(2000)]


@pytest.mark.rule("lossless_replay")
def test_records_of_unknown_types_are_all_kept_in_order() -> None:
    unknown = [UnknownRecord(99, 0, b"b"), UnknownRecord(98, 1, b"a"), UnknownRecord(99, 0, b"b")]
    assert image_of(*unknown).opaque.unknown == tuple(unknown)


def test_a_known_type_in_an_unknown_version_is_refused() -> None:
    with pytest.raises(
        UnsupportedMetadataVersionError,
        match="UnknownRecord at offset 0: PartitionRecord of version 9 is newer than this release",
    ):
        image_of(UnknownRecord(3, 9, b""))
