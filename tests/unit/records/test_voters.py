"""Voter sets: order, majority, who matches whom."""

from __future__ import annotations

import pytest

from quorate.records.ids import DirectoryId, NodeId, ReplicaKey
from quorate.records.voters import DECOMMISSIONED_MAX, Endpoint, Voter, VoterSet


def key(node_id: int, directory: bytes | None = None) -> ReplicaKey:
    return ReplicaKey(NodeId(node_id), None if directory is None else DirectoryId(directory * 16))


def test_an_endpoint_is_found_by_its_listeners_name() -> None:
    endpoint = Endpoint("GRPC", "host", 9094)
    voter = Voter(key(1), (Endpoint("CONTROLLER", "host", 9093), endpoint))
    assert voter.endpoint("GRPC") == endpoint
    assert voter.endpoint("OTHER") is None
    assert str(endpoint) == "GRPC://host:9094"


@pytest.mark.parametrize("ids", [(2, 1), (1, 1)])
def test_a_set_is_ordered_and_holds_each_node_once(ids: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="each once"):
        VoterSet(tuple(Voter(key(node_id)) for node_id in ids))


def test_voters_are_brought_into_order() -> None:
    one, two = Voter(key(1)), Voter(key(2))
    assert list(VoterSet.of([two, one])) == [one, two]


@pytest.mark.parametrize(("size", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(size: int, majority: int) -> None:
    voters = VoterSet(tuple(Voter(key(node_id)) for node_id in range(size)))
    assert len(voters) == size
    assert voters.majority == majority


def test_a_known_directory_matches_itself_alone() -> None:
    voters = VoterSet((Voter(key(1, b"a")), Voter(key(2))))
    assert key(1, b"a") in voters
    assert key(1, b"b") not in voters
    assert key(1) not in voters
    assert key(2, b"c") in voters
    assert key(3) not in voters
    assert voters.by_id(NodeId(1)) == Voter(key(1, b"a"))
    assert voters.by_id(NodeId(3)) is None


def test_adding_replaces_and_removing_needs_the_whole_key() -> None:
    old, new, other = Voter(key(1, b"a")), Voter(key(1, b"b")), Voter(key(2, b"a"))
    voters = VoterSet((old,))
    assert voters.with_voter(other) == VoterSet((old, other))
    assert voters.with_voter(new) == VoterSet((new,))
    assert VoterSet((old, other)).without(old.key) == VoterSet((other,), (old.key,))
    assert voters.without(new.key) == voters


def test_whoever_is_added_again_is_decommissioned_no_longer() -> None:
    one, other = Voter(key(1, b"a")), Voter(key(2, b"a"))
    removed = VoterSet((one, other)).without(one.key)
    assert removed.with_voter(other) == removed
    assert removed.with_voter(one) == VoterSet((one, other))


def test_whoever_is_not_decommissioned_leaves_the_list_as_it_was() -> None:
    one, two, three = Voter(key(1)), Voter(key(2)), Voter(key(3))
    removed = VoterSet((one, two, three)).without(one.key)
    assert removed.without(two.key, decommission=False) == VoterSet((three,), (one.key,))


def test_only_the_latest_removals_are_remembered() -> None:
    keeper = Voter(key(99))
    voters = VoterSet((keeper,))
    for node_id in range(DECOMMISSIONED_MAX + 2):
        voters = voters.with_voter(Voter(key(node_id))).without(key(node_id))
    assert len(voters.decommissioned) == DECOMMISSIONED_MAX
    assert voters.decommissioned[0] == key(2)
