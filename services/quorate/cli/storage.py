"""`quorate storage`: make ids, format the directory of a controller, show what a directory holds.

A directory is formatted once only: a voter that lost its disk must not come back under its old id
and vote again. What is wrong with the flags is said before anything is written.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.cli import storage_rescue
from quorate.cli.identities import parse_cluster_id
from quorate.cli.output import CommandError, fail, parse_setting, print_json
from quorate.consensus.config import ControllerConfig, load_config
from quorate.consensus.part_settings import storage_config
from quorate.controller.features.levels import METADATA_VERSION, SUPPORTED_FEATURES
from quorate.records.cluster import FeatureLevelRecord
from quorate.records.ids import (
    DirectoryId,
    NodeId,
    ReplicaKey,
    format_uuid,
    parse_directory_id,
)
from quorate.records.metadata import METADATA_VERSION_LATEST, encode_record
from quorate.records.value import named_value
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.settings.numbers import is_whole_number, whole_number
from quorate.settings.properties import NODE_ID_MAX, ConfigError, parse_address
from quorate.storage.errors import DirectoryInUseError, StorageError, problem_of
from quorate.storage.files import OsFileSystem
from quorate.storage.formatting import Formatting, format_directory
from quorate.storage.identities import draw_uuid
from quorate.storage.layout import LOG_DIR, META_PROPERTIES
from quorate.storage.lock import DirectoryLock
from quorate.storage.meta import MetaProperties, encode_meta, lacks_directory_id, read_meta
from quorate.storage.recovery import examine
from quorate.storage.rescue_record import refuse_unfinished

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

KRAFT_VERSION: Final = "kraft.version"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to `quorate`."""
    parser = subparsers.add_parser(
        "storage",
        help="make ids, format directories, show what they hold, rescue a quorum",
        description="Make ids, format the directory of a controller, show what a directory holds,"
        " back it up, and make a new quorum of what is left of one.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    uuid = commands.add_parser("random-uuid", help="print a new id, for a cluster or a directory")
    uuid.set_defaults(run=random_uuid)
    info = commands.add_parser("info", help="show what the directory of a controller holds")
    _add_config(info)
    info.add_argument("-o", "--output", choices=("text", "json"), default="text")
    info.set_defaults(run=show_info)
    format_ = commands.add_parser(
        "format",
        help="prepare the directory of a controller",
        description="Prepare the directory of a controller: its identity, the first voters and the"
        " first metadata. Nothing is written when anything is wrong.",
    )
    _add_format_arguments(format_)
    format_.set_defaults(run=format_storage)
    storage_rescue.register(commands)


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--config", required=True, metavar="FILE", help="the controller's properties"
    )


def _add_format_arguments(parser: argparse.ArgumentParser) -> None:
    _add_config(parser)
    parser.add_argument(
        "-t", "--cluster-id", required=True, metavar="ID", help="the same for all nodes"
    )
    parser.add_argument(
        "-f",
        "--feature",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="a feature's first level; may be repeated",
    )
    parser.add_argument(
        "-g",
        "--ignore-formatted",
        action="store_true",
        help="leave a directory alone that is formatted for this node and cluster already",
    )
    voters = parser.add_mutually_exclusive_group()
    voters.add_argument(
        "-s",
        "--standalone",
        action="store_true",
        help="this node is the only first voter; the bootstrap servers are asked first, so that it"
        " does not found a second quorum",
    )
    voters.add_argument(
        "-N",
        "--no-initial-controllers",
        action="store_true",
        help="this node joins a quorum that others form",
    )
    voters.add_argument(
        "-I",
        "--initial-controllers",
        metavar="ID@HOST:PORT:DIRECTORY[,...]",
        help="all first voters, this node among them",
    )
    parser.add_argument(
        "--first-bootstrap",
        action="store_true",
        help="for the voters of controller.quorum.voters (kraft.version 0) of a new cluster: this"
        " directory may vote although it is empty; never for a disk that replaces a lost one",
    )
    storage_rescue.add_connection(parser)
    storage_rescue.add_ignore(parser)


