from __future__ import annotations

import pytest

from quorate.controller.client_quotas.quota_entities import key_of
from quorate.controller.client_quotas.records import (
    all_quota_records,
    quota_records,
    replay_quota,
)
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from quorate.records.metadata import ClientQuotaRecord, EntityData
from tests.unit.controller.client_quotas.conftest import ADDRESS, ALL_USERS, BOTH, CLIENT, USER


def quota(
    value: float = 1.0, *parts: tuple[str, str | None], key: str = "k", remove: bool = False
) -> ClientQuotaRecord:
    return ClientQuotaRecord(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in parts),
        key=key,
        value=value,
        remove=remove,
    )


def replayed(*records: ClientQuotaRecord) -> list[ClientQuotaRecord]:
    """The records of a snapshot after these."""
    delta = MetadataDelta(MetadataImage())
    for record in records:
        replay_quota(delta, record)
    found = all_quota_records(delta.apply(LOG_BEGIN))
    return [record for record in found if record is not None]


def test_the_newest_record_of_a_quota_is_kept() -> None:
    entity = ("user", "a")
    assert replayed(quota(1.0, entity), quota(2.0, entity)) == [quota(2.0, entity)]


def test_a_removal_removes_and_may_come_twice() -> None:
    removal = quota(0.0, ("user", "a"), remove=True)
    assert replayed(quota(1.0, ("user", "a")), removal, removal) == []


def test_an_entity_is_the_same_in_any_order_of_its_parts() -> None:
    user, client = ("user", "a"), ("client-id", "c")
    assert replayed(quota(1.0, user, client), quota(2.0, client, user)) == [
        quota(2.0, client, user)
    ]


@pytest.mark.rule("lossless_replay")
def test_what_a_log_has_is_kept_whatever_our_rules_are() -> None:
    strange = [
        quota(-1.0, ("group", "g"), key="bandwidth"),
        quota(1.0, ("ip", "nowhere"), ("user", "")),
    ]
    assert replayed(*strange) == strange


@pytest.mark.parametrize("entity", [USER, ALL_USERS, CLIENT, BOTH, ADDRESS])
def test_records_say_what_they_are_made_for(entity: tuple[object, ...]) -> None:
    key = key_of(entity)  # type: ignore[arg-type]
    records = quota_records(key, [("a", 1.0), ("b", None)])
    assert [(record.key, record.value, record.remove) for record in records] == [
        ("a", 1.0, False),
        ("b", 0.0, True),
    ]
    delta = MetadataDelta(MetadataImage())
    for record in records:
        replay_quota(delta, record)
    assert dict(delta.client_quotas.of(key)) == {"a": 1.0}


def test_a_snapshot_has_entities_and_keys_in_order() -> None:
    records = [
        quota(1.0, ("client-id", None)),
        quota(1.0, ("client-id", "b"), key="a"),
        quota(1.0, ("client-id", "b"), key="b"),
        quota(1.0, ("client-id", "b"), ("user", "a")),
        quota(1.0, ("user", "a")),
    ]
    assert replayed(*reversed(records)) == records
