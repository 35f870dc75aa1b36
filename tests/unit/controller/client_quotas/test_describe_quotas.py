from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.controller.authorization.authorizer import UNLIMITED
from quorate.controller.client_quotas.messages import (
    AlterClientQuotas,
    DescribeClientQuotas,
    DescribeClientQuotasReply,
    DescribedEntity,
    EntityPart,
    MatchType,
    QuotaAlteration,
    QuotaComponent,
    QuotaCursor,
    QuotaValue,
)
from quorate.controller.errors import RefusedError
from quorate.controller.reads import answer_in_slices
from quorate.records.errors import ErrorCode
from tests.unit.controller.client_quotas.conftest import (
    ADDRESS,
    ALL_USERS,
    BOTH,
    CLIENT,
    USER,
    alter,
    put,
)
from tests.unit.controller.conftest import answer

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster

EXACT, DEFAULT, SPECIFIED = MatchType
OTHER = (EntityPart("client-id"), EntityPart("user", "bob"))
# In the order in which they are described.
EVERYBODY = (OTHER, CLIENT, BOTH, ADDRESS, ALL_USERS, USER)


@pytest.fixture
def quotas(cluster: Cluster) -> Cluster:
    """Six entities with a quota each."""
    for entity in reversed(EVERYBODY):
        key = "connection_creation_rate" if entity == ADDRESS else "producer_byte_rate"
        assert cluster.ask(alter(entity, put(key))).entries[0].error is ErrorCode.NONE
    return cluster


def described(cluster: Cluster, request: DescribeClientQuotas) -> DescribeClientQuotasReply:
    reply = answer(cluster.image, request)
    assert isinstance(reply, DescribeClientQuotasReply)
    return reply


def found(cluster: Cluster, *components: QuotaComponent, strict: bool = False) -> list[object]:
    reply = described(cluster, DescribeClientQuotas(components, strict=strict))
    return [entry.entity for entry in reply.entries]


def test_quotas_are_described_by_key_with_the_offset_that_they_reflect(cluster: Cluster) -> None:
    cluster.ask(alter(USER, put(), put("consumer_byte_rate", 5.0)))
    values = (QuotaValue("consumer_byte_rate", 5.0), QuotaValue("producer_byte_rate", 1024.0))
    assert described(cluster, DescribeClientQuotas()) == DescribeClientQuotasReply(
        cluster.image.position.end_offset, (DescribedEntity(USER, values),)
    )


@pytest.mark.parametrize(
    ("components", "entities"),
    [
        ((), EVERYBODY),
        ((QuotaComponent("user", EXACT, "alice"),), (BOTH, USER)),
        ((QuotaComponent("user", DEFAULT),), (ALL_USERS,)),
        ((QuotaComponent("user", SPECIFIED),), (OTHER, BOTH, ALL_USERS, USER)),
        ((QuotaComponent("client-id", SPECIFIED),), (OTHER, CLIENT, BOTH)),
        ((QuotaComponent("client-id", DEFAULT),), (OTHER,)),
        ((QuotaComponent("ip", SPECIFIED),), (ADDRESS,)),
        ((QuotaComponent("ip", EXACT, "10.0.0.2"),), ()),
        (
            (QuotaComponent("user", SPECIFIED), QuotaComponent("client-id", EXACT, "c")),
            (BOTH,),
        ),
    ],
)
def test_entities_match_every_component(
    quotas: Cluster, components: tuple[QuotaComponent, ...], entities: tuple[object, ...]
) -> None:
    assert tuple(found(quotas, *components)) == entities


def test_a_strict_filter_takes_no_entity_with_other_types(quotas: Cluster) -> None:
    assert found(quotas, QuotaComponent("user", EXACT, "alice"), strict=True) == [USER]
    assert found(quotas, QuotaComponent("client-id", SPECIFIED), strict=True) == [CLIENT]
    assert found(quotas, strict=True) == []


@pytest.mark.parametrize(
    ("components", "error", "words"),
    [
        ((QuotaComponent("", SPECIFIED),), ErrorCode.INVALID_REQUEST, "'' is none of user"),
        (
            (QuotaComponent("group", DEFAULT),),
            ErrorCode.UNSUPPORTED_VERSION,
            "'group' is none of user, client-id, ip",
        ),
        (
            (QuotaComponent("user", DEFAULT), QuotaComponent("user", SPECIFIED)),
            ErrorCode.INVALID_REQUEST,
            "names user twice; give one component",
        ),
        (
            (QuotaComponent("user", EXACT),),
            ErrorCode.INVALID_REQUEST,
            "is EXACT and lacks a match; give one where it is EXACT",
        ),
        (
            (QuotaComponent("user", DEFAULT, "a"),),
            ErrorCode.INVALID_REQUEST,
            "is DEFAULT and has a match; give one where it is EXACT, only there",
        ),
        (
            (QuotaComponent("ip", SPECIFIED), QuotaComponent("user", SPECIFIED)),
            ErrorCode.INVALID_REQUEST,
            "An ip is an entity by itself; leave out",
        ),
    ],
)
def test_a_filter_that_is_none_is_refused_with_the_remedy(
    quotas: Cluster, components: tuple[QuotaComponent, ...], error: ErrorCode, words: str
) -> None:
    with pytest.raises(RefusedError, match=words) as refused:
        found(quotas, *components)
    assert refused.value.error is error


def test_a_long_answer_comes_in_pages_that_have_everything_once(quotas: Cluster) -> None:
    request = DescribeClientQuotas(response_entry_limit=4)
    first = described(quotas, request)
    assert [entry.entity for entry in first.entries] == list(EVERYBODY[:4])
    assert first.next_cursor == QuotaCursor(EVERYBODY[4])
    rest = described(quotas, replace(request, cursor=first.next_cursor))
    assert [entry.entity for entry in rest.entries] == list(EVERYBODY[4:])
    assert rest.next_cursor is None


def test_a_page_may_begin_where_nobody_is_any_more(quotas: Cluster) -> None:
    cursor = QuotaCursor((EntityPart("user", "aaron"),))
    reply = described(quotas, DescribeClientQuotas(cursor=cursor, response_entry_limit=9))
    assert [entry.entity for entry in reply.entries] == [USER]


def test_a_part_is_not_given_to_a_client_that_asked_for_the_whole(
    quotas: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.controller.client_quotas.describe_quotas.ENTRIES_PER_PAGE", 5)
    with pytest.raises(RefusedError, match="more than one page of 5; set response_entry_limit"):
        described(quotas, DescribeClientQuotas())
    with pytest.raises(RefusedError, match="response_entry_limit is -1; give 1 or more"):
        described(quotas, DescribeClientQuotas(response_entry_limit=-1))


def test_others_have_turns_while_a_long_answer_is_made(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.controller.client_quotas.describe_quotas.SLICE_ENTRIES", 10)
    entries = tuple(QuotaAlteration((EntityPart("user", str(n)),), (put(),)) for n in range(35))
    cluster.ask(AlterClientQuotas(entries))
    assert sum(1 for _ in answer_in_slices(cluster.image, DescribeClientQuotas(), UNLIMITED)) == 3
