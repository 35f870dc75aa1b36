"""Rule `sole_voter_conflict`: the only voter of a quorum finds another quorum of its cluster."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.identity.rival_leader import Rival
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Unattached
from quorate.records.control import KRaftVoters, LeaderChange
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId, Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores
from tests.unit.raft.expecting import WatchedCore

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

pytestmark = pytest.mark.rule("sole_voter_conflict")

RIVAL = Rival(leader_id=NodeId(4), epoch=Epoch(3), host="node-4", port=9094)
SERVERS = (("node-1", 9094), ("node-4", 9094), ("node-5", 9094))


def alone(
    state: api.RecoveredState | None = None, *, servers: tuple[tuple[str, int], ...] = ()
) -> RaftCore:
    """Node 1, the only voter, leads epoch 1, all of it flushed."""
    config = replace(cores.config(1), bootstrap_servers=servers)
    core = WatchedCore(config, state or cores.recovered(1), cores.Midway())
    core.start(Millis(0))
    cores.flush(core, now_ms=1)
    return core


def questions(update: api.Update) -> dict[int, CallId]:
    """The peers that are asked in this step whether they lead."""
    return {
        to: call
        for to, (call, request) in cores.calls(update).items()
        if isinstance(request, m.FetchRequest) and request.replica is None
    }


def says(leader_id: int, epoch: int) -> m.FetchResponse:
    leader = m.LeaderInfo(NodeId(leader_id), Epoch(epoch), cores.endpoints(leader_id))
    return m.FetchResponse(error=ErrorCode.FENCED_LEADER_EPOCH, leader=leader)


def stood_down(*, epoch: int = 3) -> tuple[RaftCore, api.Update]:
    core = alone()
    call = questions(cores.begin(core, 4, epoch, now_ms=10))[4]
    return core, cores.answer(core, call, says(4, epoch), now_ms=11)


def role(core: RaftCore) -> str | None:
    progress = core.told if isinstance(core, WatchedCore) else None
    return None if progress is None else progress.role


def test_a_leader_that_announces_itself_is_asked_and_not_followed() -> None:
    core = alone()
    update = cores.begin(core, 4, 3, now_ms=10)
    (reply,) = cores.replies(update)
    assert isinstance(reply, m.BeginQuorumEpochResponse)
    assert reply.error is ErrorCode.INCONSISTENT_VOTER_SET
    assert reply.leader == m.NOTHING_KNOWN
    assert list(questions(update)) == [4]
    assert role(core) == "leader"


@pytest.mark.parametrize("epoch", [1, 3])
def test_its_own_word_ends_leadership_durably(epoch: int) -> None:
    core, update = stood_down(epoch=epoch)
    rival = replace(RIVAL, epoch=Epoch(epoch))
    assert api.SaveRival(rival) in update.effects
    assert role(core) == "resigned"
    assert not core.has_live_leader
    (remark,) = core.status_warnings()
    assert "node 4 at node-4:9094" in remark
    assert "--no-initial-controllers" in remark
    assert "storage recover" in remark


def test_a_leader_of_an_earlier_epoch_is_no_rival() -> None:
    core = alone(cores.recovered(1, election=m.ElectionState(Epoch(6))))
    update = cores.begin(core, 4, 3, now_ms=10)
    assert not questions(update)
    (reply,) = cores.replies(update)
    assert isinstance(reply, m.BeginQuorumEpochResponse)
    assert reply.error is ErrorCode.FENCED_LEADER_EPOCH


def test_what_others_say_is_looked_into_and_changes_nothing() -> None:
    core = alone()
    call = questions(cores.begin(core, 4, 3, now_ms=10))[4]
    # Node 4 is there, and says that node 5 leads: only node 5 can say so.
    update = cores.answer(core, call, says(5, 3), now_ms=11)
    assert list(questions(update)) == [5]
    update = cores.answer(core, questions(update)[5], api.RequestFailure.DISCONNECTED, now_ms=12)
    assert not questions(update)
    assert role(core) == "leader"


def test_it_neither_leads_nor_follows_nor_votes_any_more() -> None:
    core, _ = stood_down()
    for now_ms in range(100, 20_000, 100):
        update = core.step(api.TimerFired(), Millis(now_ms))
        assert not cores.calls(update)
    assert role(core) == "resigned"
    (reply,) = cores.replies(cores.ask(core, cores.vote(2, 1, 9, cores.end(99, 8)), now_ms=30_000))
    assert isinstance(reply, m.VoteResponse)
    assert (reply.error, reply.leader) == (ErrorCode.INCONSISTENT_VOTER_SET, m.NOTHING_KNOWN)
    assert not reply.vote_granted


def test_a_late_answer_of_the_other_leader_makes_it_no_follower() -> None:
    """A discovery was in flight when the replica stood down."""
    core = cores.started(1, cores.recovered(2, 3))
    sent = cores.open_calls(core, RequestKind.DISCOVERY)[0]
    core.replica.leader_eligibility.rival = RIVAL
    cores.answer(core, sent.call, says(4, 9), now_ms=12)
    assert isinstance(core.replica.role, Unattached)
    assert core.replica.epoch == 0


def test_a_restart_keeps_it_so() -> None:
    election = m.ElectionState(Epoch(1), NodeId(1), cores.key(1))
    state = cores.recovered(1, election=election, rival=RIVAL)
    core = alone(state)
    for now_ms in range(100, 20_000, 100):
        update = core.step(api.TimerFired(), Millis(now_ms))
        assert not cores.calls(update)
        assert update.wake_at_ms is None or update.wake_at_ms > now_ms
    assert role(core) != "leader"
    assert any("node 4 at node-4:9094" in line for line in core.status_warnings())
    (reply,) = cores.replies(cores.ask(core, cores.fetch(2, 0, 0), now_ms=20_001))
    assert isinstance(reply, m.FetchResponse)
    assert (reply.error, reply.leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, m.NOTHING_KNOWN)


def test_one_that_followed_somebody_before_its_restart_looks_for_nobody() -> None:
    election = m.ElectionState(Epoch(3), NodeId(4))
    core = alone(cores.recovered(1, election=election, rival=RIVAL), servers=SERVERS)
    for now_ms in range(100, 20_000, 100):
        update = core.step(api.TimerFired(), Millis(now_ms))
        assert not cores.calls(update)
        assert update.wake_at_ms is None or update.wake_at_ms > now_ms
    assert role(core) == "unattached"


def test_an_only_voter_that_stops_asks_no_more() -> None:
    core = alone(servers=SERVERS)
    cores.propose(core, now_ms=2)
    update = core.step(api.ShutdownRequested(Millis(60_000)), Millis(3))
    for now_ms in range(10_000, 20_000, 1000):
        update = core.step(api.TimerFired(), Millis(now_ms))
        assert update.wake_at_ms is None or update.wake_at_ms > now_ms


def test_an_only_voter_that_leads_asks_around() -> None:
    core = alone(servers=SERVERS)
    core.step(api.TimerFired(), Millis(2))
    assert len(core_sent(core)) == 1
    seen = []
    for now_ms in range(100, 12_000, 50):
        for sent in core_sent(core):
            seen.append(sent.to.host)
            cores.answer(core, sent.call, api.RequestFailure.DISCONNECTED, now_ms=now_ms)
        core.step(api.TimerFired(), Millis(now_ms))
    # Never itself; both in each of two rounds: the second begins five fetch timeouts later.
    assert seen == ["node-4", "node-5"] * 2


def core_sent(core: RaftCore) -> list[api.SendRequest]:
    assert isinstance(core, WatchedCore)
    found = [sent.effect for sent in core.sent.values()]
    return [s for s in found if isinstance(s.request, m.FetchRequest) and s.to.host != "node-1"]


def test_a_bootstrap_server_that_names_a_leader_leads_to_it() -> None:
    core = alone(servers=SERVERS)
    core.step(api.TimerFired(), Millis(2))
    (sent,) = core_sent(core)
    update = cores.answer(core, sent.call, says(5, 1), now_ms=3)
    update = cores.answer(core, questions(update)[5], says(5, 1), now_ms=4)
    assert role(core) == "resigned"
    assert any(isinstance(effect, api.SaveRival) for effect in update.effects)


# --- leaders of an earlier epoch ------------------------------------------------------------------


def later() -> RaftCore:
    """Node 1, the only voter, leads epoch 7."""
    return alone(cores.recovered(1, election=m.ElectionState(Epoch(6))), servers=SERVERS)


def leads(leader_id: int, epoch: int) -> m.FetchResponse:
    return replace(says(leader_id, epoch), error=ErrorCode.NONE)


def node_5_says(core: RaftCore, *answers: m.FetchResponse | api.RequestFailure) -> list[int]:
    """Each server names node 5, leader of epoch 3, which gives these answers: when it was asked."""
    asked: list[int] = []
    for now_ms in range(2, 200_000, 50):
        core.step(api.TimerFired(), Millis(now_ms))
        for sent in core_sent(core):
            if sent.to.node_id != 5:
                cores.answer(core, sent.call, says(5, 3), now_ms=now_ms)
            elif len(asked) < len(answers):
                assert isinstance(sent.request, m.FetchRequest)
                assert sent.request.current_leader_epoch == 3
                cores.answer(core, sent.call, answers[len(asked)], now_ms=now_ms)
                asked.append(now_ms)
    return asked


def test_a_leader_of_an_earlier_epoch_that_leads_on_is_a_rival() -> None:
    core = later()
    asked = node_5_says(core, *[leads(5, 3)] * 9)
    assert role(core) == "resigned"
    fetch_timeout_ms = cores.config().fetch_timeout_ms
    assert asked[-1] - asked[0] >= 5 * fetch_timeout_ms
    assert all(b - a <= 1.1 * fetch_timeout_ms for a, b in pairwise(asked))
    (remark,) = core.status_warnings()
    assert "node 5 at node-5:9094, leader of epoch 3" in remark


@pytest.mark.parametrize(
    "end",
    [
        replace(says(5, 3), error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        says(5, 4),
        says(1, 7),
        api.RequestFailure.TIMED_OUT,
    ],
)
def test_a_leader_of_an_earlier_epoch_that_ends_is_no_rival(
    end: m.FetchResponse | api.RequestFailure,
) -> None:
    """It led for two check-quorum intervals, and still names itself after it resigned."""
    core = later()
    led_until_then = [leads(5, 3)] * 5 + [end]
    assert len(node_5_says(core, *led_until_then * 3)) == 18
    assert role(core) == "leader"


def test_what_becomes_of_others_ends_no_row() -> None:
    """Node 9, which is not there, is announced now and then; node 5 leads epoch 3 all the time."""
    core = later()
    for now_ms in range(2, 100_000, 50):
        core.step(api.TimerFired(), Millis(now_ms))
        if now_ms % 8000 == 2 and role(core) == "leader":
            cores.begin(core, 9, 9, now_ms=now_ms)
        for sent in core_sent(core):
            answer: m.FetchResponse | api.RequestFailure = says(5, 3)
            if sent.to.node_id == 9:
                answer = api.RequestFailure.DISCONNECTED
            elif sent.to.node_id == 5:
                answer = leads(5, 3)
            cores.answer(core, sent.call, answer, now_ms=now_ms)
    assert role(core) == "resigned"


def test_answers_before_and_after_a_pause_make_no_row() -> None:
    """The leader that this quorum had may have been suspended for as long as this replica."""
    core = later()
    now_ms, answers = 2, 0
    while answers < 2:
        core.step(api.TimerFired(), Millis(now_ms))
        for sent in core_sent(core):
            is_leader = sent.to.node_id == 5
            answer = leads(5, 3) if is_leader else says(5, 3)
            cores.answer(core, sent.call, answer, now_ms=now_ms)
            answers += is_leader
            now_ms += 6 * cores.config().fetch_timeout_ms if is_leader else 0
        now_ms += 50
    assert role(core) == "leader"


# --- leaders of this very quorum ------------------------------------------------------------------


def test_a_leader_that_it_voted_for_is_followed() -> None:
    """A voter that was removed, and does not know it committed, leads by the vote of the last."""
    election = m.ElectionState(Epoch(4), None, cores.key(2))
    core = cores.unattached(1, 1)
    core.replica.election = election
    assert core.single_voter_guard.doubts(m.LeaderInfo(NodeId(3), Epoch(4), ()))
    assert not core.single_voter_guard.doubts(m.LeaderInfo(NodeId(2), Epoch(4), ()))
    assert core.single_voter_guard.doubts(m.LeaderInfo(NodeId(2), Epoch(5), ()))


def test_a_leader_that_removes_all_others_is_followed_on() -> None:
    core = cores.follower(2, leader_id=1)
    set_of_two = m.BatchInfo(
        base_offset=Offset(0),
        last_offset=Offset(1),
        epoch=Epoch(1),
        control=(LeaderChange(NodeId(1), (), ()), KRaftVoters(cores.voters(1, 2))),
    )
    only = m.BatchInfo(
        base_offset=Offset(2),
        last_offset=Offset(2),
        epoch=Epoch(1),
        control=(KRaftVoters(cores.voters(2)),),
    )
    told = cores.fetch_answer(records=cores.batches(set_of_two, only))
    cores.answer(core, cores.under_way(core), told, now_ms=5)
    update = cores.flush(core, now_ms=6)
    (request,) = [r for _, r in cores.calls(update).values()]
    assert isinstance(request, m.FetchRequest)
    assert (request.replica, request.fetch_offset) == (cores.key(2), 3)
    assert not core.single_voter_guard.doubts(m.LeaderInfo(NodeId(1), Epoch(1), cores.endpoints(1)))
    assert core.single_voter_guard.doubts(m.LeaderInfo(NodeId(1), Epoch(2), cores.endpoints(1)))


def test_one_that_heals_follows_whom_it_finds() -> None:
    """The end that it remembers may have held more voters."""
    state = cores.recovered(1, remembered_end=cores.end(20, 2), log_end=cores.end(0, 0))
    core = cores.started(1, state)
    update = cores.begin(core, 2, 3, now_ms=5)
    assert role(core) == "follower"
    assert [type(r) for _, r in cores.calls(update).values()] == [m.FetchRequest]


def test_several_voters_follow_whoever_leads() -> None:
    core = cores.unattached(1)
    assert not core.single_voter_guard.doubts(m.LeaderInfo(NodeId(9), Epoch(3), cores.endpoints(9)))
