"""Counters and histograms of commits, elections and records, as a driver observer.

The loop writes them, scrapes read them. A commit costs two clock reads and one observation, however
many records it has.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

from quorate.raft.api import AppendToLog, PublishProgress
from quorate.raft.messages import FetchedBatches
from quorate.raft.trace_events import TraceEventKind
from quorate.server.driver.observers import Observer
from quorate.telemetry.histograms import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from quorate.raft.api import Event, Update
    from quorate.raft.trace_events import Value
    from quorate.records.ids import Epoch, NodeId, Offset

# Seconds, around the values in docs/performance.md: from commits within a millisecond to commits on
# a busy disk.
COMMIT_BOUNDS_S: Final = (
    *(0.0005, 0.001, 0.0015, 0.002, 0.005, 0.01),
    *(0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
# Seconds: from elections among nearby replicas to elections while the members of a quorum return
# one at a time.
ELECTION_BOUNDS_S: Final = (
    *(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25),
    *(0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
)
_NOMINEES: Final = ("prospective", "candidate")
_KNOWS_LEADER: Final = ("leader", "follower")


class RaftMeters(Observer):
    """Commits, elections and records of one replica since its node started."""

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.commits = Histogram(COMMIT_BOUNDS_S)
        self.elections = Histogram(ELECTION_BOUNDS_S)
        self.appended_records = 0
        self.fetched_records = 0
        self.new_leaders = 0
        # Seconds since 1970 of the last election that this replica won, by the cause that began it.
        self.last_won: Mapping[str, float] = {}
        self._clock = clock
        self._wall = wall
        self._uncommitted: deque[tuple[Offset, float]] = deque()
        self._leader: tuple[Epoch, NodeId] | None = None
        # Time since which this replica has requested votes without discovering a newer leader.
        self._asks_since_s: float | None = None
        self._asks_because: str | None = None

    def stepped(self, event: Event | None, update: Update) -> None:
        del event
        for note in update.trace:
            if note.kind is TraceEventKind.ROLE_TAKEN:
                self.role_taken(note.values)
        for effect in update.effects:
            if isinstance(effect, AppendToLog):
                self.appended(effect)
            elif isinstance(effect, PublishProgress):
                self.progressed(effect)

    def appended(self, effect: AppendToLog) -> None:
        """Count a batch that is about to be written, then flushed."""
        count = effect.end.offset - effect.base_offset
        if isinstance(effect.payload, FetchedBatches):
            self.fetched_records += count
        else:
            self.appended_records += count
            self._uncommitted.append((effect.end.offset, self._clock()))

    def progressed(self, progress: PublishProgress) -> None:
        """Take a new high watermark, role, epoch or leader."""
        if self._uncommitted:
            self._commit(progress)
        role, leader_id = progress.role, progress.leader_id
        if role in _NOMINEES:
            if self._asks_since_s is None:
                self._asks_since_s = self._clock()
        elif leader_id is not None and role in _KNOWS_LEADER:
            if (progress.epoch, leader_id) != self._leader:
                self._follow(progress.epoch, leader_id, is_own=progress.is_leader)
            # Otherwise the leader that this replica timed out on has responded again.
            self._asks_since_s = None

    def role_taken(self, taken: Mapping[str, Value]) -> None:
        """Note a role transition.

        The cause of the first round is kept until another replica or this one leads.
        """
        role = taken["to_role"]
        if role in _NOMINEES:
            self._asks_because = self._asks_because or str(taken["cause"])
            return
        if role == "leader" and self._asks_because is not None:
            # Replaced atomically, because scrapes read it from another thread.
            self.last_won = {self._asks_because: self._wall()}
        self._asks_because = None

    def _commit(self, progress: PublishProgress) -> None:
        """Observe commit latencies; batches uncommitted at a resignation are not counted."""
        if not progress.is_leader:
            self._uncommitted.clear()
            return
        now_s, high_watermark = self._clock(), progress.high_watermark or 0
        while self._uncommitted and self._uncommitted[0][0] <= high_watermark:
            self.commits.observe(now_s - self._uncommitted.popleft()[1])

    def _follow(self, epoch: Epoch, leader_id: NodeId, *, is_own: bool) -> None:
        """Count a newly discovered leader; a single voter requested no votes."""
        self._leader = (epoch, leader_id)
        self.new_leaders += 1
        since_s = self._asks_since_s
        if since_s is not None:
            self.elections.observe(self._clock() - since_s)
        elif is_own:
            self.elections.observe(0.0)
