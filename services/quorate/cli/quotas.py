"""`quorate quotas`: describe and alter client quotas, in the format of kafka-configs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from quorate.cli.configs import split_settings
from quorate.cli.connection import add_connection_arguments, ask, run_command
from quorate.cli.output import (
    CommandError,
    parse_keys,
    parse_setting,
    print_json,
    print_offset,
    report_errors,
)
from quorate.controller.client_quotas.messages import (
    AlterClientQuotas,
    DescribeClientQuotas,
    EntityPart,
    MatchType,
    QuotaAlteration,
    QuotaComponent,
    QuotaOp,
)
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from quorate.client.controller_client import ControllerClient
    from quorate.controller.client_quotas.messages import DescribedEntity

# The flag of each entity type, and its name in the output of kafka-configs.
_FLAGS: Final = {"user": "user", "client": "client-id", "ip": "ip"}
_TITLES: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
# Python's own `float` takes underscores and the digits of every script, too (settings/integers.py).
_NUMBER: Final = re.compile(r"-?[0-9]{1,400}(\.[0-9]{0,400})?([eE][+-]?[0-9]{1,4})?")
# The value of a flag that is given without a name.
_ANY: Final = object()


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("quotas", help="describe and alter client quotas")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    describe = actions.add_parser("describe", help="what is set")
    describe.add_argument(
        "--strict", action="store_true", help="only entities that have no other types"
    )
    alter = actions.add_parser("alter", help="change quotas; the others stay as they are")
    alter.add_argument("--add-config", action="append", default=[], metavar="K=V[,K=V]")
    alter.add_argument("--delete-config", action="append", default=[], metavar="K[,K]")
    alter.add_argument(
        "--validate-only", action="store_true", help="say whether it could be done, and no more"
    )
    for flag, type_ in _FLAGS.items():
        for action in (describe, alter):
            entity = action.add_mutually_exclusive_group()
            if action is describe:
                words = f"the {type_} of that name, or every one"
                entity.add_argument(f"--{flag}", nargs="?", const=_ANY, metavar="NAME", help=words)
            else:
                entity.add_argument(f"--{flag}", metavar="NAME", help=f"the {type_} of that name")
            words = f"the default of every {type_}"
            entity.add_argument(f"--{flag}-defaults", action="store_true", help=words)
    add_connection_arguments(parser, [describe, alter], has_pin=True)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Entry of the command line."""
    return run_command(_describe if arguments.action == "describe" else _alter, arguments)


def parse_entity(arguments: argparse.Namespace) -> tuple[EntityPart, ...]:
    """The entity that the flags name. Raises CommandError."""
    entity = []
    for flag, type_ in _FLAGS.items():
        name = getattr(arguments, flag)
        if name is not None or getattr(arguments, f"{flag}_defaults"):
            entity.append(EntityPart(type_, name))
    if not entity:
        raise CommandError("alter: name an entity with --user, --client or --ip, or its -defaults")
    return tuple(entity)


def parse_components(arguments: argparse.Namespace) -> tuple[QuotaComponent, ...]:
    """The entities to match; empty without flags."""
    components = []
    for flag, type_ in _FLAGS.items():
        name = getattr(arguments, flag)
        if getattr(arguments, f"{flag}_defaults"):
            components.append(QuotaComponent(type_, MatchType.DEFAULT))
        elif name is _ANY:
            components.append(QuotaComponent(type_, MatchType.SPECIFIED))
        elif name is not None:
            components.append(QuotaComponent(type_, MatchType.EXACT, name))
    return tuple(components)


def parse_ops(add: list[str], delete: list[str]) -> tuple[QuotaOp, ...]:
    """Parse `K=V,K=V` and `K,K` as changes. Raises CommandError that names the flag."""
    ops = []
    for text in add:
        for part in split_settings(text):
            key, value = parse_setting("--add-config", part)
            if _NUMBER.fullmatch(value) is None:
                raise CommandError(f"--add-config: {value!r} of {key} is no number")
            ops.append(QuotaOp(key, float(value)))
    for text in delete:
        ops += [QuotaOp(key, remove=True) for key in parse_keys("--delete-config", text)]
    if not ops:
        raise CommandError("alter: give --add-config or --delete-config")
    return tuple(ops)


def entity_title(entity: tuple[EntityPart, ...]) -> str:
    """`user-principal 'alice', the default client-id`."""
    return ", ".join(_titles(entity))


def _titles(entity: tuple[EntityPart, ...]) -> Iterator[str]:
    # Kafka names the user first.
    for part in sorted(entity, key=lambda part: part.entity_type != "user"):
        title = _TITLES.get(part.entity_type, part.entity_type)
        named = part.entity_name is not None
        yield f"{title} {part.entity_name!r}" if named else f"the default {title}"


def entity_line(described: DescribedEntity) -> str:
    """One entity in the format of kafka-configs."""
    values = ", ".join(f"{each.key}={each.value}" for each in described.values)
    return f"Quota configs for {entity_title(described.entity)} are {values}"


async def _describe(client: ControllerClient, arguments: argparse.Namespace) -> int:
    request = DescribeClientQuotas(parse_components(arguments), strict=arguments.strict)
    reply = await ask(client, arguments, request)
    if arguments.output == "json":
        print_json({"offset": reply.offset, "entries": [_json(each) for each in reply.entries]})
    else:
        for described in reply.entries:
            print(entity_line(described))
        print_offset(reply.offset)
    return 0


def _json(described: DescribedEntity) -> dict[str, object]:
    return {
        "entity": _entity_json(described.entity),
        "values": {each.key: each.value for each in described.values},
    }


def _entity_json(entity: tuple[EntityPart, ...]) -> dict[str, str | None]:
    return {part.entity_type: part.entity_name for part in entity}


async def _alter(client: ControllerClient, arguments: argparse.Namespace) -> int:
    entity = parse_entity(arguments)
    alteration = QuotaAlteration(entity, parse_ops(arguments.add_config, arguments.delete_config))
    is_trial: bool = arguments.validate_only
    reply = await client.write(AlterClientQuotas((alteration,), validate_only=is_trial))
    if arguments.output == "json":
        entries = [
            {"entity": _entity_json(e.entity), "error": e.error.name, "message": e.message}
            for e in reply.entries
        ]
        print_json({"entries": entries})
    else:
        done = "The change is valid" if is_trial else "Completed updating config"
        for altered in reply.entries:
            if altered.error is ErrorCode.NONE:
                print(f"{done} for {entity_title(altered.entity)}.")
    return report_errors([(entity_title(e.entity), e.error, e.message) for e in reply.entries])
