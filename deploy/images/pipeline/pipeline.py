"""The file that spark-submit is given: `local:///opt/quorate/pipeline.py JOB ...`.

It has a path that changes with no version of Python, and a folder without modules that could be
taken for others. `{time}` in a word is when the job began, such as 20261120T033000Z: the words of a
ScheduledSparkApplication are the same each night, and its pages have names of their own.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quorate.pipeline.command import main

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_time(words: Sequence[str], now: datetime) -> list[str]:
    """The words with the moment in place of `{time}`."""
    moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return [word.replace("{time}", moment) for word in words]


if __name__ == "__main__":
    raise SystemExit(main(with_time(sys.argv[1:], datetime.now(UTC))))
