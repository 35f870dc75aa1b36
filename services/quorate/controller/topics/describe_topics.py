"""ListTopics and DescribeTopics, in time slices and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.authorizer import Operation, ResourceKind, topic_resource
from quorate.controller.authorization.request_authorization import authorization_error
from quorate.controller.configs.messages import (
    ResourceType,
)
from quorate.controller.errors import RefusedError
from quorate.controller.pagination import page_limit, reject_multiple_pages, take_in_slices
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

if TYPE_CHECKING:
    from quorate.controller.authorization.authorizer import Rights
    from quorate.controller.image import MetadataImage
    from quorate.controller.slices import Slices

# Number of items per event-loop iteration; the rest is in another slice, or on another page.
SLICE_ITEMS: Final = 100
SLICE_LISTED: Final = 1_000
TOPICS_PER_PAGE: Final = 2_000
PARTITIONS_PER_PAGE: Final = 1_000


def list_topics_in_slices(
    image: MetadataImage, request: ListTopics, rights: Rights
) -> Slices[ListTopicsReply]:
    field = "response_topic_limit"
    limit = page_limit(request.response_topic_limit, TOPICS_PER_PAGE, field=field)
    start = "" if request.cursor is None else request.cursor.topic_name
    names = yield from _describable(image, start, limit + 1, rights)
    following = None
    if len(names) > limit:
        reject_multiple_pages(request.response_topic_limit, limit, field=field)
        following = Cursor(names.pop())
    topics = []
    for name in names:
        topic = image.topics.by_id[image.topics.ids[name]]
        count = image.topics.partitions.count_of(topic.number)
        topics.append(ListedTopic(name, topic.topic_id, count))
        if len(topics) % SLICE_LISTED == 0:
            yield
    return ListTopicsReply(image.position.end_offset, tuple(topics), following)


def describe_topics_in_slices(
    image: MetadataImage, request: DescribeTopics, rights: Rights
) -> Slices[DescribeTopicsReply]:
    field = "response_partition_limit"
    limit = page_limit(request.response_partition_limit, PARTITIONS_PER_PAGE, field=field)
    cursor = request.cursor
    if request.names:
        names = _names_from(request, cursor)
    else:
        start = "" if cursor is None else cursor.topic_name
        names = yield from _describable(image, start, limit + 1, rights)
    topics: list[DescribedTopic] = []
    left = limit
    following = None
    for number, name in enumerate(names):
        is_first = cursor is not None and name == cursor.topic_name
        first = cursor.partition_index if cursor is not None and is_first else 0
        # A topic without partitions takes the space of one.
        if left < 1:
            following = Cursor(name)
            break
        resource = topic_resource(name)
        if rights.may(Operation.DESCRIBE, resource):
            topic, next_partition = yield from _describe_topic(image, name, first, left)
        else:
            refusal = authorization_error(rights, Operation.DESCRIBE, resource)
            topic, next_partition = DescribedTopic(name, refusal.error, refusal.message), None
        topics.append(topic)
        left -= max(1, len(topic.partitions))
        if next_partition is not None:
            following = Cursor(name, next_partition)
            break
        if number % SLICE_ITEMS == SLICE_ITEMS - 1:
            yield
    if following is not None:
        reject_multiple_pages(request.response_partition_limit, limit, field=field)
    return DescribeTopicsReply(image.position.end_offset, tuple(topics), following)


def _describable(image: MetadataImage, start: str, count: int, rights: Rights) -> Slices[list[str]]:
    """The first topics from `start` on that the caller may describe."""
    granted, names = rights.grant(Operation.DESCRIBE, ResourceKind.TOPIC), image.topics.ids
    if granted.is_all:
        return (yield from take_in_slices(names, start, count))
    return (yield from take_in_slices(names, start, count, granted.covers))


def _names_from(request: DescribeTopics, cursor: Cursor | None) -> list[str]:
    names = list(dict.fromkeys(request.names))
    if cursor is None:
        return names
    if cursor.topic_name not in names:
        message = (
            f"The cursor's topic {cursor.topic_name!r} is none of the names; give those again."
        )
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)
    return names[names.index(cursor.topic_name) :]


def _describe_topic(
    image: MetadataImage, name: str, first: int, limit: int
) -> Slices[tuple[DescribedTopic, int | None]]:
    """A topic with its partitions from `first` on, and the next partition if some are left."""
    topic = image.topics.by_name_or_none(name)
    if topic is None:
        message = f"There is no topic {name!r}; check its name."
        return DescribedTopic(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message), None
    partitions: list[DescribedPartition] = []
    following = None
    for partition_id, partition in image.topics.partitions.of_topic(topic.number, first):
        if len(partitions) == limit:
            following = partition_id
            break
        partitions.append(
            DescribedPartition(
                partition=partition_id,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                replicas=partition.replicas,
                isr=partition.isr,
                eligible_leader_replicas=partition.eligible_leader_replicas,
                last_known_elr=partition.last_known_elr,
            )
        )
        if len(partitions) % SLICE_ITEMS == 0:
            yield
    described = DescribedTopic(
        name,
        topic_id=topic.topic_id,
        partitions=tuple(partitions),
        configs=tuple(sorted(image.configs.of((int(ResourceType.TOPIC), name)).items())),
    )
    return described, following
