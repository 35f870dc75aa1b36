from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.controller.errors import RefusedError
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
from tests.unit.controller.conftest import answer

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


def test_topics_are_listed_by_name_with_the_offset_that_the_list_reflects(
    cluster: Cluster,
) -> None:
    second = cluster.create("b", (1,))
    first = cluster.create("a", (1,), (2,))
    assert answer(cluster.image, ListTopics()) == ListTopicsReply(
        cluster.image.position.end_offset, (ListedTopic("a", first, 2), ListedTopic("b", second, 1))
    )


def test_a_description_has_partitions_and_what_is_set(cluster: Cluster) -> None:
    topic_id = cluster.create(
        "a", (1, 2), (2, 1), configs=(("segment.ms", "1"), ("retention.ms", "2"))
    )
    cluster.ask(cluster.heartbeat(2, want_fence=True))
    described = DescribedTopic(
        "a",
        topic_id=topic_id,
        partitions=(
            DescribedPartition(0, 1, 0, 1, (1, 2), (1,)),
            DescribedPartition(1, 1, 1, 1, (2, 1), (1,)),
        ),
        configs=(("retention.ms", "2"), ("segment.ms", "1")),
    )
    reply = answer(cluster.image, DescribeTopics(("none", "a")))
    assert reply == DescribeTopicsReply(
        cluster.image.position.end_offset,
        (
            DescribedTopic(
                "none",
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "There is no topic 'none'; check its name.",
            ),
            described,
        ),
    )


def test_without_names_every_topic_is_described_in_order(cluster: Cluster) -> None:
    for name in ("b", "a", "c"):
        cluster.create(name, (1,))
    reply = answer(cluster.image, DescribeTopics())
    assert isinstance(reply, DescribeTopicsReply)
    assert [topic.name for topic in reply.topics] == ["a", "b", "c"]


def test_a_long_answer_comes_in_pages_that_have_everything_once(cluster: Cluster) -> None:
    for number in range(7):
        cluster.create(f"t{number}", (1,), (2,), (1,))
    seen: list[tuple[str, int]] = []
    request = DescribeTopics(response_partition_limit=2)
    while True:
        reply = answer(cluster.image, request)
        assert isinstance(reply, DescribeTopicsReply)
        page = [(topic.name, p.partition) for topic in reply.topics for p in topic.partitions]
        assert len(page) <= 2
        seen += page
        if reply.next_cursor is None:
            break
        request = replace(request, cursor=reply.next_cursor)
    assert seen == [(f"t{number}", partition) for number in range(7) for partition in range(3)]


def test_named_topics_come_in_pages_in_the_order_asked_each_once(cluster: Cluster) -> None:
    for name in ("a", "b"):
        cluster.create(name, (1,))
    request = DescribeTopics(("b", "x", "b", "a"), response_partition_limit=1)
    names = []
    while True:
        reply = answer(cluster.image, request)
        assert isinstance(reply, DescribeTopicsReply)
        names += [topic.name for topic in reply.topics]
        cursor = reply.next_cursor
        if cursor is None:
            break
        request = replace(request, cursor=cursor)
    assert names == ["b", "x", "a"]


def test_a_list_comes_in_pages(cluster: Cluster) -> None:
    for name in ("c", "a", "b"):
        cluster.create(name, (1,))
    first = answer(cluster.image, ListTopics(response_topic_limit=2))
    assert isinstance(first, ListTopicsReply)
    assert ([topic.name for topic in first.topics], first.next_cursor) == (["a", "b"], Cursor("c"))
    rest = answer(cluster.image, ListTopics(first.next_cursor, 2))
    assert isinstance(rest, ListTopicsReply)
    assert ([topic.name for topic in rest.topics], rest.next_cursor) == (["c"], None)


def test_a_part_is_not_given_to_whoever_asked_for_the_whole(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.controller.topics.describe_topics.PARTITIONS_PER_PAGE", 2)
    monkeypatch.setattr("quorate.controller.topics.describe_topics.TOPICS_PER_PAGE", 2)
    for name in ("c", "a", "b"):
        cluster.create(name, (1,))
    with pytest.raises(RefusedError, match="more than one page of 2; set response_partition_limit"):
        answer(cluster.image, DescribeTopics())
    with pytest.raises(RefusedError, match="more than one page of 2; set response_topic_limit"):
        answer(cluster.image, ListTopics())


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (DescribeTopics(("a",), Cursor("b"), 1), "The cursor's topic 'b' is none of the names"),
        (DescribeTopics(response_partition_limit=-1), "response_partition_limit is -1; give 1"),
        (ListTopics(response_topic_limit=-1), "response_topic_limit is -1; give 1 or more"),
    ],
)
def test_a_page_that_is_none_is_refused(
    cluster: Cluster, request_: DescribeTopics | ListTopics, words: str
) -> None:
    with pytest.raises(RefusedError, match=words):
        answer(cluster.image, request_)
