"""A replica that was asked to stop finishes what it began, and begins nothing.

See rule `stopping_replica`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, ReplyToken
from tests.unit.raft import cores
from tests.unit.raft.expecting import told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

LIMIT = Millis(9000)


def stop(core: RaftCore, *, now_ms: int, limit_ms: Millis = LIMIT) -> api.Update:
    return core.step(api.ShutdownRequested(limit_ms), Millis(now_ms))


def wait(core: RaftCore, *, now_ms: int) -> api.Update:
    return core.step(api.TimerFired(), Millis(now_ms))


def propose(core: RaftCore, *, now_ms: int) -> api.Update:
    batch = api.ProposedBatch(b"x" * 70, 2)
    return core.step(api.RecordsProposed(ReplyToken(9), Epoch(1), batch), Millis(now_ms))


def prospective() -> RaftCore:
    core = cores.unattached()
    wait(core, now_ms=2000)
    return core


def candidate() -> RaftCore:
    core = cores.unattached()
    update = wait(core, now_ms=2000)
    cores.answer(core, cores.calls(update)[2][0], cores.granted(0), now_ms=2000)
    return core


@pytest.mark.parametrize("make", [cores.follower, cores.unattached, prospective, candidate])
def test_who_does_not_lead_ends_at_once(make: object) -> None:
    core = make()  # type: ignore[operator]
    update = stop(core, now_ms=2001)
    assert api.ShutdownComplete() in update.effects


@pytest.mark.rule("stopping_replica")
def test_a_candidate_that_is_to_stop_wins_nothing_any_more() -> None:
    core = cores.unattached()
    update = wait(core, now_ms=2000)
    update = cores.answer(core, cores.calls(update)[2][0], cores.granted(0), now_ms=2000)
    call = cores.calls(update)[2][0]
    stop(core, now_ms=2001)
    cores.answer(core, call, cores.granted(1), now_ms=2002)
    assert told(core).role == "unattached"
    for now_ms in range(3000, 20_000, 500):
        update = wait(core, now_ms=now_ms)
        assert not any(isinstance(r, m.VoteRequest) for _, r in cores.calls(update).values())


def test_an_only_voter_ends_when_its_records_are_flushed() -> None:
    core = cores.unattached(1, 1)
    update = stop(core, now_ms=3)
    assert api.ShutdownComplete() not in update.effects
    assert api.ShutdownComplete() in cores.flush(core, now_ms=4).effects


@pytest.mark.rule("stopping_replica")
def test_a_leader_commits_what_it_has_before_it_hands_over() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    propose(core, now_ms=2002)
    stop(core, now_ms=2003)
    refused = propose(core, now_ms=2004)
    (answer,) = [r for r in cores.replies(refused) if isinstance(r, m.ProposalResponse)]
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert told(core).role == "leader"
    cores.flush(core, now_ms=2005)
    update = cores.ask(core, cores.fetch(2, 5, 1), now_ms=2006, token=2)
    assert told(core).high_watermark == 5
    assert told(core).role == "resigned"
    ends = [r for _, r in cores.calls(update).values() if isinstance(r, m.EndQuorumEpochRequest)]
    assert len(ends) == 2
    assert api.ShutdownComplete() not in update.effects


def test_a_leader_hands_over_what_nobody_commits_after_one_election_timeout() -> None:
    core = cores.leader()
    stop(core, now_ms=2003)
    wait(core, now_ms=3002)
    assert told(core).role == "leader"
    wait(core, now_ms=3003)
    assert told(core).role == "resigned"


def test_a_stop_ends_in_time_when_somebody_else_leads() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    stop(core, now_ms=4500)
    update = cores.begin(core, 2, 2, now_ms=4600)
    assert api.ShutdownComplete() in update.effects


def test_a_stop_without_a_successor_does_not_end_in_time() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    stop(core, now_ms=4500)
    for now_ms in range(4600, 13_400, 200):
        assert not any(
            isinstance(effect, api.ShutdownComplete) for effect in wait(core, now_ms=now_ms).effects
        )
    assert api.ShutdownComplete(in_time=False) in wait(core, now_ms=13_500).effects


def test_nobody_is_waited_for_where_every_other_process_is_gone() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    sent = cores.calls(stop(core, now_ms=4500))
    update = cores.answer(core, sent[2][0], api.RequestFailure.DISCONNECTED, now_ms=4501)
    assert api.ShutdownComplete() not in update.effects
    update = cores.answer(core, sent[3][0], api.RequestFailure.DISCONNECTED, now_ms=4502)
    assert api.ShutdownComplete() in update.effects


def test_a_second_request_changes_nothing() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    stop(core, now_ms=4500, limit_ms=Millis(1000))
    stop(core, now_ms=5400, limit_ms=Millis(1000))
    assert api.ShutdownComplete(in_time=False) in wait(core, now_ms=5500).effects


def test_who_was_told_and_then_ended_too_is_not_waited_for() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    sent = cores.calls(stop(core, now_ms=4500))
    told = m.EndQuorumEpochResponse(ErrorCode.NONE, m.LeaderInfo(NodeId(1), Epoch(1)))
    for node_id in (2, 3):
        cores.answer(core, sent[node_id][0], told, now_ms=4501)
    again = cores.calls(wait(core, now_ms=4700))
    assert set(again) == {2, 3}
    cores.answer(core, again[2][0], api.RequestFailure.DISCONNECTED, now_ms=4701)
    update = cores.answer(core, again[3][0], api.RequestFailure.DISCONNECTED, now_ms=4701)
    assert api.ShutdownComplete() in update.effects


@pytest.mark.rule("stopping_replica")
def test_a_leader_that_stops_begins_no_change_of_the_voters() -> None:
    core = cores.grown_up_leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=5001)
    core.replica.is_stopping = True
    obstacle = core.membership_requests.add_voter_handler.voter_changes.check_leader(None)
    assert obstacle is not None
    assert obstacle.reason is m.Reason.NOT_LEADER
