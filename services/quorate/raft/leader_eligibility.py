"""Eligibility of this replica to lead: state machine caught up (rule 11), disk alive (24).

A replica is also not eligible if a leader has seen another process as this voter (33), or if there
is another quorum of its cluster (34).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.identity.second_quorum import SecondQuorum
from quorate.raft.trace_events import TraceEventKind
from quorate.records.ids import Millis

if TYPE_CHECKING:
    from quorate.raft.api import RaftConfig
    from quorate.raft.identity.rival_leader import Rival
    from quorate.raft.outbox import Outbox
    from quorate.raft.replication.log_state import LogState
    from quorate.raft.timers import Timers
    from quorate.records.ids import Epoch


class LeaderEligibility:
    """Conditions besides votes that keep one replica from leading."""

    def __init__(
        self,
        config: RaftConfig,
        log: LogState,
        timers: Timers,
        out: Outbox,
        rival: Rival | None = None,
    ) -> None:
        self._flush_ms = config.check_quorum_timeout_ms
        self._log = log
        self._timers = timers
        self._out = out
        self.is_loaded = True
        self.rival = rival
        self.second_quorum = SecondQuorum(config, timers, out)
        # The end of the time for which a leader's report holds that another process is this voter.
        self.refused_until: Millis | None = None
        # The time since when a flush has been outstanding without progress; None without one.
        self.unflushed_since: Millis | None = None
        self._waited_in_epoch: Epoch | None = None

    @property
    def is_refused(self) -> bool:
        """True while a leader takes another process for this voter (rule 33)."""
        return self.refused_until is not None and self._timers.now < self.refused_until

    @property
    def flush_deadline(self) -> Millis | None:
        """The time from which a flush in progress is too slow (rule 24); None without one."""
        since = self.unflushed_since
        return None if since is None else Millis(since + self._flush_ms)

    @property
    def is_disk_stalled(self) -> bool:
        """True if a flush is outstanding for longer than a leader may wait for its voters."""
        deadline = self.flush_deadline
        return deadline is not None and deadline <= self._timers.now

    def update_flush_timer(self) -> None:
        """Start or stop measuring how long the disk takes."""
        if self._log.flushed >= self._log.end.offset:
            self.unflushed_since = None
        elif self.unflushed_since is None:
            self.unflushed_since = self._timers.now

    def on_flush_progress(self) -> None:
        """The disk has confirmed a flush: if more is outstanding, that counts from here."""
        self.unflushed_since = None

    def should_defer_campaign(self, epoch: Epoch) -> bool:
        """Rule 11: a state machine that could not lead yet defers once per epoch."""
        if self.is_disk_stalled:
            return True
        if self.is_loaded or self._waited_in_epoch == epoch:
            return False
        self._waited_in_epoch = epoch
        self._out.note(TraceEventKind.NOT_READY, "not ready to lead: waits one election timeout")
        return True
