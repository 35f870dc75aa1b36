"""What is asked of a leader, made whole and judged against its own description of the quorum.

Callers may leave out what one look at the quorum tells: the cluster, a directory id, an observer's
listeners.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, assert_never

from quorate.api.admin_api import AMBIGUOUS_OBSERVER, OBSERVER_NOT_FOUND, AdminError
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch

if TYPE_CHECKING:
    from quorate.records.ids import ClusterId, NodeId, ReplicaKey

# In UpdateRaftVoter: that of whichever leader is asked.
UNKNOWN_EPOCH: Final = Epoch(0)


class Doneness(Enum):
    """How far the quorum is as it was asked to be."""

    DONE = auto()
    UNCOMMITTED = auto()
    NOT_DONE = auto()


def completed(
    request: m.MembershipRequest, quorum: m.DescribeQuorumResponse, cluster_id: ClusterId
) -> m.MembershipRequest:
    """The request with nothing left out. Raises AdminError where that is not one thing."""
    match request:
        case m.UpdateFeaturesRequest():
            return request
        case m.AddRaftVoterRequest():
            observer = _observer(request.voter, quorum)
            return replace(
                request,
                cluster_id=request.cluster_id or cluster_id,
                voter=request.voter if observer is None else observer.key,
                listeners=request.listeners or (observer.endpoints if observer is not None else ()),
            )
        case _:
            voter = _voter(request.voter, quorum)
            return replace(request, cluster_id=request.cluster_id or cluster_id, voter=voter)


def _voter(key: ReplicaKey, quorum: m.DescribeQuorumResponse) -> ReplicaKey:
    """A node id is once among the voters, so it names one."""
    if key.directory_id is not None:
        return key
    voter = voter_of(key.node_id, quorum)
    if voter is None:
        raise _no_voter(key, quorum)
    return voter.key


def _observer(key: ReplicaKey, quorum: m.DescribeQuorumResponse) -> m.ReplicaState | None:
    """The replica that is to be added, as far as the leader knows it."""
    if key.directory_id is not None:
        return next((state for state in quorum.observers if state.key == key), None)
    observers = [state for state in quorum.observers if state.key.node_id == key.node_id]
    # A disk that was replaced is listed for minutes beside the new one, and could not be added.
    able = [state for state in observers if state.obstacle is None]
    observers = able if len(able) == 1 else observers
    if len(observers) == 1:
        return observers[0]
    if observers:
        ids = ", ".join(str(state.key) for state in observers)
        raise AdminError(
            AMBIGUOUS_OBSERVER,
            ErrorCode.INVALID_REQUEST,
            f"several observers have the id {key.node_id}: {ids} (node id : directory id); name "
            "the directory id",
        )
    if voter_of(key.node_id, quorum) is not None:
        # The leader says what is wrong with that; any directory id will do to ask.
        return voter_of(key.node_id, quorum)
    raise AdminError(
        OBSERVER_NOT_FOUND,
        ErrorCode.VOTER_NOT_FOUND,
        f"node {key.node_id} does not fetch from the leader: format it with "
        "--no-initial-controllers, start it, and wait until it is listed as an observer",
    )


def voter_of(node_id: NodeId, quorum: m.DescribeQuorumResponse) -> m.ReplicaState | None:
    """The voter with that id."""
    return next((state for state in quorum.voters if state.key.node_id == node_id), None)


def doneness(request: m.MembershipRequest, quorum: m.DescribeQuorumResponse) -> Doneness:
    """Whether a completed request is what the leader's log says already.

    A leader that has committed nothing in its epoch does not know what is committed.
    """
    if not _is_as_asked(request, quorum):
        return Doneness.NOT_DONE
    if isinstance(request, m.TransferLeadershipRequest):
        return Doneness.DONE
    is_open = quorum.high_watermark is None or quorum.uncommitted_voter_change is not None
    return Doneness.UNCOMMITTED if is_open else Doneness.DONE


def _is_as_asked(request: m.MembershipRequest, quorum: m.DescribeQuorumResponse) -> bool:
    voters = {state.key: state for state in quorum.voters}
    match request:
        case m.AddRaftVoterRequest():
            return request.voter in voters
        case m.RemoveRaftVoterRequest():
            return request.voter not in voters
        case m.UpdateRaftVoterRequest():
            state = voters.get(request.voter)
            # Listeners of other names stay as they are.
            return state is not None and set(request.listeners) <= set(state.endpoints)
        case m.UpdateFeaturesRequest():
            return quorum.kraft_version == request.kraft_version
        case m.TransferLeadershipRequest():
            return quorum.leader.leader_id == request.voter.node_id
        case m.TakeLeaveRequest():
            # No log holds it, and a voter that asks twice is given it twice.
            return False
        case _:
            assert_never(request)


def foreseen(request: m.MembershipRequest, quorum: m.DescribeQuorumResponse) -> AdminError | None:
    """Why the leader would refuse a completed request, as far as its description tells.

    A live majority, and how the new voter answers, are looked at only when it is asked.
    """
    if doneness(request, quorum) is Doneness.DONE and isinstance(
        request, m.TransferLeadershipRequest
    ):
        return None
    match request:
        case m.AddRaftVoterRequest():
            return _why_not_now(quorum) or _why_not_added(request.voter, quorum)
        case m.RemoveRaftVoterRequest():
            return _why_not_now(quorum) or _why_not_removed(request.voter, quorum)
        case m.TransferLeadershipRequest():
            return _why_no_voter(request.voter, quorum)
        case _:
            return None


def _why_not_now(quorum: m.DescribeQuorumResponse) -> AdminError | None:
    change = quorum.uncommitted_voter_change
    if quorum.kraft_version < 1:
        return AdminError(
            m.Reason.KRAFT_VERSION_TOO_OLD.value,
            ErrorCode.UNSUPPORTED_VERSION,
            "kraft.version is 0, where the voters stand in the settings: upgrade it first "
            "(quorate features upgrade --feature kraft.version=1)",
        )
    if change is not None:
        return AdminError(
            m.Reason.PENDING_VOTER_CHANGE.value,
            ErrorCode.REQUEST_TIMED_OUT,
            f"another change is not committed yet ({change.kind.value} {change.voter.key}): try "
            "again later",
        )
    return None


def _why_not_added(key: ReplicaKey, quorum: m.DescribeQuorumResponse) -> AdminError | None:
    twin = voter_of(key.node_id, quorum)
    if twin is not None:
        return AdminError(
            m.Reason.DUPLICATE_VOTER.value,
            ErrorCode.DUPLICATE_VOTER,
            f"node {key.node_id} is a voter already ({twin.key})",
        )
    observer = _observer(key, quorum)
    if observer is None:
        return AdminError(
            OBSERVER_NOT_FOUND,
            ErrorCode.VOTER_NOT_FOUND,
            f"{key} does not fetch from the leader: start it, and wait until it is an observer",
        )
    if observer.obstacle is None:
        return None
    return AdminError(observer.obstacle.value, ErrorCode.REQUEST_TIMED_OUT, observer.obstacle_text)


def _why_not_removed(key: ReplicaKey, quorum: m.DescribeQuorumResponse) -> AdminError | None:
    if len(quorum.voters) == 1 and quorum.voters[0].key == key:
        return AdminError(
            m.Reason.LAST_VOTER.value,
            ErrorCode.INVALID_REQUEST,
            f"voter {key} is the last one: add another voter first",
        )
    return _why_no_voter(key, quorum)


def _why_no_voter(key: ReplicaKey, quorum: m.DescribeQuorumResponse) -> AdminError | None:
    is_voter = any(state.key == key for state in quorum.voters)
    return None if is_voter else _no_voter(key, quorum)


def _no_voter(key: ReplicaKey, quorum: m.DescribeQuorumResponse) -> AdminError:
    ids = ", ".join(str(state.key) for state in quorum.voters)
    return AdminError(
        m.Reason.VOTER_NOT_FOUND.value,
        ErrorCode.VOTER_NOT_FOUND,
        f"{key} is no voter: the voters are {ids} (node id : directory id)",
    )
