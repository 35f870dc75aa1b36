"""Detects a dead leader process before the fetch timeout: broken stream, refused TCP connect.

After both, the leader does not count as live, and a voter requests pre-votes after a small random
delay (rule `early_suspicion`). It probes again when a nominee that cannot win requests its vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import Peer, ProbeAnswered, ProbeLeader
from quorate.raft.request_manager import Call, CallKind
from quorate.raft.roles import Candidate, Follower, Prospective, Suspicion, Unattached
from quorate.raft.trace_events import Cause, NoteKind

if TYPE_CHECKING:
    from quorate.raft.election.transitions import Becoming
    from quorate.raft.replica import Replica
    from quorate.records.ids import Millis

SUSPICION_DELAY_MS: Final = 50
SUSPICION_RETRY_MS: Final = 200


class Suspecting:
    """State of a leader whose Fetch stream broke, for one replica."""

    def __init__(self, replica: Replica, becoming: Becoming) -> None:
        self.r = replica
        self.becoming = becoming

    def hears_leader(self) -> bool:
        """True if this follower has a live leader, as far as it knows."""
        role = self.r.role
        if not isinstance(role, Follower) or not role.has_fetched or role.has_ended:
            return False
        suspicion = self.r.suspicion
        return suspicion is None or not suspicion.is_refused

    def stream_broke(self, call: Call) -> None:
        """Probe the leader by a plain connect after its Fetch stream broke."""
        r = self.r
        role = r.role
        if not isinstance(role, Follower) or role.has_ended or call.to != role.leader_id:
            return
        if r.suspicion is None:
            r.suspicion = Suspicion(role.leader_id)
        self._probe(r.suspicion)

    def _probe(self, suspicion: Suspicion) -> None:
        r = self.r
        suspicion.probe_ms = None
        peer = self._suspect(suspicion)
        if peer is None or r.calls.in_flight(CallKind.PROBE):
            return
        deadline = r.timers.after(r.config.request_timeout_ms)
        call = r.calls.open(CallKind.PROBE, suspicion.leader_id, r.epoch, deadline)
        suspicion.probe = call.call
        r.out.emit(ProbeLeader(call.call, peer))

    def _suspect(self, suspicion: Suspicion) -> Peer | None:
        voter = self.r.voters.by_id(suspicion.leader_id)
        if self.r.election.leader_id == suspicion.leader_id:
            return self.r.leader_peer()
        return self.r.peer(voter) if voter else None

    def handle_probe(self, event: ProbeAnswered) -> None:
        """Handle a probe. Refused means that the process has exited: skip the fetch timeout."""
        r = self.r
        call = r.calls.close(event.call)
        suspicion = r.suspicion
        if call is None or suspicion is None or suspicion.probe != event.call:
            return
        suspicion.probe = None
        if not event.refused:
            suspicion.is_refused = False
            return
        again = suspicion.is_refused
        suspicion.is_refused = True
        if not r.may_campaign or suspicion.act_ms is not None:
            return
        if isinstance(r.role, Prospective) or (
            isinstance(r.role, Candidate) and not r.role.has_lost
        ):
            return
        suspicion.act_ms = (
            r.timers.now if again else r.timers.after(r.timers.draw(SUSPICION_DELAY_MS))
        )
        text = f"leader {suspicion.leader_id} refuses connections"
        r.out.note(NoteKind.LEADER_UNREACHABLE, text, leader_id=suspicion.leader_id)
        self.act()

    def rival_is_behind(self) -> None:
        """Handle a nominee that cannot win because it lacks records of this voter.

        It has lost the leader, too. This voter, after a lost round, waits for a probe of the leader
        to be refused, which may never happen if its address has disappeared. Until then other voters
        lose the leader, and all would wait for each other until the fetch timeout.
        """
        r = self.r
        suspicion = r.suspicion
        if suspicion is None or not suspicion.is_refused or suspicion.act_ms is not None:
            return
        if r.may_campaign and isinstance(r.role, Follower):
            suspicion.act_ms = r.timers.after(r.timers.draw(SUSPICION_DELAY_MS))

    def probe_expired(self, call: Call) -> None:
        """A probe had no result in time: the next one may be sent."""
        suspicion = self.r.suspicion
        if suspicion is not None and suspicion.probe == call.call:
            suspicion.probe = None

    def look_again(self) -> None:
        """Probe soon if the leader is back, after a failed election."""
        timers, suspicion = self.r.timers, self.r.suspicion
        if suspicion is not None:
            suspicion.probe_ms = timers.after(timers.draw(SUSPICION_RETRY_MS))

    def put_off(self) -> bool:
        """Probe before the next pre-vote round, after one failed. Returns True if one was due."""
        suspicion = self.r.suspicion
        if suspicion is None:
            return False
        suspicion.act_ms = None
        self.look_again()
        return True

    def act(self) -> None:
        """Probe again if the leader is back, or start the election that is due."""
        r = self.r
        suspicion = r.suspicion
        if suspicion is None:
            return
        if suspicion.probe_ms is not None and suspicion.probe_ms <= r.timers.now:
            self._probe(suspicion)
        if suspicion.act_ms is None or suspicion.act_ms > r.timers.now:
            return
        if not r.may_campaign:
            suspicion.act_ms = None
            return
        if r.waits_until_ready():
            suspicion.act_ms = r.timers.after(r.timers.draw_election_timeout())
            return
        suspicion.act_ms = None
        match r.role:
            case Follower(fetch_deadline=deadline, has_ended=False):
                self.becoming.prospective(
                    Cause.LEADER_PROCESS_GONE,
                    "the leader's process is gone",
                    resume_deadline=deadline,
                )
            case Unattached() | Candidate(has_lost=True):
                self.becoming.prospective(
                    Cause.LEADER_PROCESS_GONE, "the old leader's process is still gone"
                )

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadlines of the next probe and of the pre-vote round."""
        suspicion = self.r.suspicion
        if suspicion is None:
            return
        if suspicion.act_ms is not None:
            due.append(suspicion.act_ms)
        if suspicion.probe_ms is not None:
            due.append(suspicion.probe_ms)
