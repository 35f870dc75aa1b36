"""Strict parsing of integers within bounds: ASCII digits with at most a sign.

Python's own `int` also accepts underscores, blanks and the digits of every script, so a typing
error would pass for an unintended number.
"""

from __future__ import annotations

import re
from typing import Final

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
_NUMBER: Final = re.compile(r"-?[0-9]{1,20}", re.ASCII)


def whole_number(text: str, *, minimum: int = 0, maximum: int = INT64_MAX) -> int:
    """Parse `text`. Raises ValueError that begins with it and states the requirement."""
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text!r}: a whole number is needed, in digits")
    number = int(text)
    if not minimum <= number <= maximum:
        is_open = maximum == INT64_MAX and number < minimum
        bounds = f"{minimum} or more" if is_open else f"{minimum} to {maximum}"
        raise ValueError(f"{number}: it must be {bounds}")
    return number


def is_whole_number(text: str, *, minimum: int = 0, maximum: int = INT64_MAX) -> bool:
    """True if `whole_number` accepts it."""
    try:
        whole_number(text, minimum=minimum, maximum=maximum)
    except ValueError:
        return False
    return True
