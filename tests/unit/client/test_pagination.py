from __future__ import annotations

from quorate.client.pagination import LIMIT, NAMES_MAX, first_pages, joined, next_page
from quorate.controller.brokers.messages import ListBrokers, ListBrokersReply
from quorate.controller.client_quotas.messages import (
    DescribeClientQuotas,
    DescribeClientQuotasReply,
    DescribedEntity,
    EntityPart,
    QuotaCursor,
    QuotaValue,
)
from quorate.controller.topics.messages import (
    Cursor,
    DescribedPartition,
    DescribedTopic,
    DescribeTopics,
    DescribeTopicsReply,
    ListedTopic,
    ListTopics,
    ListTopicsReply,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import UUID_BYTES, Offset, TopicId

OLD, NEW = (TopicId(letter * UUID_BYTES) for letter in (b"o", b"n"))


def topic(name: str, *partitions: int, topic_id: TopicId = OLD) -> DescribedTopic:
    described = tuple(DescribedPartition(number, 1, 0, 0, (1,), (1,)) for number in partitions)
    return DescribedTopic(name, topic_id=topic_id, partitions=described)


def page(
    *topics: DescribedTopic, offset: int = 5, following: Cursor | None = None
) -> DescribeTopicsReply:
    return DescribeTopicsReply(Offset(offset), topics, following)


def test_pages_are_asked_for_until_there_is_none() -> None:
    (first,) = first_pages(ListTopics())
    assert first == ListTopics(None, LIMIT)
    reply = ListTopicsReply(Offset(5), (ListedTopic("a", OLD, 1),), Cursor("b"))
    assert next_page(first, reply) == ListTopics(Cursor("b"), LIMIT)
    rest = ListTopicsReply(Offset(7), (ListedTopic("b", OLD, 1),))
    whole = joined(first, reply, rest)
    assert whole == ListTopicsReply(Offset(5), reply.topics + rest.topics)
    assert next_page(first, whole) is None


def test_entries_of_several_pages_are_one_list() -> None:
    users = [(EntityPart("user", name),) for name in "abc"]
    entries = [DescribedEntity(user, (QuotaValue("producer_byte_rate", 1.0),)) for user in users]
    (first,) = first_pages(DescribeClientQuotas(strict=True))
    assert first == DescribeClientQuotas(strict=True, response_entry_limit=LIMIT)
    reply = DescribeClientQuotasReply(Offset(5), tuple(entries[:2]), QuotaCursor(users[2]))
    following = next_page(first, reply)
    assert following == DescribeClientQuotas((), True, QuotaCursor(users[2]), LIMIT)  # noqa: FBT003
    rest = DescribeClientQuotasReply(Offset(6), tuple(entries[2:]))
    whole = joined(first, reply, rest)
    assert whole == DescribeClientQuotasReply(Offset(5), tuple(entries))
    assert next_page(first, whole) is None


def test_a_long_list_of_names_is_asked_for_in_parts() -> None:
    names = tuple(f"t{number}" for number in range(NAMES_MAX + 1))
    parts = list(first_pages(DescribeTopics(names)))
    assert parts == [
        DescribeTopics(names[:NAMES_MAX], None, LIMIT),
        DescribeTopics(names[NAMES_MAX:], None, LIMIT),
    ]
    whole = joined(DescribeTopics(), page(topic("a", 0)), page(topic("b", 0)))
    assert whole == page(topic("a", 0), topic("b", 0))


def test_what_has_one_page_is_asked_for_as_it_is() -> None:
    assert list(first_pages(ListBrokers())) == [ListBrokers()]
    assert next_page(ListBrokers(), ListBrokersReply(Offset(1), ())) is None


def test_a_topic_of_two_pages_is_one() -> None:
    before = page(topic("a", 0), topic("b", 0, 1), following=Cursor("b", 2))
    after = page(topic("b", 2), topic("c", 0), offset=9)
    assert joined(DescribeTopics(), before, after) == page(
        topic("a", 0), topic("b", 0, 1, 2), topic("c", 0)
    )


def test_a_topic_that_was_deleted_meanwhile_is_not_told_of_by_half() -> None:
    before = page(topic("a", 0), topic("b", 0, 1), following=Cursor("b", 2))
    assert joined(DescribeTopics(), before, page(topic("c", 0))) == page(
        topic("a", 0), topic("c", 0)
    )
    gone = DescribedTopic("b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no topic 'b'.")
    assert joined(DescribeTopics(), before, page(gone)) == page(topic("a", 0), gone)


def test_another_topic_of_the_name_is_read_from_its_beginning() -> None:
    before = page(topic("a", 0), topic("b", 0, 1), following=Cursor("b", 2))
    whole = joined(DescribeTopics(), before, page(topic("b", 2, topic_id=NEW)))
    assert whole == page(topic("a", 0), following=Cursor("b"))
