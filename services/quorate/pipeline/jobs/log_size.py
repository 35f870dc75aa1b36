"""The size of a log as far as it is known before Spark starts: small ones are read another way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.directories import find_directories
from quorate.pipeline.source.options import OptionError, parse_options

if TYPE_CHECKING:
    from collections.abc import Mapping

# With its JSON such a log takes some hundred MiB in Java, whose heap has 1 GiB or more.
SMALL_LOG_BYTES_MAX: Final = 16 * 1024 * 1024


def is_small_log(options: Mapping[str, str]) -> bool:
    """True if the source's options name directories whose files are small together.

    The size of a running quorum's log is not known, nor is that of a directory which only other
    machines have. Errors are the source's to tell.
    """
    try:
        directories = find_directories(parse_options(options).paths)
    except OptionError:
        return False
    size_bytes = 0
    for directory in directories:
        size_bytes += sum(segment.size_bytes for segment in directory.segments)
        size_bytes += sum(snapshot.size_bytes for snapshot in directory.snapshots)
    return bool(directories) and size_bytes <= SMALL_LOG_BYTES_MAX
