"""Kafka's raft-metrics for one replica; safe to read from another thread.

Each value is read atomically, and takes at most one iteration over the voters. Metrics that only a
leader knows are absent on other replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.describe_quorum import uncommitted_change
from quorate.raft.messages import ChangeKind
from quorate.raft.roles import Candidate, Follower, Leader, Prospective, Resigned
from quorate.records.ids import Millis, format_uuid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.raft.replica import Replica

STATES: Final = (
    "leader",
    "candidate",
    "prospective",
    "prospective-voted",
    "unattached",
    "unattached-voted",
    "follower",
    "observer",
    "resigned",
)
# Kinds of change that a leader may have in progress; an upgrade is one of kraft.version.
PENDING_CHANGES: Final = (*(kind.value for kind in ChangeKind), "upgrade")
NO_NODE: Final = -1


def state_name(replica: Replica) -> str:
    """The role as Kafka's `current-state` names it; a resigned leader has its own state."""
    has_voted = replica.election.voted is not None
    match replica.role:
        case Leader():
            return "leader"
        case Candidate():
            return "candidate"
        case Prospective():
            return "prospective-voted" if has_voted else "prospective"
        case Follower():
            return "follower" if replica.is_voter else "observer"
        case Resigned():
            return "resigned"
    return "unattached-voted" if has_voted else "unattached"


def raft_metrics(replica: Replica, now_ms: Millis) -> dict[str, float | Mapping[str, float]]:
    """Metrics of the quorum that any replica knows, and those that only a leader knows."""
    election, voters, state = replica.election, replica.voters, state_name(replica)
    leader_id, voted = election.leader_id, election.voted
    numbers: dict[str, float | Mapping[str, float]] = {
        "current_state": {name: float(name == state) for name in STATES},
        "current_leader": NO_NODE if leader_id is None else leader_id,
        "current_vote": NO_NODE if voted is None else voted.node_id,
        "current_epoch": election.epoch,
        "high_watermark": replica.high_watermark,
        "number_unknown_voter_connections": sum(
            voter.key.node_id != replica.node_id and replica.peer(voter) is None for voter in voters
        ),
        "number_of_voters": len(voters),
        "is_voter": float(replica.is_voter),
        "leader_contradictions_total": replica.leader_contradictions.total,
    }
    if voted is not None and voted.directory_id is not None:
        numbers["current_vote_directory_id"] = {format_uuid(voted.directory_id): 1.0}
    return numbers | _of_a_leader(replica, now_ms)


def _of_a_leader(replica: Replica, now_ms: Millis) -> dict[str, float | Mapping[str, float]]:
    voters, role = replica.voters, replica.role
    if not isinstance(role, Leader):
        return {}
    fetching, offline = 0, 0
    since_ms = now_ms - replica.config.fetch_timeout_ms
    for voter in voters:
        progress = role.progress.get(voter.key)
        fetching += progress is not None
        last_ms = None if progress is None else progress.last_fetch_ms
        # No replica has fetched from this leader before its election.
        heard_ms = role.elected_ms if last_ms is None else last_ms
        offline += voter.key.node_id != replica.node_id and heard_ms < since_ms
    return {
        "number_of_observers": len(role.progress) - fetching + (not replica.is_voter),
        "number_of_offline_voters": offline,
        "uncommitted_voter_change": float(uncommitted_change(replica) is not None),
        "pending_voter_changes": _pending_changes(replica, role),
    }


def _pending_changes(replica: Replica, role: Leader) -> dict[str, float]:
    """Count the pending change, and an uncommitted one of an earlier leader in the log."""
    pending, uncommitted = role.pending, uncommitted_change(replica)
    kind = None if uncommitted is None else uncommitted.kind.value
    if pending is not None:
        kind = str(pending.trace_fields["change"])
    return {each: float(each == kind) for each in PENDING_CHANGES}
