"""When a node that ended with damage is opened again: at once, then ever later (rule 32).

Damage that recovery cannot mend comes back each time, and a process that starts over many times a
second writes its disk and its log full of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quorate.raft.api import Random

FIRST_S: Final = 0.1
LONGEST_S: Final = 60.0
SHORTAGE_S: Final = 1.0
# A node that ran for that long has healed, and what ends it then is something new.
LASTING_S: Final = 300.0


class Restarts:
    """How long to wait before the next life of a node."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._wait_s = 0.0

    def next_wait_s(self, lived_s: float) -> float:
        """The wait after a life of `lived_s`: none after the first, then twice as long each time.

        The last half of it is drawn, so that controllers do not come back all at one moment.
        """
        wait_s = 0.0 if lived_s >= LASTING_S else self._wait_s
        self._wait_s = min(max(2 * wait_s, FIRST_S), LONGEST_S)
        return wait_s / 2 * (1 + self._random.random())

    def shortage_wait_s(self) -> float:
        """The wait of a process that ran short, and whose connections are all closed.

        Others get a moment to give back what they hold, and no longer one each time: the disk is
        healthy.
        """
        return SHORTAGE_S * (1 + self._random.random())
