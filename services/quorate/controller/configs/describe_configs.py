"""DescribeConfigs: what is set, and the defaults that apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.authorizer import Operation
from quorate.controller.authorization.request_authorization import authorization_error
from quorate.controller.configs.config_definitions import TOPIC_CONFIGS, is_sensitive
from quorate.controller.configs.config_resources import ALL_BROKERS, resource_key, resource_problem
from quorate.controller.configs.messages import (
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    DescribeConfigs,
    DescribeConfigsReply,
    DescribedResource,
    ResourceType,
    config_owner,
)

if TYPE_CHECKING:
    from quorate.controller.authorization.authorizer import Rights
    from quorate.controller.image import MetadataImage
    from quorate.controller.slices import Slices

SLICE_CONFIGS: Final = 20


def describe_configs_in_slices(
    image: MetadataImage, request: DescribeConfigs, rights: Rights
) -> Slices[DescribeConfigsReply]:
    """The configs set on each of these resources, and with `include_defaults` the defaults."""
    resources = []
    for resource in request.resources:
        owner = config_owner(resource)
        if rights.may(Operation.DESCRIBE_CONFIGS, owner):
            described = _describe_resource(image, resource, with_defaults=request.include_defaults)
        else:
            refusal = authorization_error(rights, Operation.DESCRIBE_CONFIGS, owner)
            described = DescribedResource(resource, refusal.error, refusal.message)
        resources.append(described)
        if len(resources) % SLICE_CONFIGS == 0:
            yield
    return DescribeConfigsReply(image.position.end_offset, tuple(resources))


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
        for name, value in image.configs.of(ALL_BROKERS).items():
            entries[name] = _entry(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    source = _own_source(resource)
    for name, value in image.configs.of(resource_key(resource)).items():
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
