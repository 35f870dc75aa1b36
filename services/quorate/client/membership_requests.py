"""Completes a membership request and predicts its outcome from DescribeQuorum.

Callers may leave out what DescribeQuorum reports: the cluster, a directory id, an observer's
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

# In UpdateRaftVoter: the epoch of the leader that is asked, whatever it is.
UNKNOWN_EPOCH: Final = Epoch(0)


class Completion(Enum):
    """The state of a request: done, in the log, or not done."""

    DONE = auto()
    UNCOMMITTED = auto()
    NOT_DONE = auto()


def complete_request(
    request: m.MembershipRequest, quorum: m.DescribeQuorumResponse, cluster_id: ClusterId
) -> m.MembershipRequest:
    """Complete the request. Raises AdminError if a missing value is ambiguous."""
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
    """The voter with that node id; an id is unique among the voters."""
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
    # A replaced disk is listed for minutes next to the new one, and could not be added.
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
        # The leader reports the error for an unknown voter; any directory id serves for that.
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


def completion_of(request: m.MembershipRequest, quorum: m.DescribeQuorumResponse) -> Completion:
    """The completion of a request, according to the leader's log.

    A leader that has committed nothing in its epoch does not know what is committed.
    """
    if not _is_as_asked(request, quorum):
        return Completion.NOT_DONE
    if isinstance(request, m.TransferLeadershipRequest):
        return Completion.DONE
    is_open = quorum.high_watermark is None or quorum.uncommitted_voter_change is not None
    return Completion.UNCOMMITTED if is_open else Completion.DONE


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
            # A permit is not in the log, and requesting it twice is harmless.
            return False
        case _:
            assert_never(request)


def predict_rejection(
    request: m.MembershipRequest, quorum: m.DescribeQuorumResponse
) -> AdminError | None:
    """Predict why the leader would reject a completed request, from its description.

    A live majority, and the new voter's responses, are checked only by the actual request.
    """
    if completion_of(request, quorum) is Completion.DONE and isinstance(
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
            "kraft.version is 0, at which the voter set is in the settings: upgrade it first "
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
