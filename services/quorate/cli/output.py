"""Output and error conventions of the commands: results on stdout, one line per error on stderr.

Nothing here needs a connection, so that commands without one start fast.
"""

from __future__ import annotations

import reprlib
import sys
from typing import TYPE_CHECKING

from quorate.process.output_encoding import json_for_stdout
from quorate.records.errors import ErrorCode
from quorate.records.escaping import escape_unprintable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.api.admin_api import AdminError


class CommandError(Exception):
    """The command cannot be carried out; the message is for the user and has the remedy."""


def parse_setting(flag: str, text: str) -> tuple[str, str]:
    """Parse `key=value`; the value may be empty. Raises CommandError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise CommandError(f"{flag}: {text!r} is no KEY=VALUE")
    return key.strip(), value


def parse_keys(flag: str, text: str) -> list[str]:
    """Parse `K,K`. Raises CommandError."""
    keys = [key.strip() for key in text.split(",")]
    if "" in keys:
        raise CommandError(f"{flag}: {text!r} has an empty key: name each, with a comma between")
    return keys


def item_error(error: ErrorCode, message: str) -> str:
    """The error of one item as shown."""
    return f"{error.name}: {message}" if message else error.name


def admin_error(error: AdminError) -> str:
    """Kafka's error, the keyword of the reason, and the sentence with the remedy."""
    name = error.error.name
    reason = "" if error.reason == name else f" ({error.reason})"
    return f"{name}{reason}: {error.message}"


def non_utf8_argument(error: UnicodeEncodeError) -> str:
    """The error text for an argument whose bytes are not valid characters."""
    shown = reprlib.repr(error.object)
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        return f"{shown} has bytes outside of {encoding}: set LC_ALL to a locale of UTF-8"
    return f"{shown} has bytes that are no UTF-8: give it as UTF-8 text"


def fail(message: str) -> int:
    """Print an error on stderr; returns the exit status."""
    print(f"error: {message}", file=sys.stderr)
    return 1


def warn(message: str) -> None:
    """Print a warning on stderr."""
    print(f"warning: {message}", file=sys.stderr)


def print_json(value: object) -> None:
    """Print one JSON document on one line, for scripts."""
    print(json_for_stdout(value), flush=True)


def print_offset(offset: int) -> None:
    """Print the offset on stderr, because text on stdout keeps Kafka's format."""
    print(f"committed offset: {offset}", file=sys.stderr)


def report_errors(items: Sequence[tuple[str, ErrorCode, str]]) -> int:
    """Print the rejected items on stderr; returns the exit status."""
    refused = [item for item in items if item[1] is not ErrorCode.NONE]
    for name, error, message in refused:
        print(
            f"error: {escape_unprintable(name)}: {item_error(error, escape_unprintable(message))}",
            file=sys.stderr,
        )
    return 1 if refused else 0
