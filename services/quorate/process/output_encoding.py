"""Standard output in an encoding that lacks characters: these are escaped, and JSON is ASCII.

Names and values come from a quorum, which keeps all of Unicode. A terminal may take ASCII or
Latin-1 alone (`LC_ALL=C`, `PYTHONIOENCODING`). A change that is committed must not end as an error
because a name in its report cannot be written.
"""

from __future__ import annotations

import codecs
import io
import json
import sys
from typing import Final

_FAILING: Final = ("strict", "surrogateescape")


def escape_unencodable() -> None:
    """Have stdout of this process write `\\xe9` or `\\u20ac` for a character that it lacks.

    Error handlers that a user has chosen in `PYTHONIOENCODING`, such as `replace`, stay.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in _FAILING:
        sys.stdout.reconfigure(errors="backslashreplace")


def json_for_stdout(value: object, separators: tuple[str, str] | None = None) -> str:
    """One JSON document without a line break: all of Unicode in UTF-8, else ASCII with escapes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    return json.dumps(value, ensure_ascii=not is_utf8, separators=separators)
