"""Kafka's raft-metrics of a replica, in every role."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate.raft import messages as m
from quorate.raft.core import RaftCore
from quorate.raft.metrics import PENDING_CHANGES, STATES, raft_metrics, state_name
from quorate.raft.roles import Leader, PendingChange
from quorate.raft.trace_events import RoleChangeCause
from quorate.records.ids import Epoch, Millis, ReplyToken, format_uuid
from tests.unit.raft import cores
from tests.unit.raft.expecting import told

LEADER_ONLY = {
    "number_of_observers",
    "number_of_offline_voters",
    "uncommitted_voter_change",
    "pending_voter_changes",
}


def numbers_of(core: RaftCore, now_ms: int) -> dict[str, Any]:
    return raft_metrics(core.replica, Millis(now_ms))


def test_a_leader_tells_of_the_voters_and_observers() -> None:
    core = cores.grown_up_leader()
    cores.ask(core, cores.fetch(7, 3, 1), now_ms=4450, token=2)
    cores.change(
        core,
        m.RemoveRaftVoterRequest(
            cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(0)
        ),
        now_ms=4500,
    )
    numbers = numbers_of(core, 4500)
    assert numbers["current_state"] == {name: float(name == "leader") for name in STATES}
    names = ("number_of_voters", "number_of_observers", "uncommitted_voter_change", "is_voter")
    assert [numbers[name] for name in names] == [2, 2, 1, 1]
    assert (numbers["current_leader"], numbers["current_epoch"]) == (1, told(core).epoch)
    assert numbers["current_vote"] == 1
    own = format_uuid(cores.key(1).directory_id or b"")
    assert numbers["current_vote_directory_id"] == {own: 1.0}


def test_a_pending_change_is_told_by_its_kind() -> None:
    core = cores.grown_up_leader()
    assert not any(numbers_of(core, 4500)["pending_voter_changes"].values())
    cores.change(
        core,
        m.RemoveRaftVoterRequest(
            cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(0)
        ),
        now_ms=4500,
    )
    none = dict.fromkeys(PENDING_CHANGES, 0.0)
    assert numbers_of(core, 4500)["pending_voter_changes"] == none | {"remove": 1.0}


def test_a_change_is_pending_before_it_is_in_the_log() -> None:
    core = cores.grown_up_leader()
    assert isinstance(core.replica.role, Leader)
    core.replica.role.pending = PendingChange(
        ReplyToken(1), "an upgrade", Millis(9000), {"change": "upgrade", "kraft_version": 1}
    )
    numbers = numbers_of(core, 4500)
    assert numbers["uncommitted_voter_change"] == 0
    assert numbers["pending_voter_changes"]["upgrade"] == 1


def test_a_voter_that_does_not_fetch_is_offline_after_the_fetch_timeout() -> None:
    core = cores.grown_up_leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=4450)
    timeout_ms = cores.config().fetch_timeout_ms
    assert numbers_of(core, 4450 + timeout_ms)["number_of_offline_voters"] == 1
    assert numbers_of(core, 4451 + timeout_ms)["number_of_offline_voters"] == 2
    assert numbers_of(cores.leader(), 2000)["number_of_offline_voters"] == 0


def test_what_only_a_leader_knows_is_absent_elsewhere() -> None:
    told = numbers_of(cores.leader(), 0).keys()
    follower = numbers_of(cores.follower(), 0)
    assert told - follower.keys() - {"current_vote_directory_id"} == LEADER_ONLY
    assert (follower["number_of_voters"], follower["current_leader"]) == (3, 1)


def test_nobody_and_no_vote_are_minus_one() -> None:
    numbers = numbers_of(cores.unattached(2), 0)
    assert (numbers["current_leader"], numbers["current_vote"]) == (-1, -1)
    assert "current_vote_directory_id" not in numbers


def test_a_removed_leader_that_still_leads_counts_as_an_observer() -> None:
    core = cores.grown_up_leader()
    cores.change(
        core,
        m.RemoveRaftVoterRequest(
            cluster_id=cores.CLUSTER, voter=cores.key(1), timeout_ms=Millis(0)
        ),
        now_ms=4500,
        by=(2, 3),
    )
    numbers = numbers_of(core, 4500)
    assert (numbers["number_of_observers"], numbers["is_voter"]) == (1, 0)


def test_voters_without_an_address_are_counted() -> None:
    for listener_name, count in (("GRPC", 0), ("ELSEWHERE", 2)):
        config = replace(cores.config(2), listener_name=listener_name)
        core = RaftCore(config, cores.recovered(1, 2, 3), cores.Midway())
        core.start(Millis(0))
        assert numbers_of(core, 0)["number_unknown_voter_connections"] == count


@pytest.mark.parametrize(
    ("make", "state"),
    [
        (cores.leader, "leader"),
        (cores.follower, "follower"),
        (lambda: cores.unattached(2), "unattached"),
    ],
)
def test_roles_are_named_as_kafka_names_them(make: object, state: str) -> None:
    assert callable(make)
    assert state_name(make().replica) == state


def test_votes_and_observers_show_in_the_role() -> None:
    core = cores.unattached(2)
    replica = core.replica
    core.transitions.become_unattached(
        Epoch(3), RoleChangeCause.STARTUP, "test", voted=cores.key(3)
    )
    assert state_name(replica) == "unattached-voted"
    core.transitions.become_prospective(RoleChangeCause.STARTUP, "test")
    assert state_name(replica) == "prospective-voted"
    core.transitions.become_candidate(RoleChangeCause.STARTUP, "test")
    assert state_name(replica) == "candidate"
    observer = cores.follower().replica
    observer.key = cores.key(9)
    assert state_name(observer) == "observer"
    leader = cores.leader()
    leader.transitions.become_resigned((), RoleChangeCause.STARTUP, "test")
    assert state_name(leader.replica) == "resigned"
    core.transitions.become_unattached(Epoch(9), RoleChangeCause.STARTUP, "test")
    core.transitions.become_prospective(RoleChangeCause.STARTUP, "test")
    assert state_name(replica) == "prospective"
