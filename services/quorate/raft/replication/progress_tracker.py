"""The leader's view of each replica: last fetch, acknowledged offset, endpoints.

The fetch offset of a replica is its flushed end; check-quorum and the high watermark depend on it
(Kafka: LeaderState; rules `observer_lag_baseline` and `check_quorum_restart`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.membership.shutdown_permit_state import on_fetch
from quorate.raft.roles import Progress
from quorate.records.ids import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from quorate.raft.messages import FetchRequest
    from quorate.raft.replica import Replica
    from quorate.raft.roles import Leader
    from quorate.records.ids import ReplicaKey
    from quorate.records.voters import Endpoint, VoterSet

# Port, tags and lengths of an endpoint in a response.
_ENDPOINT_BYTES: Final = 16


class ProgressTracker:
    """The progress of the replicas that fetch from this one."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica

    def known_key(self, replica: ReplicaKey | None) -> ReplicaKey | None:
        """The replica's key in the voter set (kraft.version 0 has no directories)."""
        if replica is None:
            return None
        voter = self.replica.voters.voter(replica)
        return voter.key if voter is not None else replica

    def rekey(self, role: Leader) -> None:
        """Index by keys with directory ids, which the voters get with kraft.version 1."""
        for key, progress in list(role.progress.items()):
            voter = self.replica.voters.by_id(key.node_id)
            if key.directory_id is None and voter is not None and voter.key != key:
                del role.progress[key]
                role.progress[voter.key] = progress
                if (leave := role.shutdown_permits.pop(key, None)) is not None:
                    role.shutdown_permits[voter.key] = leave
                if (doubles := role.doubles.pop(key, None)) is not None:
                    role.doubles[voter.key] = doubles
        role.parked.rekey(lambda fetch: self.known_key(fetch.request.replica))

    def voters_added(self, role: Leader, before: VoterSet) -> None:
        """Reset a new voter's acknowledged offset: those of observers are not trusted."""
        for voter in self.replica.voters:
            progress = role.progress.get(voter.key)
            if progress is not None and before.by_id(voter.key.node_id) is None:
                progress.fetch_offset = None

    def on_any_fetch(self, role: Leader, key: ReplicaKey) -> None:
        """Record a Fetch of a voter, even if its log may diverge.

        See rule `live_voter_not_evicted`.
        """
        role.progress.setdefault(key, Progress()).last_contact_ms = self.replica.timers.now

    def on_fetch(self, role: Leader, key: ReplicaKey | None, *, is_voter: bool) -> None:
        """Record a Fetch that continues this log; check-quorum counts those of voters."""
        replica = self.replica
        if key is None:
            return
        # Moved to the end: replicas are in order of their last Fetch.
        progress = role.progress.pop(key, None)
        if progress is None:
            progress = Progress()
            if not is_voter:
                self._make_room(role)
        if role.shutdown_permits:
            on_fetch(replica, role, key, progress.last_fetch_ms)
        progress.last_fetch_ms = replica.timers.now
        role.progress[key] = progress
        if not is_voter or key.node_id == replica.node_id:
            return
        check_quorum, voters = role.check_quorum, replica.voters
        needed = voters.majority - (1 if replica.is_voter else 0)
        if check_quorum.count_fetch(key.node_id, needed):
            check_quorum.restart(replica.timers.check_quorum_deadline())

    def acknowledge(
        self,
        role: Leader,
        key: ReplicaKey | None,
        request: FetchRequest,
        *,
        is_voter: bool,
        is_counted: bool = True,
    ) -> None:
        """Record the flushed end of the replica, and the last time at which it was caught up.

        If another process may still be this voter, the flushed end of that one counts
        (rule `one_process_per_voter`).
        """
        replica, now = self.replica, self.replica.timers.now
        if key is None:
            return
        progress = role.progress[key]
        if request.fetch_offset < (progress.fetch_offset or 0):
            self.reset_progress(role, key)
        if is_counted:
            progress.fetch_offset = request.fetch_offset
        endpoints = request.replica_endpoints
        if endpoints != progress.endpoints and (
            _size(endpoints) <= replica.config.observer_endpoints_max
        ):
            if is_voter and progress.endpoints:
                self._has_moved(role, key)
            progress.endpoints = endpoints
        if request.high_watermark >= 0:
            # It sends one. If a later Fetch has none, it has been restarted.
            progress.told_high_watermark = UNKNOWN_OFFSET
        available = replica.commit_state.readable_by(is_voter=is_voter)
        if request.fetch_offset >= available:
            progress.last_caught_up_ms = now
        elif (
            progress.caught_up_mark is not None and request.fetch_offset >= progress.caught_up_mark
        ):
            # It has everything that was available at its previous Fetch: it was caught up then.
            progress.last_caught_up_ms = progress.mark_ms
        progress.caught_up_mark, progress.mark_ms = available, now

    def _has_moved(self, role: Leader, key: ReplicaKey) -> None:
        """Handle a voter's announcement of other endpoints: check if they can be reached."""
        role.unconfirmed.add(key)
        role.begin_epoch_deadline = self.replica.timers.now

    def reset_progress(self, role: Leader, key: ReplicaKey | None) -> None:
        """Drop the caught-up times of a replica that lost what it acknowledged."""
        progress = role.progress.get(key) if key is not None else None
        if progress is not None:
            progress.last_caught_up_ms = progress.caught_up_mark = None

    def _make_room(self, role: Leader) -> None:
        """Drop the longest silent observer if full: any client may make up observer ids."""
        replica = self.replica
        if len(role.progress) < replica.config.observers_max:
            return
        silent = next((key for key in role.progress if key not in replica.voters), None)
        if silent is not None:
            del role.progress[silent]

    def forget_observers(self, role: Leader) -> None:
        """Drop the observers that have not fetched for their session timeout."""
        replica = self.replica
        oldest = replica.timers.now - replica.config.observer_session_timeout_ms
        for key, progress in list(role.progress.items()):
            if key not in replica.voters and (progress.last_fetch_ms or 0) < oldest:
                del role.progress[key]


def _size(endpoints: tuple[Endpoint, ...]) -> int:
    """Approximate size of these endpoints in DescribeQuorum, in bytes."""
    return sum(len(e.name) + len(e.host) + _ENDPOINT_BYTES for e in endpoints)
