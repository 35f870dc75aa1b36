"""Whole numbers in text that people write: ASCII digits with a sign at most, within bounds.

Python's own `int` also takes underscores, blanks and the digits of every script: what somebody
mistyped would pass for a number that nobody meant.
"""

from __future__ import annotations

import re
from typing import Final

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
_NUMBER: Final = re.compile(r"-?[0-9]{1,20}", re.ASCII)


def whole_number(text: str, *, minimum: int = 0, maximum: int = INT64_MAX) -> int:
    """The number in `text`. Raises ValueError that begins with it and says what is needed."""
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text!r}: a whole number is needed, in digits")
    number = int(text)
    if not minimum <= number <= maximum:
        is_open = maximum == INT64_MAX and number < minimum
        bounds = f"{minimum} or more" if is_open else f"{minimum} to {maximum}"
        raise ValueError(f"{number}: it must be {bounds}")
    return number


def is_whole_number(text: str, *, minimum: int = 0, maximum: int = INT64_MAX) -> bool:
    """Whether `whole_number` takes it."""
    try:
        whole_number(text, minimum=minimum, maximum=maximum)
    except ValueError:
        return False
    return True
