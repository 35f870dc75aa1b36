"""Answers from an image: what the metadata is, as far as that image goes (rule 19).

Any controller can give them, active or not, because they need the committed image only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from quorate.controller.config_table import TOPIC_CONFIGS, is_sensitive
from quorate.controller.configs import ALL_BROKERS, resource_key, resource_problem
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
    DescribeConfigs,
    DescribeTopics,
    ListBrokers,
    Listener,
    ListTopics,
    ReadRequest,
    ResourceType,
)
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.controller.image import Broker, MetadataImage


def answer(image: MetadataImage, request: ReadRequest) -> ReadReply:
    """The reply to a request that changes nothing, with the offset that it reflects."""
    match request:
        case ListTopics():
            return _list_topics(image)
        case DescribeTopics():
            names = request.names or tuple(sorted(image.topic_ids))
            topics = tuple(_describe_topic(image, name) for name in names)
            return DescribeTopicsReply(image.position.end_offset, topics)
        case DescribeConfigs():
            resources = tuple(
                _describe_resource(image, resource, with_defaults=request.include_defaults)
                for resource in request.resources
            )
            return DescribeConfigsReply(image.position.end_offset, resources)
        case ListBrokers():
            brokers = sorted(image.brokers.by_id.items())
            listed = tuple(_listed_broker(broker) for _, broker in brokers)
            return ListBrokersReply(image.position.end_offset, listed)
        case _:
            assert_never(request)


def _list_topics(image: MetadataImage) -> ListTopicsReply:
    topics = tuple(
        ListedTopic(name, topic_id, len(image.topics[topic_id].partitions))
        for name, topic_id in sorted(image.topic_ids.items())
    )
    return ListTopicsReply(image.position.end_offset, topics)


def _describe_topic(image: MetadataImage, name: str) -> DescribedTopic:
    topic = image.topic(name)
    if topic is None:
        message = f"There is no topic {name!r}; check its name."
        return DescribedTopic(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return DescribedTopic(
        name,
        topic_id=topic.topic_id,
        partitions=tuple(
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
            for partition_id, partition in topic.partitions.items()
        ),
        configs=tuple(sorted(image.config((int(ResourceType.TOPIC), name)).items())),
    )


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
