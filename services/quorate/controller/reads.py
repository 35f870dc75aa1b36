"""Answers from an image: what the metadata is, as far as that image goes (rule 19).

Any controller can give them, active or not, because they need the committed image only. An image
never changes, so a long answer is made in slices with others' turns between them, and in pages.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Final, assert_never

from quorate.controller.config_table import TOPIC_CONFIGS, is_sensitive
from quorate.controller.configs import ALL_BROKERS, resource_key, resource_problem
from quorate.controller.errors import RefusedError
from quorate.controller.replies import (
    ConfigEntry,
    ConfigSource,
    DescribeConfigsReply,
    DescribedPartition,
    DescribedResource,
    DescribedTopic,
    DescribeTopicsReply,
    ListBrokersReply,
    ListedBroker,
    ListedTopic,
    ListTopicsReply,
    ReadReply,
)
from quorate.controller.requests import (
    ConfigResource,
    Cursor,
    DescribeConfigs,
    DescribeTopics,
    ListBrokers,
    Listener,
    ListTopics,
    ReadRequest,
    ResourceType,
)
from quorate.controller.slices import finish
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.controller.image import Broker, MetadataImage
    from quorate.controller.slices import Slices


# A turn of the loop has time for so many; what comes next is another slice, or another page.
SLICE_ITEMS: Final = 100
SLICE_LISTED: Final = 1_000
SLICE_CONFIGS: Final = 20
SCANNED_NAMES: Final = 5_000
TOPICS_PER_PAGE: Final = 2_000
PARTITIONS_PER_PAGE: Final = 1_000


def answer(image: MetadataImage, request: ReadRequest) -> ReadReply:
    """The reply to a request that changes nothing, with the offset that it reflects.

    Raises RefusedError for a cursor that names nothing, and for an answer of several pages to
    somebody who asked for none.
    """
    return finish(answer_in_slices(image, request))


def answer_in_slices(image: MetadataImage, request: ReadRequest) -> Slices[ReadReply]:
    """The same, with pauses."""
    match request:
        case ListTopics():
            return (yield from _list_topics(image, request))
        case DescribeTopics():
            return (yield from _describe_topics(image, request))
        case DescribeConfigs():
            resources = []
            for resource in request.resources:
                resources.append(
                    _describe_resource(image, resource, with_defaults=request.include_defaults)
                )
                if len(resources) % SLICE_CONFIGS == 0:
                    yield
            return DescribeConfigsReply(image.position.end_offset, tuple(resources))
        case ListBrokers():
            listed = []
            for _, broker in sorted(image.brokers.by_id.items()):
                listed.append(_listed_broker(broker))
                if len(listed) % SLICE_ITEMS == 0:
                    yield
            return ListBrokersReply(image.position.end_offset, tuple(listed))
        case _:
            assert_never(request)


def _page(asked: int, limit: int, *, field: str) -> int:
    if asked < 0:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"{field} is {asked}; give 1 or more.")
    return min(asked or limit, limit)


def _refuse_more(asked: int, limit: int, *, field: str) -> None:
    """There is more than a page, and the caller may not know of pages."""
    if not asked:
        message = f"The answer has more than one page of {limit}; set {field} and ask for each."
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)


def _first_names(image: MetadataImage, start: str, count: int) -> Slices[list[str]]:
    """The first names from that one on: to sort them all for each page would take far longer."""
    found: list[str] = []
    for number, name in enumerate(image.topic_ids, 1):
        if name >= start:
            found.append(name)
        if number % SCANNED_NAMES == 0:
            found = nsmallest(count, found)
            yield
    return nsmallest(count, found)


def _list_topics(image: MetadataImage, request: ListTopics) -> Slices[ListTopicsReply]:
    field = "response_topic_limit"
    limit = _page(request.response_topic_limit, TOPICS_PER_PAGE, field=field)
    start = "" if request.cursor is None else request.cursor.topic_name
    names = yield from _first_names(image, start, limit + 1)
    following = None
    if len(names) > limit:
        _refuse_more(request.response_topic_limit, limit, field=field)
        following = Cursor(names.pop())
    topics = []
    for name in names:
        topic = image.topics[image.topic_ids[name]]
        topics.append(ListedTopic(name, topic.topic_id, len(topic.partitions)))
        if len(topics) % SLICE_LISTED == 0:
            yield
    return ListTopicsReply(image.position.end_offset, tuple(topics), following)


def _describe_topics(image: MetadataImage, request: DescribeTopics) -> Slices[DescribeTopicsReply]:
    field = "response_partition_limit"
    limit = _page(request.response_partition_limit, PARTITIONS_PER_PAGE, field=field)
    cursor = request.cursor
    if request.names:
        names = _names_from(request, cursor)
    else:
        start = "" if cursor is None else cursor.topic_name
        names = yield from _first_names(image, start, limit + 1)
    topics: list[DescribedTopic] = []
    left = limit
    following = None
    for number, name in enumerate(names):
        is_first = cursor is not None and name == cursor.topic_name
        first = cursor.partition_index if cursor is not None and is_first else 0
        # A topic without partitions to tell of takes the room of one.
        if left < 1:
            following = Cursor(name)
            break
        topic, next_partition = yield from _describe_topic(image, name, first, left)
        topics.append(topic)
        left -= max(1, len(topic.partitions))
        if next_partition is not None:
            following = Cursor(name, next_partition)
            break
        if number % SLICE_ITEMS == SLICE_ITEMS - 1:
            yield
    if following is not None:
        _refuse_more(request.response_partition_limit, limit, field=field)
    return DescribeTopicsReply(image.position.end_offset, tuple(topics), following)


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
    """A topic with its partitions from `first` on, and where it goes on if those are not all."""
    topic = image.topic(name)
    if topic is None:
        message = f"There is no topic {name!r}; check its name."
        return DescribedTopic(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message), None
    partitions: list[DescribedPartition] = []
    following = None
    for partition_id, partition in topic.partitions.items_from(first):
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
        configs=tuple(sorted(image.config((int(ResourceType.TOPIC), name)).items())),
    )
    return described, following


def _describe_resource(
    image: MetadataImage, resource: ConfigResource, *, with_defaults: bool
) -> DescribedResource:
    problem = resource_problem(image, resource)
    if problem is not None:
        return DescribedResource(resource, *problem)
    entries: dict[str, ConfigEntry] = {}
    if with_defaults and resource.type is ResourceType.TOPIC:
        for name, spec in TOPIC_CONFIGS.items():
            entries[name] = ConfigEntry(name, spec.default, ConfigSource.DEFAULT_CONFIG)
    if with_defaults and resource.type is ResourceType.BROKER:
        for name, value in image.config(ALL_BROKERS).items():
            entries[name] = _entry(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    source = _own_source(resource)
    for name, value in image.config(resource_key(resource)).items():
        entries[name] = _entry(name, value, source)
    return DescribedResource(resource, entries=tuple(entries[name] for name in sorted(entries)))


def _own_source(resource: ConfigResource) -> ConfigSource:
    if resource.type is ResourceType.TOPIC:
        return ConfigSource.DYNAMIC_TOPIC_CONFIG
    if resource.name:
        return ConfigSource.DYNAMIC_BROKER_CONFIG
    return ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG


def _entry(name: str, value: str, source: ConfigSource) -> ConfigEntry:
    if is_sensitive(name):
        return ConfigEntry(name, None, source, is_sensitive=True)
    return ConfigEntry(name, value, source)


def _listed_broker(broker: Broker) -> ListedBroker:
    registration = broker.registration
    return ListedBroker(
        broker_id=registration.broker_id,
        broker_epoch=registration.broker_epoch,
        incarnation_id=registration.incarnation_id,
        listeners=tuple(
            Listener(point.name, point.host, point.port, point.security_protocol)
            for point in registration.end_points
        ),
        rack=registration.rack,
        is_fenced=registration.fenced,
        in_controlled_shutdown=registration.in_controlled_shutdown,
        log_dirs=registration.log_dirs,
    )
