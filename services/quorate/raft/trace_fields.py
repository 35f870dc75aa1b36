"""Fields of the trace events that report role changes and voter-set changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, role_name
from quorate.records.ids import format_uuid

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.raft.roles import Role
    from quorate.raft.trace_events import RoleChangeCause, Value
    from quorate.records.ids import ReplicaKey


def role_change_fields(replica: Replica, old: Role, cause: RoleChangeCause) -> dict[str, Value]:
    """Fields of the note for a role that was just assumed.

    `granted` and `rejected` are the votes of the round that ends, `needed` is the number of votes
    for the one that begins; `sought` is the epoch for which a nominee campaigns.
    """
    new, end = replica.role, replica.log.end
    values: dict[str, Value] = {
        "from_role": role_name(old),
        "to_role": role_name(new),
        "cause": cause.value,
        "epoch": replica.epoch,
    }
    if isinstance(old, Prospective | Candidate):
        values |= {"granted": old.vote_tally.granted, "rejected": old.vote_tally.rejected}
    match new:
        case Prospective(vote_tally=tally) | Candidate(vote_tally=tally):
            values |= {
                "sought": replica.epoch + isinstance(new, Prospective),
                "needed": tally.majority,
                "voters": len(replica.voters),
                "log_end_offset": end.offset,
                "log_last_epoch": end.epoch,
            }
        case Leader(epoch_start=epoch_start):
            values["epoch_start"] = epoch_start
        case Follower(leader_id=leader_id):
            values["leader_id"] = leader_id
        case Resigned(preferred=preferred):
            values["preferred"] = tuple(int(key.node_id) for key in preferred)
    return values


def voter_change_fields(change: str, voter: ReplicaKey) -> dict[str, Value]:
    """Fields of the notes for a change of one voter."""
    values: dict[str, Value] = {"change": change, "voter_id": voter.node_id}
    if voter.directory_id is not None:
        values["directory_id"] = format_uuid(voter.directory_id)
    return values
