"""Addresses at which voters are tried: by the set, by their own reports, in order, in bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.request_manager import RequestKind
from quorate.raft.voter_addresses import ADDRESSES_MAX, VoterAddresses
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, DirectoryId, Epoch, Millis, NodeId, Offset, ReplicaKey
from quorate.records.voters import Endpoint, Voter, VoterSet
from tests.unit.raft import cores

SET = cores.voters(1, 2, 3)


def entry(node_id: int) -> Voter:
    voter = SET.by_id(NodeId(node_id))
    assert voter is not None
    return voter


def at(port: int, node_id: int = 2) -> api.Peer:
    return api.Peer(NodeId(node_id), f"node-{node_id}", port)


def addresses() -> VoterAddresses:
    return VoterAddresses(cores.CLUSTER, "GRPC")


def stated(port: int, node_id: int = 2) -> m.VoteRequest:
    """A Vote of a voter that says where it is."""
    vote = cores.vote(node_id, 1, 1, cores.end(0, 0))
    return replace(vote, replica_endpoints=(Endpoint("GRPC", f"node-{node_id}", port),))


def hear(known: VoterAddresses, request: m.Request) -> None:
    known.learn_from_request(request, lambda: [SET])


def test_a_voter_is_where_the_set_says() -> None:
    known = addresses()
    assert known.current(entry(2)) == at(9094)
    hear(known, stated(9094))
    assert known.all_known(entry(2)) == [at(9094)]


@pytest.mark.rule("leader_discovery")
def test_every_request_that_names_its_sender_teaches_where_it_is() -> None:
    for request in (
        stated(9095),
        called(9095),
        m.UpdateRaftVoterRequest(
            cluster_id=cores.CLUSTER,
            current_leader_epoch=Epoch(1),
            voter=cores.key(2),
            listeners=stated(9095).replica_endpoints,
            kraft_version_min=0,
            kraft_version_max=1,
        ),
    ):
        known = addresses()
        hear(known, request)
        assert known.all_known(entry(2)) == [at(9094), at(9095)]
        assert known.all_known(entry(3)) == [at(9094, 3)]


def called(port: int) -> m.FetchRequest:
    """A question of node 2, who leads; it says where it is."""
    endpoints = stated(port).replica_endpoints
    return m.FetchRequest(
        cluster_id=cores.CLUSTER,
        replica=cores.key(2),
        current_leader_epoch=Epoch(0),
        fetch_offset=Offset(0),
        last_fetched_epoch=Epoch(0),
        max_wait_ms=Millis(0),
        max_bytes=1,
        replica_endpoints=endpoints,
    )


def test_addresses_are_tried_in_turns_until_one_answers() -> None:
    known = addresses()
    hear(known, stated(9095))
    tried = []
    for _ in range(4):
        peer = known.current(entry(2))
        assert peer is not None
        tried.append(peer.port)
        known.on_sent(peer, SET, Millis(0))
    assert tried == [9094, 9095, 9094, 9095]
    known.confirm(at(9095), Millis(10))
    assert known.current(entry(2)) == at(9095)


def test_a_voter_that_moved_is_looked_for_there_first_whatever_answered_before() -> None:
    known = addresses()
    hear(known, stated(9095))
    known.confirm(at(9095), Millis(10))
    hear(known, stated(9096))
    assert known.current(entry(2)) == at(9096)
    tried = []
    for _ in range(4):
        peer = known.current(entry(2))
        assert peer is not None
        tried.append(peer.port)
        known.on_sent(peer, SET, Millis(0))
    assert tried == [9096, 9095, 9094, 9096]


def test_a_way_that_was_answered_lately_is_kept_while_the_next_answer_is_under_way() -> None:
    known = addresses()
    hear(known, stated(9095))
    known.confirm(at(9095), Millis(10))
    known.on_sent(at(9095), SET, answered_since=Millis(10))
    assert known.current(entry(2)) == at(9095)
    known.on_sent(at(9095), SET, answered_since=Millis(11))
    assert known.current(entry(2)) == at(9094)


def test_a_way_at_which_somebody_else_answers_is_left_at_once() -> None:
    known = addresses()
    hear(known, stated(9095))
    known.confirm(at(9095), Millis(10))
    known.reject(at(9095))
    known.on_sent(at(9095), SET, answered_since=Millis(0))
    assert known.current(entry(2)) == at(9094)


def test_what_a_disk_of_before_answered_says_nothing_of_the_new_one() -> None:
    known = addresses()
    hear(known, stated(9095))
    known.confirm(at(9095), Millis(10))
    new_disk = ReplicaKey(NodeId(2), DirectoryId(b"x" * 16))
    replaced = VoterSet.of([Voter(new_disk, cores.endpoints(2))])
    known.learn_from_request(replace(stated(9096), replica=new_disk), lambda: [replaced])
    known.on_sent(at(9095), replaced, answered_since=Millis(0))
    (voter,) = replaced
    assert known.all_known(voter) == [at(9094), at(9096)]


def test_few_addresses_of_each_voter_are_remembered_the_latest_ones() -> None:
    known = addresses()
    for port in range(9095, 9195):
        hear(known, stated(port))
    assert known.all_known(entry(2)) == [at(9094), at(9194), at(9193)]
    assert len(known.all_known(entry(2))) == 1 + ADDRESSES_MAX


def test_nothing_is_learnt_of_others() -> None:
    known = addresses()
    another_disk = ReplicaKey(NodeId(2), DirectoryId(b"x" * 16))
    another_cluster = replace(stated(9095), cluster_id=ClusterId("another"))
    for request in (
        replace(stated(9095), replica=another_disk),
        another_cluster,
        stated(9095, 4),
        replace(stated(9095), replica_endpoints=(Endpoint("OTHER", "node-2", 9095),)),
    ):
        hear(known, request)
    assert known.all_known(entry(2)) == [at(9094)]
    for node_id in range(4, 256):
        hear(known, stated(9095, node_id))
    assert set(known._stated) <= {NodeId(1), NodeId(2), NodeId(3)}


def test_who_leaves_the_set_is_forgotten_when_somebody_else_says_where_it_is() -> None:
    known = addresses()
    hear(known, stated(9095))
    without = cores.voters(1, 3)
    known.learn_from_request(stated(9095, 3), lambda: [without])
    assert set(known._stated) == {NodeId(3)}


def test_a_vote_is_asked_for_where_the_voter_says_it_is() -> None:
    core = cores.unattached(1, 1, 2)
    asked = votes(core.step(api.TimerFired(), Millis(1500)))
    assert [effect.to for effect in asked] == [at(9094)]
    # The voter has called, and what was sent to its old address has had its time.
    update = cores.ask(core, called(9095), now_ms=1700)
    assert [effect.to for effect in votes(update)] == [at(9095)]


def test_a_vote_under_way_is_not_given_up_for_a_rumour_of_the_same_moment() -> None:
    core = cores.unattached(1, 1, 2)
    core.step(api.TimerFired(), Millis(1500))
    assert votes(cores.ask(core, called(9095), now_ms=1510)) == []
    assert [sent.to for sent in cores.open_calls(core, RequestKind.VOTE)] == [at(9094)]


def test_who_is_not_the_voter_that_was_meant_has_not_answered() -> None:
    core = cores.unattached(1, 1, 2)
    cores.ask(core, stated(9095), now_ms=1)
    (asked,) = votes(core.step(api.TimerFired(), Millis(3000)))
    refusal = m.VoteResponse(ErrorCode.INVALID_VOTER_KEY, m.LeaderInfo(None, Epoch(1)))
    cores.answer(core, asked.call, refusal, now_ms=3001)
    # It is asked where it says it is after the shortest backoff, not after a request timeout.
    backoff_ms = cores.config().retry_backoff_ms
    (again,) = votes(core.step(api.TimerFired(), Millis(3001 + 2 * backoff_ms)))
    assert again.to == at(9095)


def votes(update: api.Update) -> list[api.SendRequest]:
    return [
        effect
        for effect in update.effects
        if isinstance(effect, api.SendRequest) and isinstance(effect.request, m.VoteRequest)
    ]
