"""`quorate configs`: describe and alter configs of topics and brokers, as kafka-configs does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.cli.connection import add_connection_arguments, ask, run_command
from quorate.cli.output import (
    CommandError,
    parse_keys,
    parse_setting,
    print_json,
    print_offset,
    report_errors,
)
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    DescribeConfigs,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.records.errors import ErrorCode
from quorate.records.escaping import escape_unprintable

if TYPE_CHECKING:
    import argparse

    from quorate.client.controller_client import ControllerClient
    from quorate.controller.configs.messages import ConfigEntry, DescribedResource

_TYPES: Final = {"topics": ResourceType.TOPIC, "brokers": ResourceType.BROKER}
_WORDS: Final = {ResourceType.TOPIC: "topic", ResourceType.BROKER: "broker"}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("configs", help="describe and alter configs")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    describe = actions.add_parser("describe", help="what is set")
    describe.add_argument("--all", action="store_true", help="defaults, too")
    alter = actions.add_parser("alter", help="change keys; the others stay as they are")
    alter.add_argument(
        "--add-config", action="append", default=[], metavar="K=V", help="K=V[,K=V], K=[V1,V2]"
    )
    alter.add_argument("--delete-config", action="append", default=[], metavar="K[,K]")
    for action in (describe, alter):
        action.add_argument("--entity-type", choices=tuple(_TYPES), required=True)
        entity = action.add_mutually_exclusive_group(required=True)
        entity.add_argument("--entity-name", metavar="NAME")
        entity.add_argument("--entity-default", action="store_true", help="every broker")
    add_connection_arguments(parser, [describe, alter], has_pin=True)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Entry of the command line."""
    return run_command(_describe if arguments.action == "describe" else _alter, arguments)


def parse_resource(arguments: argparse.Namespace) -> ConfigResource:
    """The entity that the flags name. Raises CommandError."""
    if arguments.entity_default:
        if arguments.entity_type != "brokers":
            raise CommandError("--entity-default: only brokers have one; give --entity-name")
        return ConfigResource(ResourceType.BROKER, "")
    if not arguments.entity_name:
        # To controllers it means every broker, and in a script an unset variable.
        raise CommandError("--entity-name is empty: name one, or give --entity-default")
    return ConfigResource(_TYPES[arguments.entity_type], arguments.entity_name)


def parse_changes(add: list[str], delete: list[str]) -> tuple[ConfigChange, ...]:
    """Parse `K=V,K=[V1,V2]` and `K,K` as changes. Raises CommandError that names the flag."""
    changes = []
    for text in add:
        for part in split_settings(text):
            key, value = parse_setting("--add-config", part)
            if value.startswith("[") and value.endswith("]"):
                value = value[1:-1]
            changes.append(ConfigChange(key, AlterOperation.SET, value))
    for text in delete:
        keys = parse_keys("--delete-config", text)
        changes += [ConfigChange(key, AlterOperation.DELETE) for key in keys]
    if not changes:
        raise CommandError("alter: give --add-config or --delete-config")
    return tuple(changes)


def split_settings(text: str) -> list[str]:
    """Split at the commas outside brackets, which keep a list of values together."""
    parts = [""]
    depth = 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


async def _describe(client: ControllerClient, arguments: argparse.Namespace) -> int:
    resource = parse_resource(arguments)
    reply = await ask(
        client, arguments, DescribeConfigs((resource,), include_defaults=arguments.all)
    )
    if arguments.output == "json":
        resources = [_resource_json(described) for described in reply.resources]
        print_json({"offset": reply.offset, "resources": resources})
    else:
        for described in reply.resources:
            if described.error is ErrorCode.NONE:
                print("\n".join(resource_lines(described, has_all=arguments.all)))
        print_offset(reply.offset)
    return report_errors([(r.resource.name, r.error, r.message) for r in reply.resources])


def resource_title(resource: ConfigResource) -> str:
    """`topic orders`, `broker 3`, or the title for every broker."""
    word = _WORDS[resource.type]
    if not resource.name:
        return f"the default {word}"
    return f"{word} {escape_unprintable(resource.name)}"


def resource_lines(described: DescribedResource, *, has_all: bool) -> list[str]:
    """A title and one indented line for each key, formatted as by kafka-configs."""
    title = f"{'All' if has_all else 'Dynamic'} configs for {resource_title(described.resource)}"
    return [f"{title} are:"] + [_entry_line(entry) for entry in described.entries]


def _entry_line(entry: ConfigEntry) -> str:
    sensitive = str(entry.is_sensitive).lower()
    name, value = (
        escape_unprintable(entry.name),
        "null" if entry.value is None else escape_unprintable(entry.value),
    )
    synonyms = f"{entry.source.name}:{name}={value}"
    return f"  {name}={value} sensitive={sensitive} synonyms={{{synonyms}}}"


def _resource_json(described: DescribedResource) -> dict[str, object]:
    return {
        "type": described.resource.type.name,
        "name": described.resource.name,
        "error": described.error.name,
        "message": described.message,
        "entries": [
            {
                "name": entry.name,
                "value": entry.value,
                "source": entry.source.name,
                "sensitive": entry.is_sensitive,
            }
            for entry in described.entries
        ],
    }


async def _alter(client: ControllerClient, arguments: argparse.Namespace) -> int:
    resource = parse_resource(arguments)
    changes = parse_changes(arguments.add_config, arguments.delete_config)
    reply = await client.write(IncrementalAlterConfigs((ConfigAlteration(resource, changes),)))
    if arguments.output == "json":
        resources = [
            {"name": r.resource.name, "error": r.error.name, "message": r.message}
            for r in reply.resources
        ]
        print_json({"resources": resources})
    else:
        for altered in reply.resources:
            if altered.error is ErrorCode.NONE:
                print(f"Completed updating config for {resource_title(altered.resource)}.")
    return report_errors([(r.resource.name, r.error, r.message) for r in reply.resources])