def random_uuid(arguments: argparse.Namespace) -> int:
    """Print one id, as clusters and directories have it."""
    del arguments
    print(format_uuid(draw_uuid()))
    return 0


# --- format ---------------------------------------------------------------------------------------


@named_value
class FormatPlan:
    """What is to be written where; `kind` as Kafka's tool calls the directory."""

    directory: str
    kind: str
    formatting: Formatting
    metadata_version: int


def format_storage(arguments: argparse.Namespace) -> int:
    """Format the directory of the properties; 1 when anything is wrong."""
    where: str = arguments.config
    try:
        config = load_config(arguments.config, os.environ)
        where = config.log.directory
        plan = make_plan(arguments, config)
        if _is_formatted(plan, may_be=arguments.ignore_formatted):
            print("All of the log directories are already formatted.")
            return 0
        if arguments.standalone:
            # Only this one asks others: what that takes is not loaded for the rest.
            from quorate.cli.storage_founding import refuse_rival

            refuse_rival(arguments, config, plan.formatting.meta.cluster_id)
        print(
            f"Formatting {plan.kind} {plan.directory}"
            f" with {METADATA_VERSION} {plan.metadata_version}."
        )
        fs = OsFileSystem()
        fs.make_dirs(plan.directory)
        with DirectoryLock(plan.directory):
            format_directory(
                fs, plan.directory, plan.formatting, timestamp_ms=time.time_ns() // 1_000_000
            )
    except (CommandError, ConfigError, StorageError) as error:
        return fail(str(error))
    except OSError as error:
        return fail(problem_of(error, where))
    return 0


def _is_formatted(plan: FormatPlan, *, may_be: bool) -> bool:
    path = f"{plan.directory}/{META_PROPERTIES}"
    present = read_meta(OsFileSystem(), path)
    if present is None:
        return False
    wanted = plan.formatting.meta
    if not may_be:
        raise CommandError(
            f"Log directory {plan.directory} is already formatted. Use --ignore-formatted to leave"
            " such a directory as it is"
        )
    if (present.cluster_id, present.node_id) != (wanted.cluster_id, wanted.node_id):
        raise CommandError(
            f"{path}: it is node {present.node_id} of cluster {present.cluster_id}, not node"
            f" {wanted.node_id} of cluster {wanted.cluster_id}: check --cluster-id and node.id, or"
            " name another metadata.log.dir"
        )
    return True


def make_plan(arguments: argparse.Namespace, config: ControllerConfig) -> FormatPlan:
    """Make sense of the flags. Raises CommandError that names the flag and the remedy."""
    cluster_id = parse_cluster_id("--cluster-id", arguments.cluster_id)
    levels = _levels(arguments.feature)
    kraft_version = levels.pop(KRAFT_VERSION, 0 if config.quorum.voters.voters else 1)
    directory_id = DirectoryId(draw_uuid())
    kind, voters = "dynamic metadata directory", None
    if kraft_version == 0:
        _check_static(arguments, config)
        kind = "metadata directory"
    elif config.quorum.voters.voters:
        raise CommandError(
            f"--feature: {KRAFT_VERSION}=1 keeps the voters in the log: remove"
            " controller.quorum.voters from the properties, set controller.quorum.bootstrap.servers"
        )
    elif arguments.first_bootstrap:
        raise CommandError(
            f"--first-bootstrap is for {KRAFT_VERSION}=0 only: leave it out, the directory ids of"
            " the voters tell a new disk from a lost one"
        )
    elif arguments.standalone:
        kind = "dynamic metadata voter directory"
        key = ReplicaKey(config.node_id, directory_id)
        voters = VoterSet.of([Voter(key, config.endpoints)])
    elif arguments.initial_controllers is not None:
        kind = "dynamic metadata voter directory"
        voters = _initial_voters(arguments.initial_controllers, config)
        directory_id = _own_directory(voters, config)
    elif not arguments.no_initial_controllers:
        raise CommandError(
            "one of --standalone, --initial-controllers and --no-initial-controllers is needed:"
            " who votes first must be said, or two halves could found two clusters"
        )
    meta = MetaProperties(config.node_id, cluster_id, directory_id)
    return FormatPlan(
        directory=config.log.directory,
        kind=kind,
        formatting=Formatting(
            meta=meta,
            records=bootstrap_records(levels),
            voters=voters,
            is_first_bootstrap=arguments.first_bootstrap,
        ),
        metadata_version=levels.get(METADATA_VERSION, METADATA_VERSION_LATEST),
    )


