"""Endpoints of the nodes, as the callers of one listener receive them."""

from __future__ import annotations

from quorate.api.advertised_endpoints import endpoints_for_listener, listener_first
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId, Offset
from quorate.records.voters import Endpoint
from tests.unit.raft import cores

TLS, LOCAL, OTHER = (Endpoint(name, "h", 1) for name in ("TLS", "LOCAL", "OTHER"))
LEADER = m.LeaderInfo(NodeId(1), Epoch(4), (TLS, LOCAL, OTHER))
SEEN = m.LeaderInfo(NodeId(1), Epoch(4), (LOCAL, TLS, OTHER))


def test_the_listener_that_was_asked_on_comes_first_and_the_rest_stays_in_order() -> None:
    assert listener_first((TLS, OTHER, LOCAL), "LOCAL") == (LOCAL, TLS, OTHER)
    assert listener_first((TLS, LOCAL), "TLS") == (TLS, LOCAL)
    assert listener_first((TLS, LOCAL), "NONE") == (TLS, LOCAL)
    assert listener_first((TLS,), "LOCAL") == (TLS,)
    assert listener_first((), "LOCAL") == ()


def test_a_leader_is_told_of_by_the_listener_that_was_asked_on() -> None:
    vote = m.VoteResponse(ErrorCode.NONE, LEADER, vote_granted=True)
    assert endpoints_for_listener("LOCAL", vote) == m.VoteResponse(
        ErrorCode.NONE, SEEN, vote_granted=True
    )
    assert endpoints_for_listener("", vote) is vote


def test_so_is_every_replica_of_a_description() -> None:
    replica = m.ReplicaState(
        key=cores.key(2),
        log_end_offset=Offset(3),
        last_fetch_ms=None,
        last_caught_up_ms=None,
        endpoints=(TLS, LOCAL),
    )
    described = m.DescribeQuorumResponse(
        error=ErrorCode.NONE,
        leader=LEADER,
        voters=(replica,),
        observers=(replica,),
        last_leader=LEADER,
    )
    seen = m.ReplicaState(
        key=cores.key(2),
        log_end_offset=Offset(3),
        last_fetch_ms=None,
        last_caught_up_ms=None,
        endpoints=(LOCAL, TLS),
    )
    assert endpoints_for_listener("LOCAL", described) == m.DescribeQuorumResponse(
        error=ErrorCode.NONE, leader=SEEN, voters=(seen,), observers=(seen,), last_leader=SEEN
    )


def test_who_a_server_is_names_no_leader() -> None:
    who = m.ApiVersionsResponse(
        error=ErrorCode.NONE,
        cluster_id=cores.CLUSTER,
        key=cores.key(1),
        kraft_version_min=0,
        kraft_version_max=1,
    )
    assert endpoints_for_listener("LOCAL", who) is who
