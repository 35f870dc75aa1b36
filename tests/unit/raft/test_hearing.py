"""Who was heard when, as it is told: by this a rescue judges whether a quorum is alive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.raft import messages as m
from quorate.raft.calls import CallKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def heard(core: RaftCore, *, now_ms: int) -> dict[int, int]:
    return {one.node_id: one.at_ms for one in cores.described(core, now_ms=now_ms).heard}


def test_a_voter_is_heard_when_it_asks_and_when_it_answers() -> None:
    core = cores.unattached()
    cores.ask(core, cores.vote(3, 1, 0, cores.end(0, 0), pre_vote=True), now_ms=7)
    cores.answer(core, cores.under_way(core, CallKind.DISCOVERY), cores.fetch_answer(), now_ms=8)
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
