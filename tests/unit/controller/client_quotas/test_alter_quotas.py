from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.controller.client_quotas.messages import (
    AlterClientQuotas,
    AlterClientQuotasReply,
    AlteredEntity,
    EntityPart,
    QuotaAlteration,
    QuotaOp,
)
from quorate.controller.client_quotas.quota_entities import key_of
from quorate.controller.request_types import RECORDS_MAX
from quorate.controller.slices import run_to_end
from quorate.records.errors import ErrorCode
from quorate.records.metadata import ClientQuotaRecord, EntityData
from tests.unit.controller.client_quotas.conftest import ADDRESS, BOTH, USER, alter, drop, put
from tests.unit.controller.conftest import CALLER, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable


def record(key: str, value: float, *, remove: bool = False) -> ClientQuotaRecord:
    entity = (EntityData(entity_type="user", entity_name="alice"),)
    return ClientQuotaRecord(entity=entity, key=key, value=value, remove=remove)


def refusal(cluster: Cluster, request: AlterClientQuotas) -> tuple[ErrorCode, str]:
    before = cluster.image
    (entry,) = cluster.ask(request).entries
    assert cluster.image == before
    return entry.error, entry.message


def test_only_quotas_that_change_are_written(cluster: Cluster) -> None:
    first = cluster.records(alter(USER, put(), put("request_percentage", 12.5)))
    assert first == (record("producer_byte_rate", 1024.0), record("request_percentage", 12.5))
    request = alter(USER, put(), drop("request_percentage"), drop("consumer_byte_rate"))
    assert cluster.records(request) == (record("request_percentage", 0.0, remove=True),)
    assert dict(cluster.image.client_quotas.of(key_of(USER))) == {"producer_byte_rate": 1024.0}


def test_an_entity_without_any_quota_left_is_gone(cluster: Cluster) -> None:
    cluster.ask(alter(USER, put()))
    cluster.ask(alter(USER, drop()))
    assert not cluster.image.client_quotas.by_owner


def test_what_an_entity_is_does_not_depend_on_the_order_of_its_parts(cluster: Cluster) -> None:
    cluster.ask(alter(BOTH, put()))
    assert cluster.records(alter(tuple(reversed(BOTH)), put())) == ()


def test_a_quota_that_is_not_known_any_more_can_be_removed(cluster: Cluster) -> None:
    assert cluster.ask(alter(USER, drop("once_known"))).entries[0].error is ErrorCode.NONE
    assert refusal(cluster, alter(USER, put("once_known")))[0] is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (alter((), put()), "The entity has no part"),
        (alter((EntityPart("ip", "nowhere"),), put()), "'nowhere' is no address"),
        (alter(USER, put(), put(value=0.0)), "'producer_byte_rate' occurs twice; change it once"),
        (alter(USER, put(), drop()), "'producer_byte_rate' occurs twice; change it once"),
        (alter(USER, put(value=0.5)), "is 0.5; give a whole number"),
        (alter(ADDRESS, put()), "There is no quota 'producer_byte_rate' for this entity"),
        (alter(USER, put(), put("bandwidth")), "There is no quota 'bandwidth' for this entity"),
    ],
)
def test_a_change_that_is_wrong_changes_nothing_of_its_entity(
    cluster: Cluster, request_: AlterClientQuotas, words: str
) -> None:
    error, message = refusal(cluster, request_)
    assert error is ErrorCode.INVALID_REQUEST
    assert words in message


@pytest.mark.rule("input_bounds")
def test_a_name_that_no_record_can_hold_is_refused(cluster: Cluster) -> None:
    error, message = refusal(cluster, alter((EntityPart("user", "x" * 70_000),), put()))
    assert error is ErrorCode.INVALID_REQUEST
    assert "entity_name" in message


def test_entities_succeed_and_fail_one_by_one(cluster: Cluster) -> None:
    entries = (
        QuotaAlteration(USER, (put(),)),
        QuotaAlteration((), (put(),)),
        QuotaAlteration(BOTH, (put(),)),
        QuotaAlteration(tuple(reversed(BOTH)), (put(),)),
    )
    reply = cluster.ask(AlterClientQuotas(entries))
    assert [entry.entity for entry in reply.entries] == [entry.entity for entry in entries]
    assert [entry.error.name for entry in reply.entries] == ["NONE", *["INVALID_REQUEST"] * 3]
    assert reply.entries[2].message == "The entity occurs twice in the request; name it once."
    assert list(cluster.image.client_quotas.by_owner) == [key_of(USER)]


def test_what_does_not_fit_into_one_batch_is_to_be_split(cluster: Cluster) -> None:
    keys = ("producer_byte_rate", "consumer_byte_rate")
    entries = tuple(
        QuotaAlteration((EntityPart("user", str(number)),), tuple(QuotaOp(k, 1.0) for k in keys))
        for number in range(RECORDS_MAX // 2 + 1)
    )
    decision = cluster.decide(AlterClientQuotas(entries))
    assert len(decision.records) == RECORDS_MAX
    assert isinstance(decision.reply, AlterClientQuotasReply)
    last = decision.reply.entries[-1]
    assert last.error is ErrorCode.POLICY_VIOLATION
    assert "split the request" in last.message


def test_validation_answers_as_the_change_would_and_writes_nothing(cluster: Cluster) -> None:
    entries = (QuotaAlteration(USER, (put(),)),)
    decision = cluster.decide(AlterClientQuotas(entries, validate_only=True))
    assert decision.records == ()
    assert decision.reply == AlterClientQuotasReply((AlteredEntity(USER),))
    entries = (QuotaAlteration(USER, (put(value=-1.0),)),)
    assert refusal(cluster, AlterClientQuotas(entries, validate_only=True))[0] is (
        ErrorCode.INVALID_REQUEST
    )


def test_others_have_turns_between_two_entities(cluster: Cluster) -> None:
    entries = tuple(QuotaAlteration((EntityPart("user", str(n)),), (put(),)) for n in range(5))
    slices = cluster.controller.decide_in_slices(AlterClientQuotas(entries), CALLER, 0)
    assert sum(1 for _ in slices) == 4


def test_changes_of_one_batch_see_each_other(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(gathers=True)
    first = cluster.controller.decide(alter(USER, put()), CALLER, 0)
    again = run_to_end(cluster.controller.decide_in_slices(alter(USER, put()), CALLER, 0))
    assert (len(first.records), len(again.records)) == (1, 0)
    cluster.controller.end_batch(again.end_offset)
    cluster.commit(again)
    assert cluster.image.client_quotas.of(key_of(USER))
