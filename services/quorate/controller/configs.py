"""Configurations: incremental changes (KIP-339), and what a value set on a topic means.

Topics take the names of the table only; brokers take any well-formed name, because their release
decides. The checks happen here, never in replay: what is in the log is kept as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from quorate.controller.config_table import BROKER_LISTS, TOPIC_CONFIGS, ConfigSpec, list_items
from quorate.controller.decision import Outcome, Proposal, too_large
from quorate.controller.errors import RefusedError
from quorate.controller.features import metadata_version
from quorate.controller.replies import AlteredResource, IncrementalAlterConfigsReply
from quorate.controller.requests import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.records.errors import ErrorCode
from quorate.records.metadata import ConfigRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from quorate.controller.delta import MetadataDelta
    from quorate.controller.image import ConfigKey, View
    from quorate.controller.slices import Slices

ALL_BROKERS: Final = (int(ResourceType.BROKER), "")
_UNCLEAN: Final = "unclean.leader.election.enable"
# Of a name that is none, enough to be recognised.
_SHOWN_MAX: Final = 32
_BROKER_ID = re.compile(r"0|[1-9][0-9]{0,9}")
_BROKER_CONFIG = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def resource_key(resource: ConfigResource) -> ConfigKey:
    """The key of a resource in the image."""
    return (int(resource.type), resource.name)


def resource_problem(image: View, resource: ConfigResource) -> tuple[ErrorCode, str] | None:
    """Why a resource has no configurations here, or None when it has."""
    if resource.type is ResourceType.TOPIC:
        if resource.name in image.topic_ids:
            return None
        message = f"There is no topic {resource.name!r}; create it first."
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message
    if resource.type is not ResourceType.BROKER:
        message = (
            f"Configurations of {resource.type.name} are not kept here; name a topic or a broker."
        )
        return ErrorCode.INVALID_REQUEST, message
    if not resource.name:
        return None
    if not _BROKER_ID.fullmatch(resource.name):
        shown = resource.name[:_SHOWN_MAX]
        message = f"The broker {shown!r} is not an id; give its number, or '' for all brokers."
        return ErrorCode.INVALID_REQUEST, message
    if int(resource.name) not in image.brokers.by_id:
        message = f"No broker is registered with the id {resource.name}; register it first."
        return ErrorCode.BROKER_ID_NOT_REGISTERED, message
    return None


def topic_config_problem(entries: Iterable[tuple[str, str]]) -> str | None:
    """What is wrong with configurations of a topic, naming the key; None when all are fine."""
    for name, value in entries:
        spec = TOPIC_CONFIGS.get(name)
        if spec is None:
            return f"There is no topic configuration {name!r}; check its spelling."
        problem = spec.problem(value)
        if problem is not None:
            return f"The value {value!r} of {name} is invalid; it must be {problem}."
    return None


def allows_unclean_election(image: View, topic: str) -> bool:
    """Whether a replica out of sync may lead a partition of the topic when no other can."""
    own = image.config((int(ResourceType.TOPIC), topic)).get(_UNCLEAN)
    value = image.config(ALL_BROKERS).get(_UNCLEAN, "false") if own is None else own
    return value.lower() == "true"


def config_records(key: ConfigKey, entries: Iterable[tuple[str, str | None]]) -> list[ConfigRecord]:
    """A record for each key to set, or to remove where the value is None."""
    resource_type, resource_name = key
    return [
        ConfigRecord(
            resource_type=resource_type, resource_name=resource_name, name=name, value=value
        )
        for name, value in entries
    ]


def alter_configs_in_slices(image: View, request: IncrementalAlterConfigs) -> Slices[Outcome]:
    """Change resources one by one; of each all keys change, or none."""
    level = metadata_version(image.features)
    proposal = Proposal(level)
    repeated = _repeated(request.alterations)
    results: list[AlteredResource] = []
    for index, alteration in enumerate(request.alterations):
        if index:
            yield
        resource = alteration.resource
        try:
            _propose(proposal, image, alteration, is_repeated=resource in repeated)
        except RefusedError as refused:
            results.append(AlteredResource(resource, refused.error, refused.message))
        else:
            results.append(AlteredResource(resource))
    reply = IncrementalAlterConfigsReply(tuple(results))
    return Outcome(Proposal(level) if request.validate_only else proposal, reply)


def _repeated(alterations: Sequence[ConfigAlteration]) -> set[ConfigResource]:
    if len(alterations) == 1:
        return set()
    counts = Counter(alteration.resource for alteration in alterations)
    return {resource for resource, count in counts.items() if count > 1}


def _propose(
    proposal: Proposal, image: View, alteration: ConfigAlteration, *, is_repeated: bool
) -> None:
    """Propose the records of one resource. Raises RefusedError."""
    resource = alteration.resource
    what = f"{resource.type.name} {resource.name!r}"
    if is_repeated:
        message = f"{what} occurs twice in the request; name it once."
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)
    problem = resource_problem(image, resource)
    if problem is not None:
        raise RefusedError(*problem)
    if not proposal.add(_records(image, alteration)):
        raise RefusedError(ErrorCode.POLICY_VIOLATION, too_large(f"The change of {what}"))


def _records(image: View, alteration: ConfigAlteration) -> list[ConfigRecord]:
    key = resource_key(alteration.resource)
    before = image.config(key)
    after: dict[str, str | None] = {}
    for change in alteration.changes:
        if change.name in after:
            message = f"The key {change.name!r} occurs twice; change it once."
            raise RefusedError(ErrorCode.INVALID_REQUEST, message)
        after[change.name] = _changed(alteration.resource.type, change, before)
    wanted = [(name, value) for name, value in after.items() if value is not None]
    if alteration.resource.type is ResourceType.TOPIC:
        problem = topic_config_problem(wanted)
    else:
        problem = _broker_config_problem(wanted)
    if problem is not None:
        raise RefusedError(ErrorCode.INVALID_CONFIG, problem)
    changes = [(name, value) for name, value in after.items() if value != before.get(name)]
    return config_records(key, changes)


def _changed(
    resource_type: ResourceType, change: ConfigChange, before: Mapping[str, str]
) -> str | None:
    """The value of a key after one change; None when it is removed."""
    if change.operation is AlterOperation.DELETE:
        return None
    if change.value is None:
        message = (
            f"{change.operation.name} of {change.name!r} needs a value; give one or DELETE it."
        )
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)
    if change.operation is AlterOperation.SET:
        return change.value
    spec = TOPIC_CONFIGS.get(change.name) if resource_type is ResourceType.TOPIC else None
    if not _is_list(resource_type, change.name, spec):
        message = f"{change.operation.name} works on lists, and {change.name!r} is none; SET it."
        raise RefusedError(ErrorCode.INVALID_CONFIG, message)
    items = list_items(before.get(change.name, spec.default if spec else ""))
    given = list_items(change.value)
    if change.operation is AlterOperation.APPEND:
        known = frozenset(items)
        items += [item for item in given if item not in known]
    else:
        gone = frozenset(given)
        items = [item for item in items if item not in gone]
    return ",".join(items)


def _is_list(resource_type: ResourceType, name: str, spec: ConfigSpec | None) -> bool:
    if resource_type is ResourceType.TOPIC:
        return spec is not None and spec.is_list
    return name in BROKER_LISTS


def _broker_config_problem(entries: Iterable[tuple[str, str]]) -> str | None:
    for name, _ in entries:
        if not _BROKER_CONFIG.fullmatch(name):
            return f"{name!r} is no name of a configuration; use letters, digits, '.', '_' and '-'."
    return None


def replay_config(delta: MetadataDelta, record: ConfigRecord) -> None:
    """Set one key of a resource, or remove it where the record has no value."""
    key = (record.resource_type, record.resource_name)
    delta.set_config(key, record.name, record.value)
