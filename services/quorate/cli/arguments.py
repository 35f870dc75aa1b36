"""Types of command line arguments: what argparse calls with the text of a flag."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from quorate.settings.numbers import INT64_MAX, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable

_DURATION: Final = re.compile(r"([0-9]{1,9})([smh])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


def duration_s(text: str) -> int:
    """Seconds, minutes or hours, of which there is at least one: `90s`, `10m`, `2h`."""
    match = _DURATION.fullmatch(text)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r}: a time such as 90s, 10m or 2h is needed")
    return int(match[1]) * _SECONDS[match[2]]


def number(minimum: int = 0, maximum: int = INT64_MAX) -> Callable[[str], int]:
    """A whole number within bounds; argparse puts the flag before what is wrong."""

    def parse(text: str) -> int:
        try:
            return whole_number(text, minimum=minimum, maximum=maximum)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse
