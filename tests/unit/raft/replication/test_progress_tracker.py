"""A leader's knowledge of each replica."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.records.ids import (
    NodeId,
)
from quorate.records.voters import Endpoint
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.raft import messages as m
    from quorate.raft.core import RaftCore


def known(core: RaftCore, node_id: int, *, now_ms: int) -> m.ReplicaState | None:
    """The state of a replica as the leader reports it; None if it knows nothing."""
    state = cores.described(core, now_ms=now_ms)
    replicas = (*state.voters, *state.observers)
    return next((replica for replica in replicas if replica.key == cores.key(node_id)), None)


def caught_up_ms(core: RaftCore, node_id: int, *, now_ms: int) -> int | None:
    replica = known(core, node_id, now_ms=now_ms)
    assert replica is not None
    return replica.last_caught_up_ms


def test_a_replica_was_caught_up_when_it_fetched_before() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 0, 0, wait_ms=0), now_ms=2001)
    assert caught_up_ms(core, 2, now_ms=2001) is None
    cores.propose(core, now_ms=2050)
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2100, token=2)
    assert caught_up_ms(core, 2, now_ms=2100) == 2001
    cores.ask(core, cores.fetch(2, 5, 1, wait_ms=0), now_ms=2200, token=3)
    assert caught_up_ms(core, 2, now_ms=2200) == 2200


@pytest.mark.rule("observer_lag_baseline")
def test_an_observer_has_caught_up_with_what_is_committed() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    cores.propose(core, now_ms=2050)
    for node_id in (3, 7):
        cores.ask(core, cores.fetch(node_id, 3, 1), now_ms=2100, token=node_id)
    assert caught_up_ms(core, 3, now_ms=2100) is None
    assert caught_up_ms(core, 7, now_ms=2100) == 2100


def test_invented_observers_push_out_the_longest_silent_one_and_never_a_voter() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    most = cores.config().observers_max
    for node_id in range(100, 100 + most + 50):
        request = cores.fetch(9, 3, 1, wait_ms=0)
        request = replace(request, replica=replace(cores.key(9), node_id=NodeId(node_id)))
        cores.ask(core, request, now_ms=2002, token=node_id)
    state = cores.described(core, now_ms=2003)
    heard = [voter.key.node_id for voter in state.voters if voter.last_fetch_ms == 2001]
    assert heard == [2]
    invented = {observer.key.node_id for observer in state.observers}
    assert len(invented) == len(state.observers) == most - len(heard)
    assert invented >= set(range(200, 100 + most + 50))


def test_the_endpoints_of_a_replica_are_kept_where_they_can_be_told() -> None:
    core = cores.leader()
    large = (Endpoint("GRPC", "h" * 100_000, 9094),)
    request = replace(cores.fetch(7, 3, 1, wait_ms=0), replica_endpoints=large)
    cores.ask(core, request, now_ms=2001)
    replica = known(core, 7, now_ms=2002)
    assert replica is not None
    assert replica.endpoints == ()
