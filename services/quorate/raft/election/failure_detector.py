"""Detects a dead leader process before the fetch timeout: broken stream, refused TCP connect.

After both, the leader does not count as live, and a voter requests pre-votes after a small random
delay (rule `early_suspicion`). It probes again when a nominee that cannot win requests its vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import Peer, ProbeCompleted, ProbeLeader
from quorate.raft.request_manager import InFlightRequest, RequestKind
from quorate.raft.roles import Candidate, Follower, LeaderSuspicion, Prospective, Unattached
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind

if TYPE_CHECKING:
    from quorate.raft.election.transitions import RoleTransitions
    from quorate.raft.replica import Replica
    from quorate.records.ids import Millis

SUSPICION_DELAY_MS: Final = 50
SUSPICION_RETRY_MS: Final = 200


class LeaderFailureDetector:
    """State of a leader whose Fetch stream broke, for one replica."""

    def __init__(self, replica: Replica, role_transitions: RoleTransitions) -> None:
        self.replica = replica
        self.role_transitions = role_transitions

    def has_live_leader(self) -> bool:
        """True if this follower has a live leader, as far as it knows."""
        role = self.replica.role
        if not isinstance(role, Follower) or not role.has_fetched or role.leader_resigned:
            return False
        suspicion = self.replica.leader_suspicion
        return suspicion is None or not suspicion.is_connection_refused

    def on_fetch_stream_broken(self, in_flight_request: InFlightRequest) -> None:
        """Probe the leader by a plain connect after its Fetch stream broke."""
        replica = self.replica
        role = replica.role
        if (
            not isinstance(role, Follower)
            or role.leader_resigned
            or in_flight_request.to != role.leader_id
        ):
            return
        if replica.leader_suspicion is None:
            replica.leader_suspicion = LeaderSuspicion(role.leader_id)
        self._probe(replica.leader_suspicion)

    def _probe(self, leader_suspicion: LeaderSuspicion) -> None:
        replica = self.replica
        leader_suspicion.probe_at_ms = None
        peer = self._suspect(leader_suspicion)
        if peer is None or replica.request_manager.in_flight(RequestKind.PROBE):
            return
        deadline = replica.timers.after(replica.config.request_timeout_ms)
        call = replica.request_manager.register(
            RequestKind.PROBE, leader_suspicion.leader_id, replica.epoch, deadline
        )
        leader_suspicion.probe = call.call
        replica.out.emit(ProbeLeader(call.call, peer))

    def _suspect(self, leader_suspicion: LeaderSuspicion) -> Peer | None:
        voter = self.replica.voters.by_id(leader_suspicion.leader_id)
        if self.replica.election.leader_id == leader_suspicion.leader_id:
            return self.replica.leader_peer()
        return self.replica.peer(voter) if voter else None

    def on_probe_result(self, event: ProbeCompleted) -> None:
        """Handle a probe. Refused means that the process has exited: skip the fetch timeout."""
        replica = self.replica
        call = replica.request_manager.complete(event.call)
        suspicion = replica.leader_suspicion
        if call is None or suspicion is None or suspicion.probe != event.call:
            return
        suspicion.probe = None
        if not event.refused:
            suspicion.is_connection_refused = False
            return
        again = suspicion.is_connection_refused
        suspicion.is_connection_refused = True
        if not replica.may_campaign or suspicion.campaign_at_ms is not None:
            return
        if isinstance(replica.role, Prospective) or (
            isinstance(replica.role, Candidate) and not replica.role.has_lost
        ):
            return
        suspicion.campaign_at_ms = (
            replica.timers.now
            if again
            else replica.timers.after(replica.timers.draw(SUSPICION_DELAY_MS))
        )
        text = f"leader {suspicion.leader_id} refuses connections"
        replica.out.note(TraceEventKind.LEADER_UNREACHABLE, text, leader_id=suspicion.leader_id)
        self.run_due()

    def on_losing_contender(self) -> None:
        """Handle a nominee that cannot win because it lacks records of this voter.

        It has lost the leader, too. This voter, after a lost round, waits for a probe of the leader
        to be refused, which may never happen if its address has disappeared. Until then other
        voters lose the leader, and all would wait for each other until the fetch timeout.
        """
        replica = self.replica
        suspicion = replica.leader_suspicion
        if (
            suspicion is None
            or not suspicion.is_connection_refused
            or suspicion.campaign_at_ms is not None
        ):
            return
        if replica.may_campaign and isinstance(replica.role, Follower):
            suspicion.campaign_at_ms = replica.timers.after(replica.timers.draw(SUSPICION_DELAY_MS))

    def on_probe_timeout(self, in_flight_request: InFlightRequest) -> None:
        """A probe had no result in time: the next one may be sent."""
        suspicion = self.replica.leader_suspicion
        if suspicion is not None and suspicion.probe == in_flight_request.call:
            suspicion.probe = None

    def schedule_probe(self) -> None:
        """Probe soon if the leader is back, after a failed election."""
        timers, suspicion = self.replica.timers, self.replica.leader_suspicion
        if suspicion is not None:
            suspicion.probe_at_ms = timers.after(timers.draw(SUSPICION_RETRY_MS))

    def defer_campaign(self) -> bool:
        """Probe before the next pre-vote round, after one failed. Returns True if one was due."""
        suspicion = self.replica.leader_suspicion
        if suspicion is None:
            return False
        suspicion.campaign_at_ms = None
        self.schedule_probe()
        return True

    def run_due(self) -> None:
        """Probe again if the leader is back, or start the election that is due."""
        replica = self.replica
        suspicion = replica.leader_suspicion
        if suspicion is None:
            return
        if suspicion.probe_at_ms is not None and suspicion.probe_at_ms <= replica.timers.now:
            self._probe(suspicion)
        if suspicion.campaign_at_ms is None or suspicion.campaign_at_ms > replica.timers.now:
            return
        if not replica.may_campaign:
            suspicion.campaign_at_ms = None
            return
        if replica.should_defer_campaign():
            suspicion.campaign_at_ms = replica.timers.after(replica.timers.draw_election_timeout())
            return
        suspicion.campaign_at_ms = None
        match replica.role:
            case Follower(fetch_deadline=deadline, leader_resigned=False):
                self.role_transitions.become_prospective(
                    RoleChangeCause.LEADER_PROCESS_GONE,
                    "the leader's process is gone",
                    resume_deadline=deadline,
                )
            case Unattached() | Candidate(has_lost=True):
                self.role_transitions.become_prospective(
                    RoleChangeCause.LEADER_PROCESS_GONE, "the old leader's process is still gone"
                )

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadlines of the next probe and of the pre-vote round."""
        suspicion = self.replica.leader_suspicion
        if suspicion is None:
            return
        if suspicion.campaign_at_ms is not None:
            due.append(suspicion.campaign_at_ms)
        if suspicion.probe_at_ms is not None:
            due.append(suspicion.probe_at_ms)
