"""Tracks a follower's contact with its leader: responsive, failing, rejecting or contradicting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import RequestFailure
from quorate.raft.backoff import backoff_ms
from quorate.raft.replication.leader_contradictions import RETRY_MAX_SHARE
from quorate.raft.request_manager import InFlightRequest, RequestKind
from quorate.raft.roles import Follower
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.election.failure_detector import LeaderFailureDetector
    from quorate.raft.election.leader_updates import LeaderUpdates
    from quorate.raft.last_contact import LastContact
    from quorate.raft.messages import FetchResponse, FetchSnapshotResponse
    from quorate.raft.replica import Replica


class LeaderContact:
    """Updates the contact with a leader at each of its responses, and at missing ones."""

    def __init__(
        self,
        replica: Replica,
        leader_updates: LeaderUpdates,
        leader_failure_detector: LeaderFailureDetector,
        last_contact: LastContact,
    ) -> None:
        self.replica = replica
        self.leader_updates = leader_updates
        self.leader_failure_detector = leader_failure_detector
        self.last_contact = last_contact

    def follower_for(self, in_flight_request: InFlightRequest) -> Follower | None:
        """The role in which this request was sent; None if that leader is no longer followed."""
        role = self.replica.role
        if (
            isinstance(role, Follower)
            and in_flight_request.epoch == self.replica.epoch
            and in_flight_request.to == role.leader_id
        ):
            return role
        return None

    def on_valid_response(self, role: Follower) -> None:
        """Handle a valid response of the leader."""
        replica = self.replica
        if role.leader_resigned:
            return
        role.has_fetched = True
        replica.leader_eligibility.refused_until = None
        self.last_contact.on_leader_response()
        role.error_count, role.last_error = 0, None
        role.is_fetch_failing = False
        replica.request_manager.succeeded(RequestKind.FETCH, role.leader_id)
        replica.failed_rounds = 0
        role.fetch_deadline = replica.timers.after(replica.config.fetch_timeout_ms)
        replica.leader_suspicion = None

    def on_contradiction(self, role: Follower, reason: str) -> None:
        """Ignore a contradiction, report it once, retry later; the leader is not live.

        See rule `leader_contradiction`.
        """
        replica = self.replica
        role.has_fetched = False
        text = replica.leader_contradictions.record(
            role.leader_id, replica.epoch, reason, replica.timers.now
        )
        replica.out.note(TraceEventKind.CONTRADICTED, text, leader_id=role.leader_id)

    def on_agreement(self) -> None:
        """Record that this log and the leader's are consistent again."""
        replica = self.replica
        replica.out.note(
            TraceEventKind.RECONCILED, replica.leader_contradictions.resolve(replica.epoch)
        )
        if isinstance(replica.role, Follower):
            replica.second_quorum.take_back(replica.role.leader_id)

    def on_failure(
        self,
        kind: RequestKind,
        in_flight_request: InFlightRequest,
        role: Follower,
        failure: RequestFailure,
    ) -> None:
        """Handle a missing or unreadable response."""
        replica = self.replica
        if failure is RequestFailure.UNREADABLE:
            self.on_contradiction(role, failure.value)
            return
        role.is_fetch_failing = True
        replica.back_off(kind, in_flight_request.to)
        if kind is RequestKind.FETCH and failure is RequestFailure.DISCONNECTED:
            self.leader_failure_detector.on_fetch_stream_broken(in_flight_request)

    def on_error_response(
        self,
        kind: RequestKind,
        in_flight_request: InFlightRequest,
        response: FetchResponse | FetchSnapshotResponse,
    ) -> None:
        """Handle an error, possibly with another leader. A repeated error is logged once."""
        replica = self.replica
        role = self.follower_for(in_flight_request)
        if role is None or role.last_error is not response.error:
            text = f"{in_flight_request.to} answers {kind.value} with {response.error.name}"
            replica.out.note(
                TraceEventKind.REFUSED_BY_PEER,
                text,
                peer=in_flight_request.to,
                error=response.error.name,
            )
        self.leader_updates.apply(response.leader, f"answer of {in_flight_request.to}")
        role = self.follower_for(in_flight_request)
        if role is None:
            return
        if response.error is ErrorCode.DUPLICATE_VOTER:
            # This leader is alive, and the other process fetches from it
            # (rule `one_process_per_voter`).
            role.has_fetched = False
            until = replica.timers.after(replica.config.fetch_timeout_ms)
            replica.leader_eligibility.refused_until = until
            if not role.leader_resigned:
                role.fetch_deadline = until
        if response.error is ErrorCode.INCONSISTENT_VOTER_SET:
            # This leader has compared both logs: it has other voters at the same position
            # (rule `sole_voter_conflict`).
            reason = "it has other voters where this log has the same epoch"
            replica.second_quorum.prove(role.leader_id, replica.epoch, reason)
        # Another process may have this address now.
        role.is_fetch_failing = True
        role.error_count, role.last_error = role.error_count + 1, response.error
        delay = backoff_ms(
            role.error_count,
            first_ms=replica.config.retry_backoff_ms,
            longest_ms=replica.config.fetch_timeout_ms // RETRY_MAX_SHARE,
            random=replica.timers.random,
        )
        replica.request_manager.back_off(kind, in_flight_request.to, replica.timers.after(delay))