def bootstrap_records(levels: Mapping[str, int]) -> list[bytes]:
    """The first metadata, encoded: metadata.version, the latest unless named, then the others."""
    first = {METADATA_VERSION: METADATA_VERSION_LATEST} | dict(levels)
    return [
        encode_record(FeatureLevelRecord(name=name, feature_level=level), 0)
        for name, level in first.items()
    ]


def _levels(items: list[str]) -> dict[str, int]:
    ranges = {feature.name: feature for feature in SUPPORTED_FEATURES}
    levels: dict[str, int] = {}
    for item in items:
        name, text = parse_setting("--feature", item)
        known = ranges.get(name)
        if known is None:
            raise CommandError(f"--feature: {name} is not known: use one of {', '.join(ranges)}")
        try:
            level = whole_number(text, minimum=known.min_level, maximum=known.max_level)
        except ValueError:
            raise CommandError(
                f"--feature: {name} has no level {text!r}: use {known.min_level} to"
                f" {known.max_level}"
            ) from None
        if name in levels:
            raise CommandError(f"--feature: {name} is given twice: name each feature once")
        levels[name] = level
    return levels


def _check_static(arguments: argparse.Namespace, config: ControllerConfig) -> None:
    given = [
        flag
        for flag, is_given in (
            ("--standalone", arguments.standalone),
            ("--initial-controllers", arguments.initial_controllers is not None),
            ("--no-initial-controllers", arguments.no_initial_controllers),
        )
        if is_given
    ]
    if given:
        raise CommandError(
            f"{given[0]} is for {KRAFT_VERSION}=1, but here the voters stand in the properties:"
            " leave it out, or remove controller.quorum.voters and --feature kraft.version=0"
        )
    if not config.quorum.voters.voters:
        raise CommandError(
            f"--feature: {KRAFT_VERSION}=0 keeps the voters in the properties: set"
            " controller.quorum.voters"
        )


def _initial_voters(text: str, config: ControllerConfig) -> VoterSet:
    voters: dict[NodeId, Voter] = {}
    for item in text.split(","):
        node_text, at, rest = item.strip().partition("@")
        address, _, directory = rest.rpartition(":")
        if not at or ":" not in address or not is_whole_number(node_text, maximum=NODE_ID_MAX):
            raise CommandError(
                f"--initial-controllers: {item!r}: write ID@HOST:PORT:DIRECTORY, the directory's"
                " id as `quorate storage random-uuid` prints it"
            )
        try:
            host, port = parse_address("--initial-controllers", address)
            directory_id = parse_directory_id(directory)
        except ConfigError as error:
            raise CommandError(str(error)) from error
        except ValueError as error:
            raise CommandError(f"--initial-controllers: {item!r}: {error}") from error
        node_id = NodeId(int(node_text))
        if node_id in voters:
            raise CommandError(
                f"--initial-controllers: node {node_id} is there twice: name each voter once"
            )
        endpoint = Endpoint(config.peers.name, host, port)
        for other in voters.values():
            if directory_id == other.key.directory_id:
                raise CommandError(
                    f"--initial-controllers: nodes {other.key.node_id} and {node_id} have one"
                    " directory id: draw each its own with `quorate storage random-uuid`"
                )
            if endpoint in other.endpoints:
                raise CommandError(
                    f"--initial-controllers: nodes {other.key.node_id} and {node_id} have one"
                    f" address, {address}: give each its own"
                )
        voters[node_id] = Voter(ReplicaKey(node_id, directory_id), (endpoint,))
    return VoterSet.of(voters.values())


