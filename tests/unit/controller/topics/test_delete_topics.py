from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.request_types import RECORDS_MAX
from quorate.controller.topics.messages import (
    DeletedTopic,
    DeleteTopics,
    DeleteTopicsReply,
    NewTopic,
)
from quorate.records.errors import ErrorCode
from quorate.records.metadata import (
    RemoveTopicRecord,
)
from tests.unit.controller.topics.test_create_topics import create

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


def test_deleting_takes_partitions_configs_and_name_along(cluster: Cluster) -> None:
    empty = cluster.image
    topic_id = cluster.create("a.b", (1,), (2,), configs=(("retention.ms", "1"),))
    decision = cluster.decide(DeleteTopics(("a.b",)))
    assert decision.records == (RemoveTopicRecord(topic_id=topic_id),)
    assert decision.reply == DeleteTopicsReply((DeletedTopic("a.b", topic_id=topic_id),))
    assert cluster.image == empty.at(cluster.image.position)
    cluster.create("a_b", (1,))


def test_deletions_succeed_and_fail_one_by_one(cluster: Cluster) -> None:
    topic_id = cluster.create("a", (1,))
    cluster.create("b", (1,))
    assert cluster.ask(DeleteTopics(("b", "a", "c", "b"))).topics == (
        DeletedTopic(
            "b",
            ErrorCode.INVALID_REQUEST,
            "The topic 'b' occurs twice in the request; name it once.",
        ),
        DeletedTopic("a", topic_id=topic_id),
        DeletedTopic(
            "c",
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "There is no topic 'c'; check its name.",
        ),
        DeletedTopic(
            "b",
            ErrorCode.INVALID_REQUEST,
            "The topic 'b' occurs twice in the request; name it once.",
        ),
    )
    assert sorted(cluster.image.topics.ids) == ["b"]


def test_more_deletions_than_a_batch_holds_are_to_be_split(cluster: Cluster) -> None:
    names = [f"t{number}" for number in range(RECORDS_MAX + 1)]
    for part in (names[:5000], names[5000:]):
        for start in range(0, len(part), 4000):
            topics = (NewTopic(name, 1, 1) for name in part[start : start + 4000])
            cluster.ask(create(*topics))
    results = cluster.ask(DeleteTopics(tuple(names))).topics
    assert [result.error for result in results[:-1]] == [ErrorCode.NONE] * RECORDS_MAX
    assert results[-1].error is ErrorCode.POLICY_VIOLATION
    assert list(cluster.image.topics.ids) == names[-1:]
