"""Changes of the voters as spans: from the call that asks for one to the commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from opentelemetry.trace import StatusCode

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.roles import Leader, Resigned
from quorate.records.ids import Epoch, Millis
from tests.recorded_spans import attributes_of, recorded
from tests.unit.raft import cores
from tests.unit.server.watched import Watched, events, parent_of

if TYPE_CHECKING:
    from tests.recorded_spans import Recorded
CALL = "quorate.raft.v1.Raft/AddRaftVoter"


def leader() -> Watched:
    """The leader of 1, 2 and 3, old enough to know who fetches, with an observer 4."""
    watched = Watched(cores.recovered(1, 2, 3))
    watched.elect()
    for node_id in (2, 3, 4):
        watched.ask(cores.fetch(node_id, 3, 1), at=4400)
    return watched


def names(spans: Recorded) -> list[str]:
    return [name for name, _ in events(spans.one("kraft.voter_change"))]


def fetch_again(watched: Watched) -> None:
    """The voters fetch after the change was requested; then the leader continues it."""
    leading = watched.core.replica.role
    assert isinstance(leading, Leader)
    for node_id in (2, 3):
        watched.ask(cores.fetch(node_id, 3, 1, read_round=leading.read_round))
    watched.wake(watched.now)


def commit(watched: Watched) -> None:
    watched.flush()
    end = watched.core.replica.log.end.offset
    for node_id in (2, 4):
        watched.ask(cores.fetch(node_id, end, 1))


@pytest.mark.parametrize("waits", [True, False])
def test_an_added_voter_is_a_child_of_the_call_from_the_check_to_the_commit(*, waits: bool) -> None:
    with recorded() as spans:
        watched = leader()
        watched.ask(replace(cores.ADD, ack_when_committed=waits), called=CALL, at=4500)
        carried = watched.carried[4]
        fetch_again(watched)
        watched.answer(4, cores.VERSIONS)
        assert not spans.named("kraft.voter_change")
        commit(watched)
    change = spans.one("kraft.voter_change")
    assert parent_of(change, spans) == CALL
    assert carried == change.context
    assert change.status.status_code is StatusCode.UNSET
    assert attributes_of(change) == {
        "kraft.voter_change.type": "add",
        "kraft.voter.id": 4,
        "kraft.voter.directory_id": "BAQEBAQEBAQEBAQEBAQEBA",
    }
    assert change.name == "add voter 4: committed"
    appended = ("appended", {"kraft.offset": 3})
    assert events(change) == [("caught_up", {}), appended, ("committed", {})]


def test_a_change_that_nobody_traces_is_a_trace_of_its_own() -> None:
    with recorded() as spans:
        watched = leader()
        watched.ask(
            m.RemoveRaftVoterRequest(
                cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(1000)
            ),
            at=4500,
        )
        fetch_again(watched)
        watched.flush()
        watched.ask(cores.fetch(2, 4, 1))
    change = spans.one("kraft.voter_change")
    assert change.parent is None
    assert attributes_of(change)["kraft.cluster.id"] == "cluster"
    assert attributes_of(change)["kraft.voter_change.type"] == "remove"
    assert names(spans) == ["appended", "committed"]


def test_what_is_refused_at_once_is_no_change() -> None:
    with recorded() as spans:
        watched = leader()
        watched.ask(replace(cores.ADD, voter=cores.key(3)), called=CALL, at=4500)
        watched.spans.ended()
    assert not spans.named("kraft.voter_change")


def test_a_new_voter_that_does_not_answer_ends_its_change_with_the_reason() -> None:
    with recorded() as spans:
        watched = leader()
        watched.ask(cores.ADD, called=CALL, at=4500)
        watched.answer(4, api.RequestFailure.DISCONNECTED)
    change = spans.one("kraft.voter_change")
    assert change.status.status_code is StatusCode.ERROR
    assert "does not answer ApiVersions" in (change.status.description or "")
    assert attributes_of(change)["kraft.refusal"] == "VOTER_UNREACHABLE"
    assert names(spans) == ["caught_up"]


def test_a_caller_that_is_told_to_wait_no_longer_does_not_end_the_change() -> None:
    with recorded() as spans:
        watched = leader()
        watched.ask(cores.ADD, called=CALL, at=4500)
        fetch_again(watched)
        watched.answer(4, cores.VERSIONS)
        watched.wake(5500)
        commit(watched)
    told = ("answered", {"kraft.refusal": "NOT_COMMITTED_IN_TIME"})
    assert told in events(spans.one("kraft.voter_change"))
    assert names(spans) == ["caught_up", "appended", "answered", "committed"]


def test_a_leader_that_is_none_any_more_does_not_know_what_becomes_of_a_change() -> None:
    with recorded() as spans:
        watched = leader()
        watched.ask(cores.ADD, called=CALL, at=4500)
        fetch_again(watched)
        watched.answer(4, cores.VERSIONS)
        watched.ask(cores.vote(3, 1, 9, cores.end(9, 8)))
    change = spans.one("kraft.voter_change")
    assert (change.status.status_code, change.status.description) == (
        StatusCode.ERROR,
        "leadership was lost",
    )


def test_a_leader_that_is_removed_resigns_within_its_removal() -> None:
    with recorded() as spans:
        watched = leader()
        removal = m.RemoveRaftVoterRequest(
            cluster_id=cores.CLUSTER, voter=cores.key(1), timeout_ms=Millis(1000)
        )
        watched.ask(removal, called="remove", at=4500)
        fetch_again(watched)
        for node_id in (2, 3):
            watched.ask(cores.fetch(node_id, 4, 1))
        assert isinstance(watched.core.replica.role, Resigned)
        watched.spans.ended()
    assert spans.one("kraft.voter_change").status.status_code is StatusCode.UNSET
    assert names(spans) == ["appended", "committed"]
    resign = spans.one("kraft.resign")
    assert parent_of(resign, spans) == "kraft.voter_change"
    assert attributes_of(resign)["kraft.resign.reason"] == "removed"


def test_a_removal_that_waits_for_fetches_is_a_child_of_its_call() -> None:
    with recorded() as spans:
        watched = leader()
        removal = m.RemoveRaftVoterRequest(
            cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(1000)
        )
        watched.ask(removal, called="remove", at=4500)
        watched.wake(5500)
    change = spans.one("kraft.voter_change")
    assert parent_of(change, spans) == "remove"
    assert attributes_of(change)["kraft.refusal"] == "NO_LIVE_MAJORITY"
    assert names(spans) == []


def test_a_voter_that_moved_is_a_change_too() -> None:
    with recorded() as spans:
        watched = leader()
        update = m.UpdateRaftVoterRequest(
            cluster_id=cores.CLUSTER,
            current_leader_epoch=Epoch(1),
            voter=cores.key(2),
            listeners=cores.endpoints(9),
            kraft_version_min=0,
            kraft_version_max=1,
        )
        watched.ask(update, called="update", at=4500)
        commit(watched)
    assert attributes_of(spans.one("kraft.voter_change"))["kraft.voter_change.type"] == "update"
    assert names(spans) == ["appended", "committed"]
