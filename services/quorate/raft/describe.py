"""DescribeQuorum: what the leader knows of every replica, and what any replica says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.elections import refusals
from quorate.raft.messages import ApiVersionsResponse, DescribeQuorumResponse, ReplicaState
from quorate.raft.roles import Leader
from quorate.records.errors import ErrorCode
from quorate.records.voters import KRAFT_VERSION_MAX, KRAFT_VERSION_MIN

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.raft.roles import Progress
    from quorate.records.ids import ReplicaKey
    from quorate.records.voters import Endpoint


def describe(replica: Replica) -> DescribeQuorumResponse:
    """Voters and observers when this replica leads; otherwise whom to ask (KIP-595, KIP-836)."""
    r = replica
    role = r.role
    notes = tuple(remarks(r))
    if not isinstance(role, Leader):
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return DescribeQuorumResponse(error, r.leader_info, now_ms=r.now, remarks=notes)
    voters = []
    for voter in r.voters:
        if voter.key.node_id == r.node_id:
            end = r.log.end.offset
            voters.append(ReplicaState(voter.key, end, r.now, r.now, voter.endpoints))
        else:
            voters.append(_state(voter.key, role.progress.get(voter.key), voter.endpoints))
    observers = [
        _state(key, progress, progress.endpoints)
        for key, progress in sorted(role.progress.items(), key=lambda item: item[0].node_id)
        if key not in r.voters
    ]
    return DescribeQuorumResponse(
        ErrorCode.NONE,
        r.leader_info,
        r.high_watermark,
        tuple(voters),
        tuple(observers),
        r.now,
        notes,
    )


def api_versions(replica: Replica) -> ApiVersionsResponse:
    """Who this replica is, and the kraft.versions that this release supports."""
    config = replica.config
    return ApiVersionsResponse(
        ErrorCode.NONE, config.cluster_id, config.key, KRAFT_VERSION_MIN, KRAFT_VERSION_MAX
    )


def _state(
    key: ReplicaKey, progress: Progress | None, endpoints: tuple[Endpoint, ...]
) -> ReplicaState:
    if progress is None:
        return ReplicaState(key, None, None, None, endpoints)
    return ReplicaState(
        key, progress.fetch_offset, progress.last_fetch_ms, progress.last_caught_up_ms, endpoints
    )


def remarks(replica: Replica) -> list[str]:
    """What a human must know of this replica: healing, refused votes, a state machine that lags."""
    lines = []
    if replica.remembered_end is not None:
        end, goal = replica.log.flushed_end, replica.remembered_end
        lines.append(f"healing: the log ends at {end} and once ended at {goal}; fetches it again")
    if replica.abstains:
        lines.append("abstains from votes: an empty directory at kraft.version 0")
    if not replica.is_ready:
        lines.append("the state machine is still loading")
    return lines + refusals(replica)
