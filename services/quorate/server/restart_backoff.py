"""Backoff between restarts of a node that keeps failing on damage (rule `retry_backoff`).

The first restart is immediate, later ones wait ever longer. Damage that recovery cannot repair
returns each time, and a process that restarts many times a second fills its disk and its log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quorate.raft.api import Random

FIRST_S: Final = 0.1
LONGEST_S: Final = 60.0
SHORTAGE_S: Final = 1.0
# A node that ran for this many seconds has healed; a later end has a new cause.
HEALTHY_AFTER_S: Final = 300.0


class RestartBackoff:
    """The waits before the next restart of a node."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._wait_s = 0.0

    def next_wait_s(self, lived_s: float) -> float:
        """The wait after a node that ran for `lived_s`: 0 at first, then doubled each time.

        The last half of it is randomized, so that controllers do not restart all at the same
        moment.
        """
        wait_s = 0.0 if lived_s >= HEALTHY_AFTER_S else self._wait_s
        self._wait_s = min(max(2 * wait_s, FIRST_S), LONGEST_S)
        return wait_s / 2 * (1 + self._random.random())

    def shortage_wait_s(self) -> float:
        """The wait after resource exhaustion, when all connections of the process are closed.

        It gives other processes a moment to release resources, and does not grow: the disk is
        healthy.
        """
        return SHORTAGE_S * (1 + self._random.random())
