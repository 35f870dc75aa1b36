"""Permissions that requests need, by their types."""

from __future__ import annotations

from typing import get_args

import pytest

from quorate.api.admin_api import AdminRequest
from quorate.api.permissions import (
    ADMIN,
    ALTER,
    CONTROLLER,
    OBSERVER,
    OBSERVER_OR_READ,
    PEER,
    PEER_OR_ALTER,
    RAFT,
    Access,
    RequiredOperation,
)
from quorate.controller.authorization.authorizer import CLUSTER, LOG, TOPICS, Caller, Operation
from quorate.controller.authorization.config_authorizer import ConfigAuthorizer
from quorate.controller.metadata_kinds import METADATA_KINDS
from quorate.raft import messages as m


def test_every_request_of_every_api_has_its_right() -> None:
    assert RAFT.keys() == set(get_args(m.Request))
    writes = {write.request for subject in METADATA_KINDS for write in subject.writes}
    assert CONTROLLER.keys() == writes | {
        read for subject in METADATA_KINDS for read in subject.reads
    }
    # Leave is asked of the leader, by the sidecar.
    assert ADMIN.keys() == set(get_args(AdminRequest)) - {m.TakeLeaveRequest}


def test_peers_need_quorum_action_and_no_more() -> None:
    between_peers = (m.VoteRequest, m.BeginQuorumEpochRequest, m.EndQuorumEpochRequest)
    assert {RAFT[request].any_of for request in between_peers} == {PEER}
    for request in (m.ApiVersionsRequest, m.DescribeQuorumRequest, m.UpdateRaftVoterRequest):
        assert Operation.QUORUM_ACTION in RAFT[request].needs[0].operations


def test_a_broker_may_fetch_for_itself_and_find_the_leader_and_nothing_else() -> None:
    allowed = {Operation.CLUSTER_ACTION: frozenset({"User:broker"})}
    access, broker = Access(ConfigAuthorizer(frozenset(), allowed)), Caller("User:broker")
    fetches = {m.FetchRequest, m.FetchSnapshotRequest}
    finding = {m.ApiVersionsRequest, m.DescribeQuorumRequest}
    for request, right in RAFT.items():
        assert access.allows(broker, right.needs) is (request in finding), request
        assert access.allows(broker, right.for_observers or ()) is (request in fetches), request
        assert not access.allows(broker, right.for_itself or ()), request


@pytest.mark.parametrize("request_type", [m.FetchRequest, m.FetchSnapshotRequest])
def test_the_log_is_for_voters_observers_and_readers_each_as_what_it_is(request_type: type) -> None:
    right = RAFT[request_type]
    assert (right.needs, right.for_observers, right.for_readers, right.for_itself) == (
        PEER,
        OBSERVER,
        OBSERVER_OR_READ,
        None,
    )


def test_the_right_to_read_is_implied_by_no_other_and_implies_none() -> None:
    replicas = {Operation.CLUSTER_ACTION, Operation.QUORUM_ACTION}
    others = frozenset(Operation) - {Operation.READ, *replicas}
    allowed = {operation: frozenset({"User:other"}) for operation in others}
    identities = ConfigAuthorizer(
        frozenset(), {**allowed, Operation.READ: frozenset({"User:reader"})}
    )
    access, other, reader = Access(identities), Caller("User:other"), Caller("User:reader")
    assert not access.allows(other, OBSERVER_OR_READ)
    assert access.allows(reader, OBSERVER_OR_READ)
    for operation in others | replicas:
        for resource in (CLUSTER, TOPICS, LOG):
            assert not access.allows(reader, (RequiredOperation((operation,), resource),))


@pytest.mark.parametrize(
    "request_type", [m.TakeLeaveRequest, m.TransferLeadershipRequest, m.UpdateFeaturesRequest]
)
def test_no_broker_may_hold_up_who_is_to_stop(request_type: type) -> None:
    # Shutdown permits that a caller renews for other voters keep all voters from stopping.
    assert RAFT[request_type].any_of == ALTER


@pytest.mark.parametrize("request_type", [m.AddRaftVoterRequest, m.RemoveRaftVoterRequest])
def test_a_peer_may_change_the_voters_for_itself_only(request_type: type) -> None:
    right = RAFT[request_type]
    assert (right.needs, right.for_itself) == (ALTER, PEER_OR_ALTER)
    assert ADMIN[request_type].any_of == ALTER


def test_any_one_of_the_operations_is_enough() -> None:
    allowed = {Operation.DELETE: frozenset({"User:a"})}
    access = Access(ConfigAuthorizer(frozenset({"User:root"}), allowed))
    either = (RequiredOperation((Operation.ALTER, Operation.DELETE), TOPICS),)
    assert access.allows(Caller("User:a"), either)
    assert access.allows(Caller("User:root"), either)
    assert not access.allows(Caller("User:b"), either)
    alter = RequiredOperation((Operation.ALTER,), TOPICS)
    assert not access.allows(Caller("User:a"), (alter,))
    assert access.allows(Caller("User:a"), (alter, RequiredOperation((Operation.DELETE,))))
