"""DescribeQuorum and ApiVersions responses, and the status warnings of this replica."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.raft.election.abstention import voters_not_heard
from quorate.raft.identity.cloned_voters import refused
from quorate.raft.identity.cloned_voters import remarks as clone_remarks
from quorate.raft.identity.single_voter_guard import remark
from quorate.raft.membership.auto_join import was_removed_while_running
from quorate.raft.membership.shutdown_permit_state import holds_permit
from quorate.raft.messages import (
    ApiVersionsResponse,
    ChangeKind,
    DescribeQuorumResponse,
    ReplicaState,
    VoterChange,
)
from quorate.raft.roles import Leader
from quorate.records.errors import ErrorCode
from quorate.records.ids import ReplicaKey
from quorate.records.voters import KRAFT_VERSION_MAX, KRAFT_VERSION_MIN

if TYPE_CHECKING:
    from quorate.raft.election.vote_rejections import VoteRejections
    from quorate.raft.last_contact import LastContact
    from quorate.raft.membership.add_voter import AddVoterHandler
    from quorate.raft.membership.rejection import Rejection
    from quorate.raft.replica import Replica
    from quorate.raft.roles import Progress
    from quorate.records.voters import Endpoint


def describe(
    replica: Replica,
    add_voter_handler: AddVoterHandler,
    last_contact: LastContact,
    vote_rejections: VoteRejections,
) -> DescribeQuorumResponse:
    """Voters and observers if this replica leads; otherwise the replica to ask (KIP-595, KIP-836).

    Observers come with the reason why they cannot be added, which Kafka does not report.
    """
    role, now = replica.role, replica.timers.now
    common = DescribeQuorumResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        leader=replica.leader_info,
        now_ms=now,
        remarks=(*second_quorum_remarks(replica), *status_warnings(replica, vote_rejections)),
        kraft_version=replica.log.kraft_version,
        uncommitted_voter_change=uncommitted_change(replica),
        decommissioned=replica.voters.decommissioned,
        last_leader=replica.last_leader,
        heard=tuple(last_contact.last_heard()),
    )
    if not isinstance(role, Leader):
        return common
    voters = []
    for voter in replica.voters:
        if voter.key == replica.key or voter.key == ReplicaKey(replica.node_id):
            end = replica.log.end.offset
            voters.append(
                ReplicaState(
                    key=voter.key,
                    log_end_offset=end,
                    last_fetch_ms=now,
                    last_caught_up_ms=now,
                    endpoints=voter.endpoints,
                )
            )
        else:
            voters.append(_state(voter.key, role.progress.get(voter.key), voter.endpoints))
    observers = [
        _with_obstacle(
            _state(key, progress, progress.endpoints), add_voter_handler.check(role, key)
        )
        for key, progress in sorted(role.progress.items(), key=lambda item: item[0].node_id)
        if key not in replica.voters
    ]
    if not replica.is_voter:
        # Its own removal is in the log: until that is committed it leads, as an observer.
        own = ReplicaState(
            key=replica.key,
            log_end_offset=replica.log.end.offset,
            last_fetch_ms=now,
            last_caught_up_ms=now,
            endpoints=replica.config.endpoints,
        )
        observers.insert(0, own)
    return replace(
        common,
        error=ErrorCode.NONE,
        high_watermark=replica.commit_state.reportable_high_watermark(role),
        voters=tuple(voters),
        observers=tuple(observers),
        refused=tuple(state for state, _ in refused(replica)),
    )


def _with_obstacle(state: ReplicaState, rejection: Rejection | None) -> ReplicaState:
    if rejection is None:
        return state
    return replace(state, obstacle=rejection.reason, obstacle_text=rejection.text)


def uncommitted_change(replica: Replica) -> VoterChange | None:
    """The difference between the latest voter set and the newest that is known committed."""
    latest, committed = replica.voters, replica.log.committed_voter_set(replica.high_watermark)
    if latest is committed or not committed.voters:
        return None
    known = {voter.key: voter for voter in committed}
    current = {voter.key: voter for voter in latest}
    for key, voter in current.items():
        if key not in known:
            return VoterChange(ChangeKind.ADD, voter)
        if known[key] != voter:
            return VoterChange(ChangeKind.UPDATE, voter)
    gone = [voter for key, voter in known.items() if key not in current]
    return VoterChange(ChangeKind.REMOVE, gone[0]) if gone else None


def api_versions(replica: Replica) -> ApiVersionsResponse:
    """The identity of this replica, and the kraft.versions that this release supports."""
    config = replica.config
    return ApiVersionsResponse(
        error=ErrorCode.NONE,
        cluster_id=config.cluster_id,
        key=config.key,
        kraft_version_min=KRAFT_VERSION_MIN,
        kraft_version_max=KRAFT_VERSION_MAX,
    )


def _state(
    key: ReplicaKey, progress: Progress | None, endpoints: tuple[Endpoint, ...]
) -> ReplicaState:
    if progress is None:
        return ReplicaState(
            key=key,
            log_end_offset=None,
            last_fetch_ms=None,
            last_caught_up_ms=None,
            endpoints=endpoints,
        )
    return ReplicaState(
        key=key,
        log_end_offset=progress.fetch_offset,
        last_fetch_ms=progress.last_fetch_ms,
        last_caught_up_ms=progress.last_caught_up_ms,
        endpoints=endpoints,
    )


def _abstention(replica: Replica) -> str:
    """The reason why this replica abstains, and what it waits for (rule `empty_log_abstains`)."""
    why = "abstains from votes: it came up empty at kraft.version 0"
    if missing := voters_not_heard(replica):
        return f"{why}, and has yet to hear from {', '.join(map(str, missing))}"
    return f"{why}, and has yet to catch up"


def second_quorum_remarks(replica: Replica) -> list[str]:
    """The warning about another quorum, which is logged separately as an error."""
    line = replica.second_quorum.remark()
    return [] if line is None else [line]


def status_warnings(replica: Replica, vote_rejections: VoteRejections) -> list[str]:
    """Status warnings of this replica, such as healing, rejected votes or a removal."""
    lines = []
    readiness = replica.leader_eligibility
    if replica.log.remembered_end is not None:
        end, goal = replica.log.flushed_end, replica.log.remembered_end
        lines.append(f"healing: the log ends at {end} and once ended at {goal}; fetches it again")
    if replica.abstains:
        lines.append(_abstention(replica))
    rival = remark(replica)
    if rival is not None:
        lines.append(rival)
    lines += clone_remarks(replica)
    if not readiness.is_loaded:
        lines.append("the state machine is still loading")
    if readiness.is_disk_stalled:
        assert readiness.unflushed_since is not None
        age_s = (replica.timers.now - readiness.unflushed_since) / 1000
        lines.append(
            f"the disk has not confirmed a flush for {age_s:.1f} s: look after metadata.log.dir"
        )
    if was_removed_while_running(replica) and replica.key not in replica.voters.decommissioned:
        lines.append("removed while it ran, for its pod is scaled away: joins after a restart")
    if isinstance(replica.role, Leader):
        lines += [
            f"voter {key} has leave to stop and is not back"
            for key in replica.role.shutdown_permits
            if holds_permit(replica, replica.role, key)
        ]
    return (
        lines
        + replica.leader_contradictions.status_warnings(replica.epoch)
        + vote_rejections.remarks()
    )
