"""Creating many topics: batches, retries, and what counts as there already."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from quorate.cli.topics_apply import (
    BATCH_TOPICS_MAX,
    AppliedTopic,
    apply_topics,
    batches,
    difference,
)
from quorate.client.controller_calls import OutcomeUnknownError
from quorate.controller.topics.messages import (
    CreatedTopic,
    CreateTopics,
    CreateTopicsReply,
    DescribedPartition,
    DescribedTopic,
    DescribeTopics,
    DescribeTopicsReply,
    NewTopic,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset

if TYPE_CHECKING:
    from quorate.client.controller_client import ControllerClient
    from quorate.controller.request_types import ReadRequest, WriteRequest


def present(name: str, *replicas: tuple[int, ...], **configs: str) -> DescribedTopic:
    partitions = tuple(
        DescribedPartition(i, ids[0], 0, 0, ids, ids) for i, ids in enumerate(replicas)
    )
    return DescribedTopic(name, partitions=partitions, configs=tuple(configs.items()))


class FakeQuorum:
    """Keeps topics; the first `lost` answers to creations are lost after they took effect."""

    def __init__(self, *topics: DescribedTopic, lost: int = 0) -> None:
        self.topics = {topic.name: topic for topic in topics}
        self.lost = lost

    async def write(self, request: WriteRequest) -> CreateTopicsReply:
        assert isinstance(request, CreateTopics)
        created = []
        for topic in request.topics:
            if topic.name in self.topics:
                created.append(CreatedTopic(topic.name, ErrorCode.TOPIC_ALREADY_EXISTS, "exists"))
                continue
            ids = tuple(range(topic.replication_factor))
            self.topics[topic.name] = present(
                topic.name, *([ids] * topic.partitions), **dict(topic.configs)
            )
            created.append(CreatedTopic(topic.name))
        if self.lost:
            self.lost -= 1
            raise OutcomeUnknownError("the connection broke")
        return CreateTopicsReply(tuple(created))

    async def read(self, request: ReadRequest, *, current: bool) -> DescribeTopicsReply:
        assert current
        assert isinstance(request, DescribeTopics)
        gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        found = [self.topics.get(n, DescribedTopic(n, gone, "gone")) for n in request.names]
        return DescribeTopicsReply(Offset(1), tuple(found))


async def apply(quorum: FakeQuorum, *topics: NewTopic) -> list[AppliedTopic]:
    applied: list[AppliedTopic] = []
    await apply_topics(cast("ControllerClient", quorum), topics, applied.append)
    return applied


async def test_a_lost_answer_is_asked_for_again_and_equal_topics_are_there() -> None:
    quorum = FakeQuorum(lost=1)
    applied = await apply(quorum, NewTopic("a", 2, 3), NewTopic("b", 1, 1))
    assert applied == [AppliedTopic("a", existed=True), AppliedTopic("b", existed=True)]


async def test_a_new_topic_is_created_and_a_different_one_is_refused() -> None:
    applied = await apply(FakeQuorum(present("b", (1,))), NewTopic("a", 1, 1), NewTopic("b", 2, 1))
    message = "it exists, but it has 1 partitions, not 2; delete it or correct the file"
    assert applied == [
        AppliedTopic("a"),
        AppliedTopic("b", error=ErrorCode.TOPIC_ALREADY_EXISTS, message=message),
    ]


async def test_a_topic_that_may_differ_is_there_as_it_is() -> None:
    applied: list[AppliedTopic] = []
    quorum = cast("ControllerClient", FakeQuorum(present("b", (1,))))
    wanted = [NewTopic("a", 1, 1), NewTopic("b", 2, 1)]
    await apply_topics(quorum, wanted, applied.append, may_differ=True)
    assert applied == [AppliedTopic("a"), AppliedTopic("b", existed=True)]


@pytest.mark.parametrize(
    ("wanted", "differs"),
    [
        (NewTopic("t", 2, 2, (), (("k", "v"),)), None),
        (NewTopic("t", configs=(("k", "v"),)), None),
        (NewTopic("t", assignments=((1, 2), (2, 3)), configs=(("k", "v"),)), None),
        (
            NewTopic("t", assignments=((1, 2),), configs=(("k", "v"),)),
            "its replicas are ((1, 2), (2, 3)), not ((1, 2),)",
        ),
        (NewTopic("t", 3, 2, (), (("k", "v"),)), "it has 2 partitions, not 3"),
        (NewTopic("t", 2, 3, (), (("k", "v"),)), "its replication factor is 2, not 3"),
        (NewTopic("t", 2, 2), "its configs are {'k': 'v'}, not {}"),
    ],
)
def test_topics_are_equal_in_partitions_replicas_and_configs(
    wanted: NewTopic, differs: str | None
) -> None:
    assert difference(wanted, present("t", (1, 2), (2, 3), k="v")) == differs


def test_batches_hold_few_topics_and_few_partitions() -> None:
    small = [NewTopic(f"s{i}", 1, 1) for i in range(BATCH_TOPICS_MAX + 1)]
    large = [NewTopic("x", 700, 1), NewTopic("y", 700, 1)]
    assert [len(batch) for batch in batches([*small, *large])] == [BATCH_TOPICS_MAX, 2, 1]
    assert list(batches([])) == []
