"""Flags and help of `storage recover`, `backup` and `restore`.

These commands call servers, formatting does not: their modules are imported when they run.
"""

from __future__ import annotations

import argparse
import importlib
from typing import TYPE_CHECKING, Final

from quorate.cli.argument_types import number
from quorate.settings.integers import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

RECOVER: Final = """\
Make a quorum of one controller out of the disks that are left, where a majority of voters is lost
for good. Stop every controller first. Name what is left: the properties of each controller whose
disk survived, and directories (or copies of them) whose properties are lost.

The longest log is kept whole, committed or not; what only lost disks had is gone. Its directory
gets a new directory id, the only voter of a new set in a new epoch. Nothing is changed without
--execute; a recovery that was interrupted goes on when the same command is run again.
"""
BACKUP: Final = """\
Write the metadata of one controller's directory into one file: its newest snapshot and the log
behind that. The controller may be running, nothing is written to its directory.

Where a leader answers, the backup holds exactly what is committed, at least all that was when the
command began. Without a leader it holds the whole log of this directory, committed or not.
"""
RESTORE: Final = """\
Make a quorum of one controller out of a backup, in an empty directory, under a new directory id and
in a new epoch. The backup is checked before anything is written. The cluster id is the one in the
backup; while a leader of that cluster answers, nothing is restored.
"""
TIMEOUT_MS_DEFAULT: Final = 30_000


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the three commands to `quorate storage`."""
    _register_recover(commands)
    _register_backup(commands)


def _later(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        status: int = getattr(importlib.import_module(module), function)(arguments)
        return status

    return run


def _register_recover(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "recover",
        help="make a quorum of one out of what is left when the majority is lost",
        description=RECOVER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--unsafe-new-quorum",
        action="store_true",
        required=True,
        help="you know that records may be lost, and that the old quorum must never run again",
    )
    parser.add_argument(
        "-c",
        "--config",
        action="append",
        default=[],
        metavar="FILE",
        help="the properties of a controller whose disk is left; may be repeated",
    )
    parser.add_argument(
        "-d",
        "--directory",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory, or the copy of one, whose properties are lost; may be repeated",
    )
    parser.add_argument(
        "--new-cluster-id",
        metavar="ID",
        help="another cluster id, which keeps all brokers and old disks out; kept by default",
    )
    add_connection(parser)
    add_ignore(parser)
    parser.add_argument("--execute", action="store_true", help="do it; otherwise it is only shown")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=_later("quorate.cli.storage_recover", "run"))


def _register_backup(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    shape = argparse.RawDescriptionHelpFormatter
    backup = commands.add_parser(
        "backup",
        help="write the metadata into one checksummed file",
        description=BACKUP,
        formatter_class=shape,
    )
    _add_config(backup)
    backup.add_argument("--output", required=True, metavar="FILE", help="a file that is not there")
    backup.add_argument(
        "--timeout-ms",
        type=number(0, INT32_MAX),
        default=TIMEOUT_MS_DEFAULT,
        help="how long to wait until this controller has all that is committed"
        f" (default: {TIMEOUT_MS_DEFAULT})",
    )
    add_connection(backup)
    backup.set_defaults(run=_later("quorate.cli.storage_backup", "run_backup"))
    restore_ = commands.add_parser(
        "restore",
        help="make a quorum of one out of a backup",
        description=RESTORE,
        formatter_class=shape,
    )
    _add_config(restore_)
    restore_.add_argument("--input", required=True, metavar="FILE", help="what `backup` wrote")
    restore_.add_argument(
        "--new-cluster-id", metavar="ID", help="another cluster id, for a copy beside the original"
    )
    add_connection(restore_)
    add_ignore(restore_)
    restore_.set_defaults(run=_later("quorate.cli.storage_backup", "run_restore"))


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--config", required=True, metavar="FILE", help="the controller's properties"
    )


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Add the flag of every command that calls controllers as one of them."""
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="properties of the connection: security.protocol, ssl.*; by default those of --config",
    )


def add_ignore(parser: argparse.ArgumentParser) -> None:
    """Add the flag of every command that looks for a leader first."""
    parser.add_argument(
        "--ignore-server",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="do not ask this server: it is no controller of the quorum; may be repeated",
    )
