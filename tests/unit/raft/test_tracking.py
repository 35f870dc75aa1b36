"""What a leader knows of each replica."""

from __future__ import annotations

from dataclasses import replace

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.roles import Leader
from quorate.records.ids import (
    Millis,
    NodeId,
    Offset,
)
from quorate.records.voters import Endpoint
from tests.unit.raft import cores


def test_check_quorum_counts_only_those_whose_log_fits() -> None:
    """A replica that is told to cut, or sent to a snapshot, could commit nothing yet."""
    core = cores.leader()
    role = core.replica.role
    assert isinstance(role, Leader)
    before = role.check_quorum_deadline
    update = cores.ask(core, cores.fetch(2, 9, 1), now_ms=2500)
    assert cores.fetched(update).diverging == cores.end(3, 1)
    assert role.check_quorum_deadline == before
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2501, token=2)
    assert role.check_quorum_deadline == 2501 + 3000


def test_check_quorum_does_not_count_who_is_sent_to_a_snapshot() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    info = m.SnapshotInfo(cores.end(3, 1), 100)
    core.step(api.SnapshotStored(info), Millis(2002))
    core.step(api.LogCleaned(Offset(3), (info,)), Millis(2003))
    role = core.replica.role
    assert isinstance(role, Leader)
    before = role.check_quorum_deadline
    assert cores.fetched(cores.ask(core, cores.fetch(3, 0, 0), now_ms=2004, token=3)).snapshot_id
    assert role.check_quorum_deadline == before


def test_a_replica_was_caught_up_when_it_fetched_before() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 0, 0, wait_ms=0), now_ms=2001)
    progress = core.replica.role.progress[cores.key(2)]  # type: ignore[union-attr]
    assert progress.last_caught_up_ms is None
    cores.propose(core, now_ms=2050)
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2100, token=2)
    assert progress.last_caught_up_ms == 2001
    cores.ask(core, cores.fetch(2, 5, 1, wait_ms=0), now_ms=2200, token=3)
    assert progress.last_caught_up_ms == 2200


def test_rule_4_an_observer_has_caught_up_with_what_is_committed() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    cores.propose(core, now_ms=2050)
    for node_id in (3, 7):
        cores.ask(core, cores.fetch(node_id, 3, 1), now_ms=2100, token=node_id)
    progress = core.replica.role.progress  # type: ignore[union-attr]
    assert progress[cores.key(3)].last_caught_up_ms is None
    assert progress[cores.key(7)].last_caught_up_ms == 2100


def test_invented_observers_push_out_the_longest_silent_one_and_never_a_voter() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    most = cores.config().observers_max
    for node_id in range(100, 100 + most + 50):
        request = cores.fetch(9, 3, 1, wait_ms=0)
        request = replace(request, replica=replace(cores.key(9), node_id=NodeId(node_id)))
        cores.ask(core, request, now_ms=2002, token=node_id)
    role = core.replica.role
    assert isinstance(role, Leader)
    assert len(role.progress) == most
    assert cores.key(2) in role.progress
    assert {key.node_id for key in role.progress} >= set(range(200, 100 + most + 50))


def test_the_endpoints_of_a_replica_are_kept_where_they_can_be_told() -> None:
    core = cores.leader()
    large = (Endpoint("GRPC", "h" * 100_000, 9094),)
    request = replace(cores.fetch(7, 3, 1, wait_ms=0), replica_endpoints=large)
    cores.ask(core, request, now_ms=2001)
    role = core.replica.role
    assert isinstance(role, Leader)
    assert role.progress[cores.key(7)].endpoints == ()
