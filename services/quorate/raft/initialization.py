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
    role_transitions.last_contact.needs_leader()
    stored = replica.election
    if stored.epoch < replica.log.end.epoch:
        # A stale file: the log has a later epoch, in which this replica never voted.
        replica.save_election(ElectionState(replica.log.end.epoch))
        stored = replica.election
    unattached = Unattached(replica.timers.after(replica.timers.draw_election_timeout()))
    if replica.is_only_voter and replica.may_campaign:
        role_transitions.become_prospective(RoleChangeCause.STARTUP, "the only voter")
    elif stored.leader_id == replica.node_id:
        role_transitions.resume_resigned()
    elif _voted_for_itself(replica) and stored.leader_id is None and replica.may_campaign:
        role_transitions.resume_candidate()
    elif (
        replica.rival is None and stored.leader_id is not None and replica.leader_peer() is not None
    ):
        why = "the leader before the restart"
        role_transitions.become_follower(
            stored.epoch, stored.leader_id, (), RoleChangeCause.STARTUP, why
        )
    else:
        replica.set_role(unattached)
        replica.out.note(
            TraceEventKind.STARTED,
            f"starts unattached in epoch {replica.epoch}, log end {replica.log.end}",
        )


def _voted_for_itself(replica: Replica) -> bool:
    """True for a vote for itself; at kraft.version 0 the file has only the node id."""
    voted = replica.election.voted
    return voted in (replica.key, ReplicaKey(replica.node_id))
