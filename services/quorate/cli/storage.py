"""`quorate storage`: random-uuid, format, info.

A directory is formatted once only: a voter that lost its disk must not return with its old id and
vote again. Errors in the flags are reported before anything is written.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.cli import storage_recovery_args
from quorate.cli.output import CommandError, fail, print_json
from quorate.cli.storage_format_plan import FormatPlan, make_plan, new_directory_id, write_plan
from quorate.records.ids import format_uuid
from quorate.server.component_config import storage_config
from quorate.server.config import ControllerConfig, load_config
from quorate.settings.properties import ConfigError
from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.disaster_recovery.recovery_plan import check_no_unfinished_recovery
from quorate.storage.errors import DirectoryInUseError, StorageError, problem_of
from quorate.storage.file_system import OsFileSystem
from quorate.storage.layout import LOG_DIR, META_PROPERTIES
from quorate.storage.meta_properties import (
    MetaProperties,
    encode_meta,
    lacks_directory_id,
    read_meta,
)
from quorate.storage.random_ids import draw_uuid
from quorate.storage.recovery.recovery import examine

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from quorate.storage.file_system import FileSystem


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
    storage_recovery_args.register(commands)


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
        "--statefulset",
        metavar="NAMESPACE/NAME",
        help="this node is a pod of that StatefulSet: the first pod founds a quorum where no pod"
        " knows one and ConfigMap NAME-bootstrap does not exist, and any other disk joins; a"
        " directory that is formatted is left alone",
    )
    parser.add_argument(
        "--moved-from",
        metavar="NAMESPACE/NAME",
        help="with --statefulset: a disk that belongs to the pod of that StatefulSet with this"
        " ordinal was moved here, and no copy runs there any more",
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
    storage_recovery_args.add_connection(parser)
    storage_recovery_args.add_ignore(parser)


def random_uuid(arguments: argparse.Namespace) -> int:
    """Print one random id in the format of cluster and directory ids."""
    del arguments
    print(format_uuid(draw_uuid()))
    return 0


# --- format ---------------------------------------------------------------------------------------


def format_storage(arguments: argparse.Namespace) -> int:
    """Format the directory of the properties; 1 on an error."""
    where: str = arguments.config
    try:
        config = load_config(arguments.config, os.environ)
        where = config.log.directory
        if arguments.statefulset is not None:
            from quorate.cli.storage_statefulset import format_pod

            format_pod(arguments, config)
            return 0
        _refuse_move(arguments.moved_from)
        plan = make_plan(arguments, config)
        if _is_formatted(plan, may_be=arguments.ignore_formatted):
            print("All of the log directories are already formatted.")
            return 0
        if arguments.standalone:
            # Only this command calls servers: the others do not load what it needs for that.
            from quorate.cli.existing_quorum_check import refuse_rival

            refuse_rival(arguments, config, plan.formatting.meta.cluster_id)
        fs = OsFileSystem()
        fs.make_dirs(plan.directory)
        with DirectoryLock(plan.directory):
            write_plan(fs, plan)
    except (CommandError, ConfigError, StorageError) as error:
        return fail(str(error))
    except OSError as error:
        return fail(problem_of(error, where))
    return 0


def _refuse_move(moved_from: str | None) -> None:
    """Raises CommandError if `--moved-from` is given for a disk that belongs to no pod."""
    if moved_from is not None:
        raise CommandError(
            "--moved-from is for --statefulset: leave it out, other disks belong to no pod"
        )


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


# --- info -----------------------------------------------------------------------------------------


def show_info(arguments: argparse.Namespace) -> int:
    """Print the directory's contents; 1 if a controller could not start on it."""
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
        check_no_unfinished_recovery(fs, directory)
    except StorageError as error:
        problems.append(str(error))
    try:
        path = f"{directory}/{META_PROPERTIES}"
        # A start generates the id of a directory that has none.
        is_nameless = lacks_directory_id(fs, path)
        meta = read_meta(fs, path, new_directory_id=new_directory_id()) if is_there else None
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


def _why_no_start(fs: FileSystem, config: ControllerConfig) -> list[str]:
    """Reasons for which a start would fail. A directory in use is skipped: its owner changes it."""
    directory = config.log.directory
    try:
        DirectoryLock(directory).check()
        if fs.exists(f"{directory}/{LOG_DIR}"):
            settings = replace(storage_config(config), new_directory_id=new_directory_id())
            examine(fs, directory, settings, is_rescue=False)
    except DirectoryInUseError:
        return []
    except StorageError as error:
        return [str(error)]
    except OSError as error:
        return [problem_of(error, directory)]
    return []


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