def _own_directory(voters: VoterSet, config: ControllerConfig) -> DirectoryId:
    """The directory id under which the first voters know this node."""
    own = next((voter.key for voter in voters if voter.key.node_id == config.node_id), None)
    if own is None or own.directory_id is None:
        raise CommandError(
            f"--initial-controllers: node.id {config.node_id} is not among them: add it, or use"
            " --no-initial-controllers for a node that joins later"
        )
    return own.directory_id


# --- info -----------------------------------------------------------------------------------------


def show_info(arguments: argparse.Namespace) -> int:
    """Say what the directory holds; 1 when a controller could not start on it."""
    try:
        config = load_config(arguments.config, os.environ)
    except ConfigError as error:
        return fail(str(error))
    directory = config.log.directory
    fs = OsFileSystem()
    problems: list[str] = []
    properties: Mapping[str, str] = {}
    is_there = fs.exists(directory)
    if not is_there:
        problems.append(f"{directory} is not a directory: format it, or set metadata.log.dir")
    try:
        refuse_unfinished(fs, directory)
    except StorageError as error:
        problems.append(str(error))
    try:
        path = f"{directory}/{META_PROPERTIES}"
        # A start draws the id of a directory that has none.
        is_nameless = lacks_directory_id(fs, path)
        meta = read_meta(fs, path, new_directory_id=_new_directory_id()) if is_there else None
    except StorageError as error:
        problems.append(str(error))
    else:
        properties = _properties(meta, is_nameless=is_nameless)
        if is_there and meta is None:
            problems.append(f"{directory} is not formatted: use `quorate storage format`")
        elif meta is not None and meta.node_id != config.node_id:
            problems.append(
                f"{directory} is that of node {meta.node_id}, but node.id is {config.node_id}:"
                " correct node.id, or metadata.log.dir"
            )
    if not problems:
        problems += _why_no_start(fs, config)
    if arguments.output == "json":
        found = [directory] if is_there else []
        print_json({"log_directories": found, "metadata": properties, "problems": problems})
    else:
        _print_info(directory if is_there else None, properties, problems)
    return 1 if problems else 0


def _why_no_start(fs: OsFileSystem, config: ControllerConfig) -> list[str]:
    """What recovery would refuse. A directory in use is judged by its owner, who changes it."""
    directory = config.log.directory
    try:
        DirectoryLock(directory).check()
        if fs.exists(f"{directory}/{LOG_DIR}"):
            settings = replace(storage_config(config), new_directory_id=_new_directory_id())
            examine(fs, directory, settings, is_rescue=False)
    except DirectoryInUseError:
        return []
    except StorageError as error:
        return [str(error)]
    except OSError as error:
        return [problem_of(error, directory)]
    return []


def _new_directory_id() -> DirectoryId:
    return DirectoryId(draw_uuid())


def _properties(meta: MetaProperties | None, *, is_nameless: bool) -> dict[str, str]:
    if meta is None:
        return {}
    lines = encode_meta(meta).decode().splitlines()
    properties = dict(sorted(line.split("=", 1) for line in lines if "=" in line))
    if is_nameless:
        del properties["directory.id"]
    return properties


def _print_info(directory: str | None, properties: Mapping[str, str], problems: list[str]) -> None:
    if directory is not None:
        print(f"Found log directory:\n  {directory}\n")
    if properties:
        joined = ", ".join(f"{key}={value}" for key, value in properties.items())
        print(f"Found metadata: {{{joined}}}\n")
    if problems:
        print("Found problem:" if len(problems) == 1 else "Found problems:", file=sys.stderr)
        for problem in problems:
            print(f"  {problem}", file=sys.stderr)
