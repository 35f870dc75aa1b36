"""Size limits of Kafka's record fields, checked before a record is written.

Quorate's decoders accept longer strings than Kafka's, because what was once written must stay
readable. So the servers must check these limits.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Final

STRING_BYTES_MAX: Final = 32_767
INT16_MAX: Final = 32_767
INT32_MAX: Final = 2**31 - 1
# The maximum length of a character in UTF-8, in bytes.
_CHARACTER_BYTES_MAX: Final = 4
# A string of at most this many characters fits, and need not be encoded to be measured.
SHORT_STRING: Final = STRING_BYTES_MAX // _CHARACTER_BYTES_MAX


def string_problem(text: str) -> str | None:
    """The problem with a string in a record, as the end of a sentence; None if it fits."""
    if len(text) <= SHORT_STRING:
        return None
    size = len(text.encode(errors="surrogatepass"))
    if size <= STRING_BYTES_MAX:
        return None
    return f"has {size} bytes and may have {STRING_BYTES_MAX} at most, shorten it"


def record_problem(value: object) -> str | None:
    """The string of a record, or of a structure in it, that is too long; None if all fit."""
    if not is_dataclass(value):
        return None
    for field in fields(value):
        item = getattr(value, field.name)
        for part in item if isinstance(item, tuple) else (item,):
            problem = string_problem(part) if isinstance(part, str) else None
            if problem is not None:
                return f"{field.name} {problem}"
            problem = record_problem(part)
            if problem is not None:
                return problem
    return None
