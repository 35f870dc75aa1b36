"""Size of a log as known before Spark starts: small logs are read differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.pipeline.source.directories import Directory

# With its JSON such a log takes some hundred MiB in Java, whose heap has 1 GiB or more.
SMALL_LOG_BYTES_MAX: Final = 16 * 1024 * 1024


def is_small_log(directories: Sequence[Directory]) -> bool:
    """True if the total size of these directories is small; False without a directory.

    The size of a running quorum's log is not known.
    """
    size_bytes = 0
    for directory in directories:
        size_bytes += sum(segment.size_bytes for segment in directory.segments)
        size_bytes += sum(snapshot.size_bytes for snapshot in directory.snapshots)
    return bool(directories) and size_bytes <= SMALL_LOG_BYTES_MAX
