"""Commands that print the contents of the page, for the same log."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from datetime import datetime


@value_type
class LogCommands:
    """Commands for one log; `words` are the flags that select it and the range that is read."""

    words: tuple[str, ...] = ("--path", "DIR")

    def command(self, job: str, table: str = "", **flags: str) -> str:
        """The command for a table of a job; `where="x > 3"` among the flags is `--where 'x > 3'`.

        A flag of this command replaces the same flag in `words`.
        """
        own = {f"--{name.replace('_', '-')}": said for name, said in flags.items()}
        kept = [
            word
            for flag, said in zip(self.words[::2], self.words[1::2], strict=True)
            if flag not in own
            for word in (flag, said)
        ]
        chosen = ["--table", table] if table else []
        asked = [word for flag in own.items() for word in flag]
        return shlex.join(["quorate", "pipeline", job, *kept, *chosen, *asked])


def commands_of(arguments: argparse.Namespace) -> LogCommands:
    """Commands that read the same log and range as these arguments."""
    said = [("--path", path) for path in arguments.path or ()]
    said += [
        (flag, told)
        for flag, told, default in (
            ("--bootstrap-controller", arguments.bootstrap_controller, None),
            ("--command-config", arguments.command_config, None),
            ("--starting-offsets", arguments.starting_offsets, "earliest"),
            ("--ending-offsets", arguments.ending_offsets, "latest"),
            ("--isolation", arguments.isolation, "committed"),
        )
        if told != default
    ]
    return LogCommands(tuple(word for pair in said for word in pair))


def iso_time(at: datetime) -> str:
    """Format a time for a flag."""
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def ids_in_sql(ids: Iterable[int]) -> str:
    """Ids as an array in SQL; an empty one is valid."""
    return f"cast(array({', '.join(map(str, ids))}) as array<int>)"
