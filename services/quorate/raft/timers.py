"""The current time of a step, and randomized election and check-quorum deadlines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import Millis

if TYPE_CHECKING:
    from quorate.raft.api import RaftConfig, Random


class Timers:
    """Time and random delays of one replica; `now` is set once at each step."""

    def __init__(self, config: RaftConfig, random: Random) -> None:
        self.now = Millis(0)
        self.random = random
        self._election_timeout_ms = config.election_timeout_ms
        self._check_quorum_timeout_ms = config.check_quorum_timeout_ms

    def after(self, delay_ms: int) -> Millis:
        """The time `delay_ms` from now; in the past if it is negative."""
        return Millis(self.now + delay_ms)

    def draw(self, below_ms: int) -> Millis:
        """A random delay from 0 (inclusive) to `below_ms` (exclusive)."""
        return Millis(int(self.random.random() * below_ms))

    def draw_election_timeout(self) -> Millis:
        """One to two election timeouts, at random, so that nominees rarely collide."""
        timeout = self._election_timeout_ms
        return Millis(timeout + int(self.random.random() * timeout))

    def check_quorum_deadline(self) -> Millis:
        return self.after(self._check_quorum_timeout_ms)
