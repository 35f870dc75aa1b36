"""IncrementalAlterConfigs (KIP-339), with validation.

Topics accept only the names in `config_definitions`. Brokers accept any well-formed name, because
the broker release determines which exist. Replay never validates: records in the log are kept as
they are.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from quorate.controller.configs.config_definitions import (
    BROKER_LISTS,
    TOPIC_CONFIGS,
    ConfigSpec,
    list_items,
    topic_config_problem,
)
from quorate.controller.configs.config_resources import UNCLEAN, resource_key, resource_problem
from quorate.controller.configs.messages import (
    AlteredResource,
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    IncrementalAlterConfigsReply,
    ResourceType,
)
from quorate.controller.configs.records import config_records
from quorate.controller.decision import Context, Outcome, Proposal, too_large
from quorate.controller.errors import RefusedError
from quorate.controller.features.levels import metadata_version
from quorate.controller.partitions.leader_isr_sweep import PassWanted
from quorate.records.errors import ErrorCode
from quorate.records.metadata import ConfigRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from quorate.controller.image import View
    from quorate.controller.slices import Slices
    from quorate.records.metadata import MetadataRecord

_BROKER_CONFIG = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def alter_configs_in_slices(context: Context, request: IncrementalAlterConfigs) -> Slices[Outcome]:
    """Change resources one by one, each atomically."""
    level = metadata_version(context.view.features)
    proposal = Proposal(level)
    repeated = _repeated(request.alterations)
    results: list[AlteredResource] = []
    for index, alteration in enumerate(request.alterations):
        if index:
            yield
        resource = alteration.resource
        try:
            _propose(proposal, context.view, alteration, is_repeated=resource in repeated)
        except RefusedError as refused:
            results.append(AlteredResource(resource, refused.error, refused.message))
        else:
            results.append(AlteredResource(resource))
    reply = IncrementalAlterConfigsReply(tuple(results))
    if request.validate_only:
        return Outcome(Proposal(level), reply)
    # Kafka searches for such partitions every 5 minutes (unclean.leader.election.interval.ms).
    soft = (PassWanted(),) if any(map(_may_elect, proposal.records)) else ()
    return Outcome(proposal, reply, soft)


def _may_elect(record: MetadataRecord) -> bool:
    """True if the record may newly permit out-of-sync replicas to lead.

    Removing a topic's own value may expose the value of all brokers.
    """
    return isinstance(record, ConfigRecord) and record.name == UNCLEAN and record.value != "false"


def refused_alteration(
    _context: Context, alteration: ConfigAlteration, refusal: RefusedError
) -> AlteredResource:
    return AlteredResource(alteration.resource, refusal.error, refusal.message)


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
    if is_repeated:
        message = f"{_named(resource)} occurs twice in the request; name it once."
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)
    problem = resource_problem(image, resource)
    if problem is not None:
        raise RefusedError(*problem)
    if not proposal.add(_records(image, alteration)):
        what = f"The change of {_named(resource)}"
        raise RefusedError(ErrorCode.POLICY_VIOLATION, too_large(what))


def _named(resource: ConfigResource) -> str:
    return f"{resource.type.name} {resource.name!r}"


def _records(image: View, alteration: ConfigAlteration) -> list[ConfigRecord]:
    key = resource_key(alteration.resource)
    before = image.configs.of(key)
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
    """The value of a key after one change; None if it is removed."""
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
