"""The application file for spark-submit: `local:///opt/quorate/pipeline.py JOB ...`.

Its path does not depend on the version of Python, and its folder has no modules that could shadow
others. `{time}` in an argument is replaced by the time at which the job starts, such as
20261120T033000Z: the arguments of a ScheduledSparkApplication are the same each night, but each
night's page needs its own name.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quorate.pipeline.command import main

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_time(words: Sequence[str], now: datetime) -> list[str]:
    """The arguments with `now` in the place of `{time}`."""
    moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return [word.replace("{time}", moment) for word in words]


if __name__ == "__main__":
    raise SystemExit(main(with_time(sys.argv[1:], datetime.now(UTC))))
