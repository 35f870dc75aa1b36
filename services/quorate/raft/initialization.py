"""Chooses the initial role from the recovered election state.

Kafka: QuorumState.initialize. A vote or leadership of the epoch from before the restart remains
valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import ElectionState
from quorate.raft.roles import Unattached
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.records.ids import ReplicaKey

if TYPE_CHECKING:
    from quorate.raft.election.transitions import RoleTransitions
    from quorate.raft.replica import Replica


def initialize(replica: Replica, role_transitions: RoleTransitions) -> None:
    """Assume the role of the recovered election state."""
    r = replica
    role_transitions.last_contact.needs_leader()
    stored = r.election
    if stored.epoch < r.log.end.epoch:
        # A stale file: the log has a later epoch, in which this replica never voted.
        r.save_election(ElectionState(r.log.end.epoch))
        stored = r.election
    unattached = Unattached(r.timers.after(r.timers.draw_election_timeout()))
    if r.is_only_voter and r.may_campaign:
        role_transitions.become_prospective(RoleChangeCause.STARTUP, "the only voter")
    elif stored.leader_id == r.node_id:
        role_transitions.resume_resigned()
    elif _voted_for_itself(r) and stored.leader_id is None and r.may_campaign:
        role_transitions.resume_candidate()
    elif r.rival is None and stored.leader_id is not None and r.leader_peer() is not None:
        why = "the leader before the restart"
        role_transitions.become_follower(
            stored.epoch, stored.leader_id, (), RoleChangeCause.STARTUP, why
        )
    else:
        r.set_role(unattached)
        r.out.note(
            TraceEventKind.STARTED, f"starts unattached in epoch {r.epoch}, log end {r.log.end}"
        )


def _voted_for_itself(replica: Replica) -> bool:
    """True for a vote for itself; at kraft.version 0 the file has only the node id."""
    voted = replica.election.voted
    return voted in (replica.key, ReplicaKey(replica.node_id))
