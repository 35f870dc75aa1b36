"""Tracks a follower's contact with its leader: responsive, failing, rejecting or contradicting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import CallFailure
from quorate.raft.backoff import backoff_ms
from quorate.raft.replication.leader_contradictions import LONGEST_SHARE
from quorate.raft.request_manager import Call, CallKind
from quorate.raft.roles import Follower
from quorate.raft.trace_events import NoteKind
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.election.failure_detector import Suspecting
    from quorate.raft.election.leader_updates import Learning
    from quorate.raft.last_contact import Hearing
    from quorate.raft.messages import FetchResponse, FetchSnapshotResponse
    from quorate.raft.replica import Replica


class Contact:
    """Updates the contact with a leader at each of its responses, and at missing ones."""

    def __init__(
        self, replica: Replica, learning: Learning, suspecting: Suspecting, hearing: Hearing
    ) -> None:
        self.r = replica
        self.learning = learning
        self.suspecting = suspecting
        self.hearing = hearing

    def role_of(self, call: Call) -> Follower | None:
        """The role in which this request was sent; None if that leader is no longer followed."""
        role = self.r.role
        if isinstance(role, Follower) and call.epoch == self.r.epoch and call.to == role.leader_id:
            return role
        return None

    def heard(self, role: Follower) -> None:
        """Handle a valid response of the leader."""
        r = self.r
        if role.has_ended:
            return
        role.has_fetched = True
        r.readiness.refused_until = None
        self.hearing.heard_leader()
        role.refusals, role.refused = 0, None
        role.is_failing = False
        r.calls.succeeded(CallKind.FETCH, role.leader_id)
        r.lost_rounds = 0
        role.fetch_deadline = r.timers.after(r.config.fetch_timeout_ms)
        r.suspicion = None

    def not_believed(self, role: Follower, reason: str) -> None:
        """Ignore a contradiction, report it once, retry later; the leader is not live.

        See rule `leader_contradiction`.
        """
        r = self.r
        role.has_fetched = False
        text = r.contradictions.add(role.leader_id, r.epoch, reason, r.timers.now)
        r.out.note(NoteKind.CONTRADICTED, text, leader_id=role.leader_id)

    def agreed(self) -> None:
        """Record that this log and the leader's are consistent again."""
        r = self.r
        r.out.note(NoteKind.RECONCILED, r.contradictions.end(r.epoch))
        if isinstance(r.role, Follower):
            r.second_quorum.take_back(r.role.leader_id)

    def failed(self, kind: CallKind, call: Call, role: Follower, failure: CallFailure) -> None:
        """Handle a missing or unreadable response."""
        r = self.r
        if failure is CallFailure.UNREADABLE:
            self.not_believed(role, failure.value)
            return
        role.is_failing = True
        r.back_off(kind, call.to)
        if kind is CallKind.FETCH and failure is CallFailure.DISCONNECTED:
            self.suspecting.stream_broke(call)

    def refused(
        self, kind: CallKind, call: Call, response: FetchResponse | FetchSnapshotResponse
    ) -> None:
        """Handle an error, possibly with another leader. A repeated error is logged once."""
        r = self.r
        role = self.role_of(call)
        if role is None or role.refused is not response.error:
            text = f"{call.to} answers {kind.value} with {response.error.name}"
            r.out.note(NoteKind.REFUSED_BY_PEER, text, peer=call.to, error=response.error.name)
        self.learning.learn(response.leader, f"answer of {call.to}")
        role = self.role_of(call)
        if role is None:
            return
        if response.error is ErrorCode.DUPLICATE_VOTER:
            # This leader is alive, and the other process fetches from it
            # (rule `one_process_per_voter`).
            role.has_fetched = False
            until = r.timers.after(r.config.fetch_timeout_ms)
            r.readiness.refused_until = until
            if not role.has_ended:
                role.fetch_deadline = until
        if response.error is ErrorCode.INCONSISTENT_VOTER_SET:
            # This leader has compared both logs: it has other voters at the same position (34).
            reason = "it has other voters where this log has the same epoch"
            r.second_quorum.prove(role.leader_id, r.epoch, reason)
        # Another process may have this address now.
        role.is_failing = True
        role.refusals, role.refused = role.refusals + 1, response.error
        delay = backoff_ms(
            role.refusals,
            first_ms=r.config.retry_backoff_ms,
            longest_ms=r.config.fetch_timeout_ms // LONGEST_SHARE,
            random=r.timers.random,
        )
        r.calls.back_off(kind, call.to, r.timers.after(delay))
