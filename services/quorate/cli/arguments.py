"""Types of command line arguments: what argparse calls with the text of a flag."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from quorate.settings.numbers import INT64_MAX, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable


def number(minimum: int = 0, maximum: int = INT64_MAX) -> Callable[[str], int]:
    """A whole number within bounds; argparse puts the flag before what is wrong."""

    def parse(text: str) -> int:
        try:
            return whole_number(text, minimum=minimum, maximum=maximum)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse
