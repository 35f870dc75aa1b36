"""Requests are completed, and checked against what the leader says of the quorum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.api.admin_api import AMBIGUOUS_OBSERVER, OBSERVER_NOT_FOUND, AdminError
from quorate.client.membership_requests import (
    Completion,
    complete_request,
    completion_of,
    predict_rejection,
)
from quorate.raft import messages as m
from quorate.raft.messages import Reason
from quorate.records.ids import ClusterId, Epoch, Millis, NodeId, ReplicaKey
from quorate.records.voters import Endpoint, Voter
from tests.unit.admin.quorums import quorum, state
from tests.unit.raft import cores

ANY = ClusterId("")
ADDING = m.VoterChange(m.ChangeKind.ADD, Voter(cores.key(4)))


def bare(node_id: int) -> ReplicaKey:
    return ReplicaKey(NodeId(node_id))


def add(key: ReplicaKey) -> m.AddRaftVoterRequest:
    return m.AddRaftVoterRequest(cluster_id=ANY, voter=key, listeners=(), timeout_ms=Millis(0))


def remove(key: ReplicaKey) -> m.RemoveRaftVoterRequest:
    return m.RemoveRaftVoterRequest(cluster_id=ANY, voter=key, timeout_ms=Millis(0))


def transfer(key: ReplicaKey) -> m.TransferLeadershipRequest:
    return m.TransferLeadershipRequest(ANY, key)


def update(key: ReplicaKey) -> m.UpdateRaftVoterRequest:
    return m.UpdateRaftVoterRequest(
        cluster_id=ANY,
        current_leader_epoch=Epoch(0),
        voter=key,
        listeners=cores.endpoints(2),
        kraft_version_min=0,
        kraft_version_max=1,
    )


LAGGING = replace(state(4), obstacle=Reason.VOTER_LAGGING, obstacle_text="far behind")
MANY_WAYS = replace(
    state(2), endpoints=(Endpoint("CONTROLLER", "node-2", 9093), *cores.endpoints(2))
)
UPGRADE = m.UpdateFeaturesRequest(1, validate_only=False)


def test_one_look_at_the_quorum_completes_a_request() -> None:
    described = quorum(observers=(state(4),))
    assert complete_request(add(bare(4)), described, cores.CLUSTER) == m.AddRaftVoterRequest(
        cluster_id=cores.CLUSTER,
        voter=cores.key(4),
        listeners=cores.endpoints(4),
        timeout_ms=Millis(0),
    )
    assert complete_request(remove(bare(3)), described, cores.CLUSTER) == replace(
        remove(cores.key(3)), cluster_id=cores.CLUSTER
    )
    assert complete_request(update(bare(2)), described, cores.CLUSTER) == replace(
        update(cores.key(2)), cluster_id=cores.CLUSTER
    )
    assert complete_request(transfer(bare(2)), described, cores.CLUSTER) == replace(
        transfer(cores.key(2)), cluster_id=cores.CLUSTER
    )
    assert complete_request(UPGRADE, described, cores.CLUSTER) == UPGRADE


def test_what_the_caller_says_stays() -> None:
    described = quorum(observers=(state(4),))
    whole = m.AddRaftVoterRequest(
        cluster_id=ClusterId("other"),
        voter=cores.key(4),
        listeners=cores.endpoints(9),
        timeout_ms=Millis(0),
        force=True,
    )
    assert complete_request(whole, described, cores.CLUSTER) == whole
    unknown = replace(whole, voter=cores.key(7))
    assert complete_request(unknown, described, cores.CLUSTER) == unknown
    strange = replace(remove(cores.key(7)), cluster_id=cores.CLUSTER)
    assert complete_request(strange, described, cores.CLUSTER) == strange


def test_a_voter_that_is_added_again_is_left_to_the_leader() -> None:
    whole = complete_request(add(bare(2)), quorum(), cores.CLUSTER)
    assert isinstance(whole, m.AddRaftVoterRequest)
    assert whole.voter == cores.key(2)


def test_a_replaced_disk_is_not_taken_for_the_new_one() -> None:
    gone = replace(LAGGING, key=ReplicaKey(NodeId(4), cores.key(9).directory_id))
    for observers in ((gone, state(4)), (state(4), gone)):
        whole = complete_request(add(bare(4)), quorum(observers=observers), cores.CLUSTER)
        assert isinstance(whole, m.AddRaftVoterRequest)
        assert whole.voter == cores.key(4)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (add(bare(4)), AMBIGUOUS_OBSERVER),
        (add(bare(5)), OBSERVER_NOT_FOUND),
        (remove(bare(5)), Reason.VOTER_NOT_FOUND.value),
        (transfer(bare(5)), Reason.VOTER_NOT_FOUND.value),
        (update(bare(5)), Reason.VOTER_NOT_FOUND.value),
    ],
)
def test_what_names_nobody_or_several_is_refused(
    request_: m.MembershipRequest, reason: str
) -> None:
    twin = replace(state(4), key=ReplicaKey(NodeId(4), cores.key(9).directory_id))
    with pytest.raises(AdminError) as error:
        complete_request(request_, quorum(observers=(state(4), twin)), cores.CLUSTER)
    assert error.value.reason == reason


@pytest.mark.parametrize(
    ("request_", "described", "where"),
    [
        (add(cores.key(3)), quorum(), Completion.DONE),
        (add(cores.key(3)), quorum(pending=ADDING), Completion.UNCOMMITTED),
        (add(cores.key(3)), quorum(high_watermark=None), Completion.UNCOMMITTED),
        (add(cores.key(4)), quorum(), Completion.NOT_DONE),
        (remove(cores.key(4)), quorum(), Completion.DONE),
        (remove(cores.key(3)), quorum(), Completion.NOT_DONE),
        (update(cores.key(2)), quorum(), Completion.DONE),
        (update(cores.key(2)), quorum(MANY_WAYS), Completion.DONE),
        (update(cores.key(3)), quorum(), Completion.NOT_DONE),
        (update(cores.key(4)), quorum(), Completion.NOT_DONE),
        (UPGRADE, quorum(), Completion.DONE),
        (UPGRADE, quorum(kraft_version=0), Completion.NOT_DONE),
        (transfer(cores.key(1)), quorum(pending=ADDING), Completion.DONE),
        (transfer(cores.key(2)), quorum(), Completion.NOT_DONE),
    ],
)
def test_a_change_is_done_when_the_set_is_as_asked_and_committed(
    request_: m.MembershipRequest, described: m.DescribeQuorumResponse, where: Completion
) -> None:
    assert completion_of(request_, described) is where


@pytest.mark.parametrize(
    ("request_", "described", "reason"),
    [
        (add(cores.key(4)), quorum(observers=(state(4),)), None),
        (add(cores.key(4)), quorum(observers=(LAGGING,)), "VOTER_LAGGING"),
        (add(cores.key(4)), quorum(), OBSERVER_NOT_FOUND),
        (add(cores.key(3)), quorum(), "DUPLICATE_VOTER"),
        (remove(cores.key(3)), quorum(), None),
        (remove(cores.key(3)), quorum(pending=ADDING), "PENDING_VOTER_CHANGE"),
        (add(cores.key(4)), quorum(pending=ADDING), "PENDING_VOTER_CHANGE"),
        (add(cores.key(4)), quorum(kraft_version=0), "KRAFT_VERSION_TOO_OLD"),
        (remove(cores.key(3)), quorum(kraft_version=0), "KRAFT_VERSION_TOO_OLD"),
        (remove(cores.key(1)), quorum(state(1)), "LAST_VOTER"),
        (remove(cores.key(4)), quorum(), "VOTER_NOT_FOUND"),
        (transfer(cores.key(1)), quorum(), None),
        (transfer(cores.key(2)), quorum(), None),
        (transfer(cores.key(4)), quorum(), "VOTER_NOT_FOUND"),
        (UPGRADE, quorum(), None),
    ],
)
def test_a_refusal_is_foreseen_where_the_description_tells(
    request_: m.MembershipRequest, described: m.DescribeQuorumResponse, reason: str | None
) -> None:
    refused = predict_rejection(request_, described)
    assert (None if refused is None else refused.reason) == reason
