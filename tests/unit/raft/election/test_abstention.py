"""State that an abstaining voter keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Abstention
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId, Epoch, Millis, NodeId, Offset, ReplicaKey
from quorate.records.voters import Voter, VoterSet
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

pytestmark = pytest.mark.rule("empty_log_abstains")

STATIC = VoterSet(tuple(Voter(ReplicaKey(NodeId(i)), cores.endpoints(i)) for i in (1, 2, 3)))


def wiped(node_id: int = 2, *, log_end: int = 0) -> RaftCore:
    state = cores.recovered(1, 2, 3, abstains=True, log_end=cores.end(log_end, 1 if log_end else 0))
    epochs = (m.EpochStart(Epoch(1), Offset(0)),) if log_end else ()
    voters = (m.VotersAt(Offset(-1), STATIC),)
    return cores.started(node_id, replace(state, voters=voters, kraft_versions=(), epochs=epochs))


def asked(core: RaftCore, to: int, *, now_ms: int) -> CallId:
    """The vote request to that voter in flight, as soon as it is sent."""
    for later in range(0, 20_000, 50):
        core.step(api.TimerFired(), Millis(now_ms + later))
        for sent in cores.open_calls(core, RequestKind.DISCOVERY):
            if sent.to.node_id == to:
                return sent.call
    raise AssertionError(f"nobody asks {to}")


def newest(core: RaftCore) -> CallId:
    """The Fetch that was sent last: the one before may have been given up."""
    return cores.open_calls(core, RequestKind.FETCH)[-1].call


def hear(core: RaftCore, voter: int, *, epoch: int = 1, now_ms: int) -> None:
    """That voter says in which epoch it is, and that it does not lead."""
    call = asked(core, voter, now_ms=now_ms)
    answer = m.FetchResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(None, Epoch(epoch))
    )
    cores.answer(core, call, answer, now_ms=core.replica.timers.now)


def fetches(update: api.Update) -> list[m.FetchRequest]:
    return [
        effect.request
        for effect in update.effects
        if isinstance(effect, api.SendRequest) and isinstance(effect.request, m.FetchRequest)
    ]


def test_it_fetches_without_its_id_until_every_other_voter_has_answered() -> None:
    core = wiped()
    update = cores.begin(core, 1, 1, now_ms=1)
    assert [request.replica for request in fetches(update)] == [None]
    told = cores.fetch_answer(records=cores.FIRST, high_watermark=5)
    cores.answer(core, cores.under_way(core), told, now_ms=2)
    update = cores.flush(core, now_ms=3)
    assert core.replica.abstains
    assert {request.replica for request in fetches(update)} == {None}
    hear(core, 3, now_ms=4)
    now_ms = core.replica.timers.now
    update = core.step(api.TimerFired(), Millis(now_ms + 1))
    call = newest(core)
    assert core.follower_replication.fetch_request(Millis(0)).replica == core.replica.key
    update = cores.answer(core, call, cores.fetch_answer(high_watermark=5), now_ms=now_ms + 2)
    assert api.EndAbstention() in update.effects
    assert not core.replica.abstains


def test_a_response_to_a_fetch_without_an_id_does_not_end_the_abstention() -> None:
    core = wiped(log_end=5)
    cores.begin(core, 1, 1, now_ms=1)
    nameless = cores.under_way(core)
    cores.answer(core, asked(core, 1, now_ms=2), cores.fetch_answer(), now_ms=60)
    hear(core, 3, now_ms=61)
    now_ms = core.replica.timers.now
    update = cores.answer(core, nameless, cores.fetch_answer(high_watermark=5), now_ms=now_ms)
    assert api.EndAbstention() not in update.effects
    assert core.replica.abstains


def test_the_epoch_of_a_voter_in_a_later_epoch_is_adopted() -> None:
    core = wiped()
    cores.begin(core, 1, 1, now_ms=1)
    hear(core, 3, epoch=7, now_ms=2)
    assert core.replica.epoch == 7
    refused = cores.ask(core, cores.vote(1, 2, 7, cores.end(9, 6)), now_ms=10_000)
    assert not cores.voted(refused).vote_granted


def test_a_response_with_an_implausible_epoch_does_not_count() -> None:
    core = wiped()
    cores.begin(core, 1, 1, now_ms=1)
    hear(core, 3, epoch=2**31 - 1, now_ms=2)
    assert core.replica.abstention.heard == set()
    assert "hear from 1, 3" in core.status_warnings()[0]


def test_it_votes_again_only_when_all_that_was_committed_is_on_its_disk() -> None:
    core = wiped()
    cores.begin(core, 1, 1, now_ms=1)
    cores.answer(core, asked(core, 1, now_ms=2), cores.fetch_answer(), now_ms=60)
    hear(core, 3, now_ms=61)
    now_ms = core.replica.timers.now
    told = cores.fetch_answer(records=cores.FIRST, high_watermark=9)
    cores.answer(core, newest(core), told, now_ms=now_ms + 1)
    update = cores.flush(core, now_ms=now_ms + 2)
    assert api.EndAbstention() not in update.effects
    assert core.replica.abstains
    assert core.status_warnings()[0].endswith("has yet to catch up")


def test_a_leader_that_knows_no_high_watermark_ends_no_abstention() -> None:
    core = wiped()
    cores.begin(core, 1, 1, now_ms=1)
    cores.answer(core, asked(core, 1, now_ms=2), cores.fetch_answer(), now_ms=60)
    hear(core, 3, now_ms=61)
    now_ms = core.replica.timers.now
    told = replace(cores.fetch_answer(), high_watermark=Offset(-1))
    update = cores.answer(core, newest(core), told, now_ms=now_ms + 1)
    assert api.EndAbstention() not in update.effects
    assert core.replica.abstains


def test_it_waits_for_all_voters_that_have_not_answered() -> None:
    abstention = Abstention(is_on=True)
    assert abstention.unheard(cores.key(2), cores.voters(1, 2, 3)) == [1, 3]
    abstention.heard.add(NodeId(3))
    assert abstention.unheard(cores.key(2), cores.voters(1, 2, 3)) == [1]
    assert abstention.unheard(cores.key(2), cores.voters(1, 2, 3, 4)) == [1, 4]


def test_a_replica_outside_of_the_voter_set_waits_for_no_voter() -> None:
    assert Abstention(is_on=True).unheard(cores.key(4), cores.voters(1, 2, 3)) == []
