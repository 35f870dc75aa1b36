"""argparse types: durations, bounded integers; and the text of files that flags name."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from quorate.cli.output import CommandError
from quorate.settings.input_files import read_input
from quorate.settings.integers import INT64_MAX, whole_number
from quorate.settings.regular_files import NotRegularFileError

if TYPE_CHECKING:
    from collections.abc import Callable

_DURATION: Final = re.compile(r"([0-9]{1,9})([smh])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


def duration_s(text: str) -> int:
    """Parse seconds, minutes or hours, at least one: `90s`, `10m`, `2h`."""
    match = _DURATION.fullmatch(text)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r}: a time such as 90s, 10m or 2h is needed")
    return int(match[1]) * _SECONDS[match[2]]


def number(minimum: int = 0, maximum: int = INT64_MAX) -> Callable[[str], int]:
    """Make a type for integers within bounds; argparse puts the flag before its error."""

    def parse(text: str) -> int:
        try:
            return whole_number(text, minimum=minimum, maximum=maximum)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def text_of_file(flag: str, path: str, bytes_max: int) -> str:
    """The UTF-8 text of a file or a pipe. Raises CommandError that names the flag and the file.

    Not for use on an event loop: it waits for the program that writes into the pipe.
    """
    try:
        return read_input(path, bytes_max).decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{flag}: {path}: {error.strerror}") from error
    except NotRegularFileError as error:
        raise CommandError(f"{flag}: {path}: {error}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{flag}: {path}: no UTF-8: {error.reason}") from error
