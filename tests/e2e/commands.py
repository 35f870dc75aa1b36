"""Commands of this machine, and the error of one that failed."""

from __future__ import annotations

import subprocess
from typing import Final

COMMAND_S: Final = 600


class CommandFailedError(Exception):
    """A command ended with another status than 0; the message has what it said."""


def run(*command: str, text: str | None = None, timeout_s: float = COMMAND_S) -> str:
    """The stdout of a command. Raises CommandFailedError."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, timeout=timeout_s
        )
    except subprocess.TimeoutExpired as error:
        raise CommandFailedError(f"{' '.join(command)}: not done in {timeout_s} s") from error
    if done.returncode != 0:
        raise CommandFailedError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout}")
    return done.stdout
