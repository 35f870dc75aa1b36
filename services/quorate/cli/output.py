"""What commands say and how they fail: results on stdout, one line for whatever is wrong on stderr.

Nothing here needs a connection, so that commands without one start at once.
"""

from __future__ import annotations

import reprlib
import sys
from typing import TYPE_CHECKING

from quorate.process.output_encoding import json_for_stdout
from quorate.records.errors import ErrorCode
from quorate.records.escaping import written_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.api.admin_api import AdminError


class CommandError(Exception):
    """The command cannot do what it was asked; the message is for the user, remedy included."""


def parse_setting(flag: str, text: str) -> tuple[str, str]:
    """`key=value`; the value may be empty. Raises CommandError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise CommandError(f"{flag}: {text!r} is no KEY=VALUE")
    return key.strip(), value


def parse_keys(flag: str, text: str) -> list[str]:
    """`K,K`. Raises CommandError."""
    keys = [key.strip() for key in text.split(",")]
    if "" in keys:
        raise CommandError(f"{flag}: {text!r} has an empty key: name each, with a comma between")
    return keys


def item_error(error: ErrorCode, message: str) -> str:
    """One item's error as it is shown."""
    return f"{error.name}: {message}" if message else error.name


def admin_error(error: AdminError) -> str:
    """Kafka's error, the reason in one word, and the sentence with the remedy."""
    name = error.error.name
    reason = "" if error.reason == name else f" ({error.reason})"
    return f"{name}{reason}: {error.message}"


def no_text(error: UnicodeEncodeError) -> str:
    """What is wrong with an argument of which the shell gave bytes that stand for no characters."""
    shown = reprlib.repr(error.object)
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        return f"{shown} has bytes outside of {encoding}: set LC_ALL to a locale of UTF-8"
    return f"{shown} has bytes that are no UTF-8: give it as UTF-8 text"


def fail(message: str) -> int:
    """Say on stderr what went wrong; the exit status to return."""
    print(f"error: {message}", file=sys.stderr)
    return 1


def warn(message: str) -> None:
    """Say on stderr what is odd but stops nothing."""
    print(f"warning: {message}", file=sys.stderr)


def print_json(value: object) -> None:
    """One JSON document on one line, as scripts read it."""
    print(json_for_stdout(value), flush=True)


def print_offset(offset: int) -> None:
    """Beside text on stdout, which keeps Kafka's shape."""
    print(f"committed offset: {offset}", file=sys.stderr)


def report_errors(items: Sequence[tuple[str, ErrorCode, str]]) -> int:
    """Say on stderr what was refused; the exit status."""
    refused = [item for item in items if item[1] is not ErrorCode.NONE]
    for name, error, message in refused:
        print(
            f"error: {written_out(name)}: {item_error(error, written_out(message))}",
            file=sys.stderr,
        )
    return 1 if refused else 0
