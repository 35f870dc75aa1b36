"""The current time of a step, and randomized election and check-quorum deadlines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import Millis

if TYPE_CHECKING:
    from quorate.raft.api import RaftConfig, Random


class Timers:
    """What time it is for one replica, and its draws; `now` is set once at each step."""

    def __init__(self, config: RaftConfig, random: Random) -> None:
        self.now = Millis(0)
        self.random = random
        self._election_timeout_ms = config.election_timeout_ms
        self._check_quorum_timeout_ms = config.check_quorum_timeout_ms

    def after(self, delay_ms: int) -> Millis:
        """The moment that lies so far ahead; behind, where the delay is negative."""
        return Millis(self.now + delay_ms)

    def draw(self, below_ms: int) -> Millis:
        """A draw from 0 up to, not including, `below_ms`."""
        return Millis(int(self.random.random() * below_ms))

    def draw_election_timeout(self) -> Millis:
        """Election timeout plus a draw below it, so that rivals rarely meet."""
        timeout = self._election_timeout_ms
        return Millis(timeout + int(self.random.random() * timeout))

    def check_quorum_deadline(self) -> Millis:
        return self.after(self._check_quorum_timeout_ms)
