"""`quorate features describe | upgrade | downgrade`, with the output of kafka-features.

kraft.version is the feature that this release can change; the leader decides and gives the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.api.admin_api import AdminError
from quorate.cli.connection import add_connection_arguments, deadline_of, run_command
from quorate.cli.output import CommandError, admin_error, parse_setting, print_json
from quorate.client.membership_client import MembershipClient
from quorate.raft.messages import UpdateFeaturesRequest
from quorate.records.voters import KRAFT_VERSION
from quorate.settings.integers import INT16_MAX, whole_number

if TYPE_CHECKING:
    import argparse

    from quorate.client.controller_calls import ApiVersions
    from quorate.client.controller_client import ControllerClient
    from quorate.raft.messages import DescribeQuorumResponse

_COLUMNS: Final = ("SupportedMinVersion", "SupportedMaxVersion", "FinalizedVersionLevel", "Epoch")
_NAME_WIDTH: Final = 40
_LEVEL_WIDTH: Final = 15


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("features", help="describe and upgrade features")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    describe = actions.add_parser("describe", help="supported and finalised levels")
    describe.set_defaults(run=lambda arguments: run_command(_describe, arguments))
    upgrade = actions.add_parser("upgrade", help="finalise a higher level")
    downgrade = actions.add_parser("downgrade", help="finalise a lower level")
    for action in (upgrade, downgrade):
        action.add_argument(
            "--feature",
            action="append",
            required=True,
            metavar="NAME=LEVEL",
            help=f"{KRAFT_VERSION} and its level",
        )
        action.add_argument("--dry-run", action="store_true", help="only ask whether it may be")
        action.set_defaults(run=lambda arguments: run_command(_update, arguments))
    add_connection_arguments(parser, [describe, upgrade, downgrade])


async def _describe(client: ControllerClient, arguments: argparse.Namespace) -> int:
    rows = feature_rows(await client.api_versions(), await client.describe_quorum())
    if arguments.output == "json":
        print_json(rows)
    else:
        for row in rows:
            print(format_row(row))
    return 0


def feature_rows(
    supported: ApiVersions, quorum: DescribeQuorumResponse
) -> list[dict[str, str | int]]:
    """A row for each feature that the asked controller supports and whose level is known."""
    return [
        {
            "Feature": name,
            "SupportedMinVersion": lowest,
            "SupportedMaxVersion": highest,
            "FinalizedVersionLevel": quorum.kraft_version,
            "Epoch": quorum.leader.epoch,
        }
        for name, lowest, highest in supported.features
        if name == KRAFT_VERSION
    ]


def format_row(row: dict[str, str | int]) -> str:
    """Format a row in columns as wide as Kafka's."""
    cells = [f"Feature: {row['Feature']:<{_NAME_WIDTH}}"]
    cells += [f"{column}: {row[column]:<{_LEVEL_WIDTH}}" for column in _COLUMNS]
    return "  ".join(cells).rstrip()


def parse_levels(texts: list[str]) -> dict[str, int]:
    """Parse NAME=LEVEL, each feature once. Raises CommandError."""
    levels: dict[str, int] = {}
    for text in texts:
        name, level = parse_setting("--feature", text)
        if name in levels:
            raise CommandError(f"--feature: {name} is named twice")
        try:
            levels[name] = whole_number(level, maximum=INT16_MAX)
        except ValueError as error:
            raise CommandError(f"--feature: {text!r}: the level: {error}") from None
    return levels


async def _update(client: ControllerClient, arguments: argparse.Namespace) -> int:
    levels = parse_levels(arguments.feature)
    verb: str = arguments.action
    others = sorted(levels.keys() - {KRAFT_VERSION})
    if others:
        raise CommandError(
            f"{', '.join(others)} cannot be changed in this release: {KRAFT_VERSION} is the one "
            "feature that can"
        )
    level = levels[KRAFT_VERSION]
    membership = MembershipClient(client)
    deadline = deadline_of(arguments)
    finalised = (await membership.describe(deadline)).kraft_version
    if verb == "downgrade" and level >= finalised:
        # The leader would treat it as an upgrade.
        raise CommandError(
            f"Could not {verb} {KRAFT_VERSION} to {level}. The finalised level is {finalised}"
        )
    request = UpdateFeaturesRequest(level, validate_only=arguments.dry_run)
    try:
        await membership.change(request, deadline)
    except AdminError as error:
        raise CommandError(
            f"Could not {verb} {KRAFT_VERSION} to {level}. {admin_error(error)}\n"
            "1 out of 1 operation(s) failed."
        ) from error
    mode = "can be" if arguments.dry_run else "was"
    print(f"{KRAFT_VERSION} {mode} {verb}d to {level}.")
    return 0
