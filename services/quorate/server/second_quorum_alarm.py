"""The error that a controller logs once a minute while it meets another quorum of its cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.core import RaftCore

EVERY_S: Final = 60.0


class SecondQuorumAlarm:
    """Limits the error to one a minute; the node calls `look` every second and logs the result."""

    def __init__(self, core: RaftCore, clock: Callable[[], float] = time.monotonic) -> None:
        self._second_quorum, self._clock = core.replica.second_quorum, clock
        self._next_s = clock()

    def look(self) -> str | None:
        """Return the error that is due now, or None."""
        line, now_s = self._second_quorum.remark(), self._clock()
        if line is None or now_s < self._next_s:
            return None
        self._next_s = now_s + EVERY_S
        return line
