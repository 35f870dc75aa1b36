"""Reported times of last contact, by which a rescue decides whether a quorum is alive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.request_manager import RequestKind
from quorate.raft.trace_events import RoleChangeCause
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores
from tests.unit.raft.expecting import WatchedCore, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

TIMEOUT_MS: Final = cores.config().fetch_timeout_ms


def heard(core: RaftCore, *, now_ms: int) -> dict[int, int]:
    return {one.node_id: one.at_ms for one in cores.described(core, now_ms=now_ms).heard}


def test_a_voter_is_heard_when_it_asks_and_when_it_answers() -> None:
    core = cores.unattached()
    cores.ask(core, cores.vote(3, 1, 0, cores.end(0, 0), pre_vote=True), now_ms=7)
    cores.answer(core, cores.under_way(core, RequestKind.DISCOVERY), cores.fetch_answer(), now_ms=8)
    assert heard(core, now_ms=9) == {2: 8, 3: 7}


def test_strangers_and_other_clusters_are_not_heard() -> None:
    core = cores.unattached()
    stranger = cores.vote(9, 1, 0, cores.end(0, 0), pre_vote=True)
    elsewhere = replace(cores.vote(3, 1, 0, cores.end(0, 0)), cluster_id=ClusterId("another"))
    for request in (stranger, elsewhere):
        cores.ask(core, request, now_ms=7)
    assert heard(core, now_ms=8) == {}


def test_a_leader_that_answers_as_one_is_heard() -> None:
    core = cores.follower()
    cores.answer(core, cores.under_way(core), cores.fetch_answer(), now_ms=5)
    assert heard(core, now_ms=6) == {1: 5}


def test_a_leader_that_answered_only_that_it_is_none_was_not_heard() -> None:
    """A rescue takes a follower that heard its leader for the word of a living quorum."""
    core = cores.follower()
    refusal = m.FetchResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(None, Epoch(1))
    )
    cores.answer(core, cores.under_way(core), refusal, now_ms=5)
    assert heard(core, now_ms=6) == {}
    # Where another leads, its answer tells that its process was there.
    cores.begin(core, 3, 2, now_ms=7)
    assert heard(core, now_ms=7) == {1: 5}


def silence(core: RaftCore, now_ms: int) -> int:
    return core.last_contact.silence_ms(Millis(now_ms))


@pytest.mark.parametrize(
    ("election", "role"),
    [
        (None, "unattached"),
        (m.ElectionState(Epoch(1), NodeId(2)), "follower"),
        (m.ElectionState(Epoch(1), NodeId(1)), "resigned"),
        (m.ElectionState(Epoch(1), None, cores.key(1)), "candidate"),
    ],
)
def test_silence_begins_with_the_replica_and_shows_above_the_fetch_timeout(
    election: m.ElectionState | None, role: str
) -> None:
    recovered = cores.recovered(1, 2, 3, election=election)
    core = WatchedCore(cores.config(), recovered, cores.Midway())
    assert silence(core, 500_000) == 0
    core.start(Millis(500_000))
    assert told(core).role == role
    assert silence(core, 500_000 + TIMEOUT_MS) == 0
    assert silence(core, 500_001 + TIMEOUT_MS) == TIMEOUT_MS + 1


@pytest.mark.parametrize("node_id", [2, 9])
def test_each_answer_of_a_leader_ends_the_silence_of_a_voter_and_of_an_observer(
    node_id: int,
) -> None:
    core = cores.follower(node_id)
    # To know who leads is not to be answered.
    assert silence(core, 50_000) == 50_000
    cores.answer(core, cores.under_way(core), cores.fetch_answer(), now_ms=500)
    assert silence(core, 500 + TIMEOUT_MS) == 0
    assert silence(core, 501 + TIMEOUT_MS) == TIMEOUT_MS + 1


def test_a_leader_that_is_not_believed_is_as_silent_as_one_that_refuses() -> None:
    for wrong in (
        cores.fetch_answer(high_watermark=Offset(1)),
        m.FetchResponse(error=ErrorCode.UNSUPPORTED_VERSION, leader=cores.LEADER),
    ):
        core = cores.fed()
        cores.answer(core, cores.under_way(core), wrong, now_ms=1000)
        assert silence(core, 5002) == 5000


def test_answers_to_pre_votes_do_not_end_the_silence() -> None:
    core = cores.heard()
    now_ms = cores.lost_round(core)
    assert now_ms > TIMEOUT_MS
    assert silence(core, now_ms + 1) == now_ms


def test_a_slice_of_a_snapshot_is_an_answer() -> None:
    core = cores.heard()
    snapshot_id = cores.end(9, 1)
    cores.answer(core, cores.under_way(core), cores.fetch_answer(snapshot_id=snapshot_id), now_ms=2)
    chunk = m.FetchSnapshotResponse(
        error=ErrorCode.NONE,
        leader=cores.LEADER,
        snapshot_id=snapshot_id,
        size_bytes=9,
        position=0,
        chunk=b"abc",
    )
    cores.answer(core, cores.under_way(core, RequestKind.FETCH_SNAPSHOT), chunk, now_ms=1500)
    assert silence(core, 1500 + TIMEOUT_MS) == 0


def test_a_leader_is_never_silent_and_one_that_resigned_is_from_then_on() -> None:
    core = cores.leader()
    assert silence(core, 1_000_000) == 0
    resigned_ms = 2000 + 2 * TIMEOUT_MS
    core.step(api.TimerFired(), Millis(resigned_ms))
    assert told(core).role == "resigned"
    assert silence(core, resigned_ms + TIMEOUT_MS) == 0
    assert silence(core, resigned_ms + TIMEOUT_MS + 1) == TIMEOUT_MS + 1
    # It has not heard its successor yet.
    cores.begin(core, 3, 2, now_ms=resigned_ms + 1)
    assert silence(core, resigned_ms + 9000) == 9000


def test_the_answers_of_a_leader_before_its_own_leadership_are_of_the_past() -> None:
    core = cores.heard()
    core.replica.timers.now = Millis(50_000)
    core.transitions.become_prospective(RoleChangeCause.FETCH_TIMEOUT, "test")
    core.transitions.become_candidate(RoleChangeCause.PRE_VOTES_GRANTED, "test")
    core.transitions.become_leader()
    core.transitions.become_resigned((), RoleChangeCause.CHECK_QUORUM, "test")
    assert silence(core, 50_001 + TIMEOUT_MS) == TIMEOUT_MS + 1


def test_the_leader_of_a_single_voter_is_never_silent() -> None:
    core = cores.unattached(1, 1)
    assert told(core).role == "leader"
    assert silence(core, 1_000_000) == 0
