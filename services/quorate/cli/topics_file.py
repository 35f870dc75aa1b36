"""Reads topic definitions from YAML.

The layout is that of kafka-gitops and similar tools, a map from names to definitions:

    topics:
      orders.placed:
        partitions: 12
        replication: 3
        configs:
          cleanup.policy: compact
          retention.ms: 604800000

`assignments` (a list of replica lists, one per partition) may replace the two counts. Unknown
content is rejected, never skipped; every finding names the entry and the field.
"""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any, Final

import yaml

from quorate.cli.output import CommandError
from quorate.controller.topics.messages import USE_DEFAULT, NewTopic
from quorate.controller.topics.topic_names import name_problem
from quorate.settings.integers import INT16_MAX, INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Hashable

_FIELDS: Final = ("partitions", "replication", "assignments", "configs")
_FINDINGS_SHOWN_MAX: Final = 20
# Findings are shown up to a length and a depth: YAML's aliases expand a few lines to exabytes.
_short: Final = reprlib.Repr()
_short.maxlevel = 2
_shown: Final = _short.repr


class TopicsFileError(CommandError):
    """The file is not a list of topics; the message has a line for each finding."""


class _UniqueKeyLoader(yaml.CSafeLoader):
    """Rejects equal keys, of which YAML would silently drop the first."""

    def construct_object(
        self,
        node: yaml.Node,
        deep: bool = False,  # noqa: FBT001, FBT002 - PyYAML's
    ) -> Any:  # noqa: ANN401 - PyYAML's
        try:
            return super().construct_object(node, deep=deep)
        except ValueError as error:
            line = node.start_mark.line + 1
            what = f"line {line}: {_shown(node.value)} is no number and no date that there is"
            raise TopicsFileError(f"{what}; put a string into quotes") from error

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 - PyYAML's
    ) -> dict[Hashable, Any]:
        seen: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if key in seen:
                lines = f"line {seen[key]} and in line {line}"
                raise TopicsFileError(f"{key!r} occurs in {lines}; a name may stand there once")
            seen[key] = line
        return super().construct_mapping(node, deep=deep)


def read_topics(text: str, source: str) -> tuple[NewTopic, ...]:
    """The topics of a file in its order. `source` is its name, for messages.

    Raises TopicsFileError.
    """
    try:
        document = yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - derived from SafeLoader
    except TopicsFileError as error:
        raise TopicsFileError(f"{source}: {error}") from error
    except RecursionError:
        raise TopicsFileError(f"{source}: it is nested too deeply for a list of topics") from None
    except (yaml.YAMLError, TypeError) as error:
        raise TopicsFileError(f"{source}: no YAML: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("topics"), dict):
        raise TopicsFileError(f"{source}: a map `topics` from names to definitions is needed")
    others = [key for key in document if key != "topics"]
    findings = [f"{key}: not known here; only `topics` is" for key in others]
    topics = []
    for name, definition in document["topics"].items():
        topic, problems = _topic(name, definition)
        findings += [f"topics[{name!r}]{problem}" for problem in problems]
        topics.append(topic)
    if not topics and not findings:
        findings = ["topics: no topic stands there"]
    if findings:
        shown = findings[:_FINDINGS_SHOWN_MAX]
        if len(findings) > len(shown):
            shown.append(f"and {len(findings) - len(shown)} more")
        raise TopicsFileError("\n".join(f"{source}: {finding}" for finding in shown))
    return tuple(topics)


def _topic(name: object, definition: object) -> tuple[NewTopic, list[str]]:
    if not isinstance(name, str):
        return NewTopic(""), [": the name must be a string; put it into quotes"]
    problem = name_problem(name)
    problems = [f": {problem}"] if problem else []
    fields = {} if definition is None else definition
    if not isinstance(fields, dict):
        return NewTopic(name), [*problems, ": a map of fields is needed, such as partitions: 6"]
    problems += [
        f".{key}: not known; known are {', '.join(_FIELDS)}" for key in fields if key not in _FIELDS
    ]
    partitions = _count(fields, "partitions", INT32_MAX, problems)
    replication = _count(fields, "replication", INT16_MAX, problems)
    assignments = _assignments(fields.get("assignments"), problems)
    if assignments and not partitions == replication == USE_DEFAULT:
        problems.append(".assignments: stands in place of partitions and replication; leave these")
    configs = _configs(fields.get("configs"), problems)
    return NewTopic(name, partitions, replication, assignments, configs), problems


def _count(fields: dict[str, Any], field: str, maximum: int, problems: list[str]) -> int:
    value = fields.get(field, USE_DEFAULT)
    if field in fields and (not _is_int(value) or value < 1):
        problems.append(f".{field}: {_shown(value)} is no whole number above 0")
        return USE_DEFAULT
    if value > maximum:
        problems.append(f".{field}: {_shown(value)} is more than {maximum}")
        return USE_DEFAULT
    return int(value)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_id(value: object) -> bool:
    return isinstance(value, int) and _is_int(value) and 0 <= value <= INT32_MAX


def _assignments(value: object, problems: list[str]) -> tuple[tuple[int, ...], ...]:
    if value is None:
        return ()
    lists = value if isinstance(value, list) else []
    assignments = tuple(
        tuple(replicas)
        for replicas in lists
        if isinstance(replicas, list) and replicas and all(_is_id(r) for r in replicas)
    )
    if not assignments or len(assignments) < len(lists):
        problems.append(".assignments: a list of lists of broker ids is needed, one a partition")
        return ()
    return assignments


def _configs(value: object, problems: list[str]) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, dict):
        problems.append(".configs: a map from names to values is needed")
        return ()
    configs = []
    for key, setting in value.items():
        if not isinstance(key, str):
            problems.append(f".configs: {key!r} is no name; put it into quotes")
        elif isinstance(setting, bool):
            configs.append((key, str(setting).lower()))
        elif isinstance(setting, str | int | float):
            configs.append((key, str(setting)))
        else:
            problems.append(f".configs[{key!r}]: {_shown(setting)} is no string, number or boolean")
    return tuple(configs)
