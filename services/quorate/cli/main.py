"""Command dispatch; each command module is imported only when it is used.

An error that a user can fix is one line on stderr and exit status 1; a traceback is always a bug.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import sys
from typing import TYPE_CHECKING, Final, NoReturn

import quorate
from quorate.process.output_encoding import escape_unencodable
from quorate.process.queued_output import queue_standard_streams
from quorate.process.standard_descriptors import open_standard_descriptors
from quorate.process.stop_signals import STOP_SIGNALS

if TYPE_CHECKING:
    from collections.abc import Sequence

# Command name, the module that registers it, and its line in `quorate --help`.
COMMANDS: Final = {
    "storage": ("quorate.cli.storage", "ids, formatting, backups, rescue of directories"),
    "controller": ("quorate.cli.controller", "run one controller"),
    "admin": ("quorate.cli.admin", "run the admin sidecar of one controller"),
    "autojoin": ("quorate.cli.autojoin", "run the Kubernetes operator of one quorum"),
    "prepare-stop": ("quorate.cli.prepare_stop", "make it safe to stop a controller"),
    "up": ("quorate.cli.up", "run a local quorum of real processes"),
    "metadata-quorum": (
        "quorate.cli.metadata_quorum",
        "describe the quorum, change voters and leader",
    ),
    "features": ("quorate.cli.features", "describe and upgrade features"),
    "topics": ("quorate.cli.topics", "create, list, describe and delete topics"),
    "brokers": ("quorate.cli.brokers", "register and list brokers"),
    "elect-leaders": ("quorate.cli.elect_leaders", "elect leaders of partitions"),
    "configs": ("quorate.cli.configs", "describe and alter configs"),
    "quotas": ("quorate.cli.quotas", "describe and alter client quotas"),
    "dump-log": ("quorate.cli.dump_log", "print and check logs and checkpoints"),
    "trace-id": ("quorate.cli.trace_id", "the trace in which an epoch was sought"),
    "simulate": ("quorate.cli.simulate", "run seeds of the deterministic simulator"),
    "pipeline": ("quorate.cli.pipeline", "ask the log's past with Spark"),
    "generate-log": ("quorate.cli.generate_log", "write the log of a week that never was"),
}

# They run until a signal stops them, and may not wait for a reader of their output.
_SERVICES: Final = ("controller", "admin", "autojoin", "up")
# Errors of a write without a file name.
_OUTPUT_FAILED: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class CommandParser(argparse.ArgumentParser):
    """Ends with status 1 on bad input, as Kafka's tools do."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: {message}\nsee `{self.prog} --help`\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Reject flags that the chosen action does not know: its help lists those that it does."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unknown arguments: {' '.join(unknown)}")
        return parsed, unknown


def overview() -> str:
    """The list of commands for `quorate --help`."""
    width = max(len(name) for name in COMMANDS) + 2
    lines = [f"  {name:<{width}}{text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(["commands:", *lines, "", "`quorate COMMAND --help` shows what each takes."])


def make_parser(command: str | None) -> CommandParser:
    """The parser with only the requested command, so that help is fast."""
    parser = CommandParser(
        prog="quorate",
        description="A KRaft metadata quorum.",
        usage="quorate [--version] COMMAND ...",
        epilog=overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"quorate {quorate.__version__}")
    if command is not None:
        subparsers = parser.add_subparsers(metavar="COMMAND", prog="quorate")
        importlib.import_module(COMMANDS[command][0]).register(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        open_standard_descriptors()
        escape_unencodable()
    if arguments is None and words and words[0] in _SERVICES:
        STOP_SIGNALS.keep()
        queue_standard_streams()
    try:
        try:
            return _run(words)
        finally:
            # The interpreter would flush it at its end, too, but with its own status and message.
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has exited: no process is left to report to.
        _discard_stdout()
        return 1
    except OSError as error:
        is_output = error.filename is None and error.errno in _OUTPUT_FAILED
        if is_output:
            _discard_stdout()
        what = str(error)
        if is_output:
            what = (
                f"stdout: {error.strerror}: the output is not whole; a change that was asked for"
                " may have been made"
            )
        print(f"error: {what}", file=sys.stderr)
        return 1


def _discard_stdout() -> None:
    """Discard the rest of the output, so that the interpreter does not try to write it again."""
    sys.stdout = io.StringIO()


def _run(words: list[str]) -> int:
    command = words[0] if words and words[0] in COMMANDS else None
    parser = make_parser(command)
    if command is None:
        if words and not words[0].startswith("-"):
            known = ", ".join(COMMANDS)
            print(f"quorate: unknown command {words[0]!r}: it is one of {known}", file=sys.stderr)
            return 1
        parser.parse_args(words)
        parser.print_help()
        return 0
    parsed = parser.parse_args(words)
    # The command's name in its trace.
    parsed.command = command
    status: int = parsed.run(parsed)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
