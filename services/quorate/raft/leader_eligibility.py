"""Eligibility of this replica to lead: its state machine is caught up, its disk responds.

A replica is also not eligible if a leader has seen another process as this voter, or if its cluster
has another quorum. Rules `unready_voter_waits`, `disk_call_deadline`, `one_process_per_voter` and
`sole_voter_conflict`.
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
    """Conditions, apart from votes, that keep a replica from leading."""

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
        # The time until which a leader's report is valid that another process is this voter.
        self.refused_until: Millis | None = None
        # The start of an outstanding flush, or its last progress; None without one.
        self.unflushed_since: Millis | None = None
        self._waited_in_epoch: Epoch | None = None

    @property
    def is_refused(self) -> bool:
        """True while a leader considers another process to be this voter.

        See rule `one_process_per_voter`.
        """
        return self.refused_until is not None and self._timers.now < self.refused_until

    @property
    def flush_deadline(self) -> Millis | None:
        """The time at which a flush in progress becomes too slow; None without one.

        See rule `disk_call_deadline`.
        """
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
        """Restart the measurement at a confirmed flush, if more is outstanding."""
        self.unflushed_since = None

    def should_defer_campaign(self, epoch: Epoch) -> bool:
        """True if a campaign must be deferred: the disk hangs, or once per epoch.

        See rule `unready_voter_waits`.
        """
        if self.is_disk_stalled:
            return True
        if self.is_loaded or self._waited_in_epoch == epoch:
            return False
        self._waited_in_epoch = epoch
        self._out.note(TraceEventKind.NOT_READY, "not ready to lead: waits one election timeout")
        return True
