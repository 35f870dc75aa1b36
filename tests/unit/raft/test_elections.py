"""Votes and pre-votes (KIP-595, KIP-996), early suspicion, readiness, healing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.elections import (
    REFUSALS_MAX,
    REFUSALS_TOLD_MS,
    REPEAT_SHARE,
    RETRY_SHARE,
)
from quorate.raft.notes import Cause
from quorate.raft.promises import ASK_SHARE, PROMISE_SHARE, TURN_SHARE
from quorate.raft.roles import Candidate, Follower, Leader, Prospective, Unattached
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset, OffsetAndEpoch, ReplicaKey
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def answered(update: api.Update) -> m.VoteResponse:
    (response,) = cores.replies(update)
    assert isinstance(response, m.VoteResponse)
    return response


def test_an_election_timeout_asks_for_pre_votes_without_touching_the_epoch() -> None:
    core = cores.unattached()
    update = core.step(api.TimerFired(), Millis(1500))
    assert isinstance(core.replica.role, Prospective)
    assert core.replica.epoch == 0
    asked = {node: request for node, (_, request) in cores.calls(update).items()}
    assert asked == {n: cores.vote(1, n, 0, cores.end(0, 0), pre_vote=True) for n in (2, 3)}


def test_a_majority_of_pre_votes_raises_the_epoch_and_saves_the_own_vote_first() -> None:
    core = cores.unattached()
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    update = cores.answer(core, asked[2][0], cores.granted(0), now_ms=1501)
    state = m.ElectionState(Epoch(1), None, cores.key(1))
    assert update.effects[0] == api.SaveElection(state, 1, cores.voters(1, 2, 3))
    assert all(not isinstance(e, api.SaveElection) for e in update.effects[1:])
    assert isinstance(core.replica.role, Candidate)


def test_a_majority_of_votes_makes_a_leader_that_is_saved_before_it_appends() -> None:
    core = cores.leader()
    assert isinstance(core.replica.role, Leader)
    assert core.replica.election.leader_id == 1


def test_the_only_voter_leads_at_once() -> None:
    core = cores.unattached(1, 1)
    assert isinstance(core.replica.role, Leader)


@pytest.mark.parametrize(
    ("last", "is_granted"), [((4, 1), False), ((5, 1), True), ((6, 1), True), ((1, 2), True)]
)
def test_only_a_log_at_least_as_up_to_date_wins_a_vote(
    last: tuple[int, int],
    is_granted: bool,  # noqa: FBT001 - a row of the table
) -> None:
    state = cores.recovered(
        1,
        2,
        3,
        log_end=cores.end(5, 1),
        epochs=(m.EpochStart(Epoch(1), cores.end(0, 0).offset),),
        election=m.ElectionState(Epoch(2)),
    )
    core = cores.started(1, state)
    update = cores.ask(core, cores.vote(2, 1, 3, cores.end(*last)), now_ms=1)
    assert answered(update).vote_granted is is_granted


def test_a_vote_is_saved_before_it_is_answered_and_given_once_an_epoch() -> None:
    core = cores.unattached()
    update = cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=1)
    kinds = [type(effect) for effect in update.effects]
    assert kinds.index(api.SaveElection) < kinds.index(api.SendReply)
    assert core.replica.election == m.ElectionState(Epoch(1), None, cores.key(2))
    again = cores.ask(core, cores.vote(3, 1, 1, cores.end(0, 0)), now_ms=2)
    assert not answered(again).vote_granted
    same = cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=3)
    assert answered(same).vote_granted


def test_a_vote_that_was_given_is_given_again_whatever_the_log_says() -> None:
    state = cores.recovered(
        1,
        2,
        3,
        log_end=cores.end(5, 1),
        epochs=(m.EpochStart(Epoch(1), cores.end(0, 0).offset),),
        election=m.ElectionState(Epoch(2), None, cores.key(2)),
    )
    core = cores.started(1, state)
    assert answered(cores.ask(core, cores.vote(2, 1, 2, cores.end(4, 1)), now_ms=1)).vote_granted
    other = cores.vote(3, 1, 2, cores.end(9, 1))
    assert not answered(cores.ask(core, other, now_ms=2)).vote_granted


def test_nobody_is_asked_for_votes_before_the_whole_log_is_on_the_disk() -> None:
    """What a vote was given for must not be shorter after a crash."""
    core = cores.unattached()
    core.replica.log.append(cores.end(1, 0))
    update = core.step(api.TimerFired(), Millis(1500))
    assert isinstance(core.replica.role, Prospective)
    assert not cores.calls(update)
    asked = cores.calls(cores.flush(core, now_ms=1501))
    assert {request for _, request in asked.values()} == {
        cores.vote(1, node, 0, cores.end(1, 0), pre_vote=True) for node in (2, 3)
    }


def test_a_nominee_that_votes_for_a_candidate_draws_its_timer_and_begins_anew() -> None:
    core = cores.unattached(1, 1, 2, 3, 4)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.answer(core, asked[2][0], cores.granted(0), now_ms=1501)
    role = core.replica.role
    core.replica.save_election(m.ElectionState(Epoch(0)))
    core.elections._vote_for(cores.vote(3, 1, 0, cores.end(0, 0)))
    assert core.replica.role is role
    assert isinstance(role, Prospective)
    assert role.election_deadline == 1501 + 1500
    assert role.tally.granted == 1
    cores.answer(core, asked[4][0], cores.granted(0), now_ms=1502)
    assert core.replica.role is role


def test_an_answer_of_an_older_epoch_counts_for_nothing() -> None:
    core = cores.unattached()
    core.replica.become_unattached(Epoch(3), Cause.HIGHER_EPOCH, "test")
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.answer(core, asked[2][0], cores.granted(2), now_ms=1501)
    role = core.replica.role
    assert isinstance(role, Prospective)
    assert role.tally.granted == 1


def test_a_vote_in_a_new_epoch_is_saved_together_with_the_epoch() -> None:
    core = cores.unattached()
    update = cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=1)
    saves = [effect for effect in update.effects if isinstance(effect, api.SaveElection)]
    state = m.ElectionState(Epoch(1), None, cores.key(2))
    assert saves == [api.SaveElection(state, 1, cores.voters(1, 2, 3))]


def test_a_vote_is_not_given_in_an_epoch_whose_leader_is_known() -> None:
    core = cores.follower(2, leader_id=1, epoch=1)
    update = cores.ask(core, cores.vote(3, 2, 1, cores.end(0, 0)), now_ms=2)
    assert not answered(update).vote_granted


def test_a_request_for_another_directory_is_refused() -> None:
    core = cores.unattached()
    request = cores.vote(2, 1, 1, cores.end(0, 0))
    wrong = m.VoteRequest(
        request.cluster_id,
        cores.key(9),
        request.replica,
        request.replica_epoch,
        request.last,
        False,  # noqa: FBT003
    )
    assert answered(cores.ask(core, wrong, now_ms=1)).error is ErrorCode.INVALID_VOTER_KEY


def test_an_upgrade_that_is_not_committed_does_not_refuse_who_never_heard_of_it() -> None:
    asked = cores.vote(3, 2, 2, cores.end(5, 2))
    asked = replace(asked, replica_epoch=Epoch(3), voter=ReplicaKey(NodeId(2)))
    for high_watermark, is_refused in ((3, False), (4, True)):
        state = cores.recovered(1, 2, 3, log_end=cores.end(4, 1))
        state = replace(
            state,
            kraft_versions=(m.KRaftVersionAt(Offset(-1), 0), m.KRaftVersionAt(Offset(3), 1)),
            election=m.ElectionState(Epoch(1)),
        )
        core = cores.started(2, state)
        core.replica.high_watermark = Offset(high_watermark)
        answer = answered(cores.ask(core, asked, now_ms=1))
        assert (answer.error is ErrorCode.INVALID_VOTER_KEY) == is_refused
        assert answer.vote_granted != is_refused


def test_requests_of_other_clusters_older_epochs_and_nonsense_are_refused() -> None:
    core = cores.follower(2, leader_id=1, epoch=4)
    old = cores.vote(3, 2, 3, cores.end(0, 0))
    assert answered(cores.ask(core, old, now_ms=2)).error is ErrorCode.FENCED_LEADER_EPOCH
    odd = cores.vote(3, 2, 5, OffsetAndEpoch(epoch=Epoch(5), offset=old.last.offset))
    assert answered(cores.ask(core, odd, now_ms=2)).error is ErrorCode.INVALID_REQUEST


def test_rule_2_a_nominee_outside_the_own_set_may_win_the_vote() -> None:
    core = cores.unattached(1, 1, 2)
    core.replica.become_unattached(Epoch(1), Cause.HIGHER_EPOCH, "test")
    update = cores.ask(core, cores.vote(9, 1, 2, cores.end(0, 0)), now_ms=1)
    assert answered(update).vote_granted


def test_rule_9_a_pre_vote_of_a_higher_epoch_moves_the_receiver() -> None:
    core = cores.leader()
    cores.ask(core, cores.vote(2, 1, 7, cores.end(3, 1), pre_vote=True), now_ms=2001)
    assert isinstance(core.replica.role, Unattached)
    assert core.replica.epoch == 7


def test_rule_9_a_lost_election_waits_for_the_rest_of_its_timeout() -> None:
    core = cores.unattached()
    update = core.step(api.TimerFired(), Millis(1500))
    update = cores.answer(core, cores.calls(update)[2][0], cores.granted(0), now_ms=1500)
    role = core.replica.role
    assert isinstance(role, Candidate)
    deadline = role.election_deadline
    refusal = replace(cores.granted(1), vote_granted=False)
    for call, _ in cores.calls(update).values():
        cores.answer(core, call, refusal, now_ms=1501)
    assert role.has_lost
    core.step(api.TimerFired(), Millis(deadline - 1))
    assert core.replica.role is role
    core.step(api.TimerFired(), deadline)
    assert isinstance(core.replica.role, Prospective)


def test_a_leader_and_a_follower_that_hears_it_refuse_pre_votes() -> None:
    core = cores.leader()
    update = cores.ask(core, cores.vote(2, 1, 1, cores.end(3, 1), pre_vote=True), now_ms=2001)
    assert not answered(update).vote_granted
    hearing = cores.follower()
    assert isinstance(hearing.replica.role, Follower)
    asked = cores.vote(3, 2, 1, cores.end(0, 0), pre_vote=True)
    assert answered(cores.ask(hearing, asked, now_ms=2)).vote_granted
    hearing.replica.role.has_fetched = True
    assert not answered(cores.ask(hearing, asked, now_ms=3)).vote_granted


def prospective(node_id: int) -> RaftCore:
    """One of three that asks for pre-votes in epoch 0; the others have not answered."""
    core = cores.unattached(node_id, 1, 2, 3)
    core.step(api.TimerFired(), Millis(1500))
    assert isinstance(core.replica.role, Prospective)
    return core


def test_of_two_nominees_the_longer_log_goes_first_then_the_higher_id() -> None:
    core = prospective(2)
    behind = cores.ask(core, cores.vote(1, 2, 0, cores.end(0, 0), pre_vote=True), now_ms=1501)
    assert not answered(behind).vote_granted
    ahead = cores.ask(core, cores.vote(3, 2, 0, cores.end(0, 0), pre_vote=True), now_ms=1501)
    assert answered(ahead).vote_granted
    longer = cores.vote(1, 2, 0, cores.end(5, 0), pre_vote=True)
    assert answered(cores.ask(prospective(2), longer, now_ms=1501)).vote_granted


def part_of_election_timeout(share: int) -> int:
    return cores.config().election_timeout_ms // share


def refused(core: RaftCore) -> m.VoteResponse:
    return m.VoteResponse(ErrorCode.NONE, core.replica.leader_info, vote_granted=False)


def test_a_nominee_that_gave_a_rival_its_pre_vote_begins_again_later() -> None:
    core = cores.unattached(1, 1, 2, 3)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    update = cores.ask(core, cores.vote(2, 1, 0, cores.end(0, 0), pre_vote=True), now_ms=1501)
    assert answered(update).vote_granted
    cores.answer(core, asked[3][0], cores.granted(0), now_ms=1502)
    assert isinstance(core.replica.role, Prospective)
    assert update.wake_at_ms == 1501 + part_of_election_timeout(TURN_SHARE)
    again = cores.calls(core.step(api.TimerFired(), update.wake_at_ms))
    cores.answer(core, again[3][0], cores.granted(0), now_ms=update.wake_at_ms + 1)
    assert isinstance(core.replica.role, Candidate)


def test_all_are_asked_again_soon_while_a_round_lasts() -> None:
    core = cores.unattached(2, 1, 2, 3, 4)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.answer(core, asked[1][0], refused(core), now_ms=1501)
    update = cores.answer(core, asked[3][0], cores.granted(0), now_ms=1501)
    assert update.wake_at_ms == 1501 + part_of_election_timeout(ASK_SHARE)
    again = cores.calls(core.step(api.TimerFired(), update.wake_at_ms))
    assert {node: request for node, (_, request) in again.items()} == {
        node: asked[node][1] for node in (1, 3)
    }


@pytest.mark.parametrize("epoch", [0, 1], ids=["pre-vote", "vote"])
def test_a_voter_that_does_not_answer_is_asked_again_before_the_request_times_out(
    epoch: int,
) -> None:
    core = cores.unattached(2, 1, 2, 3, 4, 5)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    if epoch:
        for node in (1, 3):
            update = cores.answer(core, asked[node][0], cores.granted(0), now_ms=1500)
        assert isinstance(core.replica.role, Candidate)
        asked = cores.calls(update)
    update = core.step(api.TimerFired(), Millis(1501))
    assert cores.calls(update) == {}
    assert update.wake_at_ms == 1500 + part_of_election_timeout(REPEAT_SHARE)
    again = cores.calls(core.step(api.TimerFired(), update.wake_at_ms))
    assert {node: request for node, (_, request) in again.items()} == {
        node: request for node, (_, request) in asked.items()
    }
    # Whichever of the two is answered counts.
    cores.answer(core, asked[4][0], cores.granted(epoch), now_ms=1800)
    update = cores.answer(core, again[5][0], cores.granted(epoch), now_ms=1800)
    assert isinstance(core.replica.role, Leader if epoch else Candidate)


def test_who_waits_for_answers_sleeps_although_what_it_asked_is_overdue() -> None:
    core = cores.unattached(2, 1, 2, 3, 4)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    for now_ms in range(1501, 2400):
        update = core.step(api.TimerFired(), Millis(now_ms))
        if now_ms == 1800:
            update = cores.answer(core, asked[1][0], api.CallFailure.DISCONNECTED, now_ms=now_ms)
        assert update.wake_at_ms is not None
        assert update.wake_at_ms > now_ms


def test_a_nominee_that_waits_for_its_disk_lets_a_rival_pass() -> None:
    core = prospective(3)
    asked = cores.vote(1, 3, 0, cores.end(0, 0), pre_vote=True)
    assert not answered(cores.ask(core, asked, now_ms=1501)).vote_granted
    core = prospective(3)
    core.replica.log.end = cores.end(1, 0)
    asked = cores.vote(1, 3, 0, cores.end(1, 0), pre_vote=True)
    assert answered(cores.ask(core, asked, now_ms=1501)).vote_granted


def test_rounds_lost_in_an_epoch_say_nothing_of_the_next() -> None:
    core = cores.follower(2, 1)
    core.replica.lost_rounds = 5
    cores.begin(core, 3, 2, now_ms=5)
    assert core.replica.lost_rounds == 0


def test_a_promise_that_is_not_renewed_counts_no_more() -> None:
    """Its voter may have given it to a rival: two nominees must not both count it."""
    core = cores.unattached(2, 1, 2, 3, 4)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.answer(core, asked[1][0], cores.granted(0), now_ms=1501)
    over = 1501 + part_of_election_timeout(PROMISE_SHARE)
    cores.answer(core, asked[3][0], cores.granted(0), now_ms=over)
    assert isinstance(core.replica.role, Prospective)
    assert core.replica.role.tally.votes == {1: None, 2: True, 3: True, 4: None}


def test_a_round_that_only_rivals_spoil_goes_on() -> None:
    """Back to a leader that others miss, too, all would begin anew at one moment again."""
    core = cores.unattached(3, 1, 2, 3)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.ask(core, cores.vote(2, 3, 0, cores.end(0, 0), pre_vote=True), now_ms=1501)
    for node in (1, 2):
        cores.answer(core, asked[node][0], refused(core), now_ms=1502)
    role = core.replica.role
    assert isinstance(role, Prospective)
    assert role.tally.is_lost
    again = cores.calls(core.step(api.TimerFired(), Millis(1600)))
    cores.answer(core, again[1][0], cores.granted(0), now_ms=1601)
    assert isinstance(core.replica.role, Candidate)


def test_a_round_is_lost_once_its_rivals_are_silent() -> None:
    core = cores.unattached(3, 1, 2, 3)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.ask(core, cores.vote(2, 3, 0, cores.end(0, 0), pre_vote=True), now_ms=1501)
    cores.answer(core, asked[1][0], refused(core), now_ms=1502)
    over = 1501 + part_of_election_timeout(TURN_SHARE)
    cores.answer(core, asked[2][0], refused(core), now_ms=over)
    assert isinstance(core.replica.role, Unattached)


def test_a_rival_that_misses_the_leader_too_is_asked_again_at_once() -> None:
    core = cores.unattached(2, 1, 2, 3)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    refusal = m.VoteResponse(ErrorCode.NONE, core.replica.leader_info, vote_granted=False)
    cores.answer(core, asked[1][0], refusal, now_ms=1501)
    rival = cores.ask(core, cores.vote(1, 2, 0, cores.end(0, 0), pre_vote=True), now_ms=1502)
    assert not answered(rival).vote_granted
    assert cores.calls(rival)[1][1] == asked[1][1]


def test_a_lost_round_is_repeated_soon_and_then_ever_later() -> None:
    core = cores.follower(2, 1)
    refusal = m.VoteResponse(ErrorCode.NONE, core.replica.leader_info, vote_granted=False)
    waits = []
    for _ in range(6):
        role = core.replica.role
        assert isinstance(role, Follower)
        begun = role.fetch_deadline
        update = core.step(api.TimerFired(), begun)
        # A discovery goes out beside them, to one or the other.
        asked = [e for e in update.effects if isinstance(e, api.SendRequest)]
        for effect in asked:
            if isinstance(effect.request, m.VoteRequest):
                cores.answer(core, effect.call, refusal, now_ms=begun)
        role = core.replica.role
        assert isinstance(role, Follower)
        waits.append(role.fetch_deadline - begun)
    share = part_of_election_timeout(RETRY_SHARE)
    assert waits[:3] == [share + share // 2, 2 * (share + share // 2), 4 * (share + share // 2)]
    assert waits[-1] == core.replica.draw_election_timeout()


def test_rule_11_a_state_machine_that_loads_waits_once_an_epoch() -> None:
    core = cores.unattached()
    core.step(api.StateMachineProgress(ready=False), Millis(1))
    core.step(api.TimerFired(), Millis(1500))
    assert isinstance(core.replica.role, Unattached)
    core.step(api.TimerFired(), Millis(3000))
    assert isinstance(core.replica.role, Prospective)


def test_rule_11_a_voter_that_waits_for_others_to_lead_grants_them_its_pre_vote() -> None:
    core = cores.follower(2, 1)
    assert isinstance(core.replica.role, Follower)
    core.replica.role.has_fetched = True
    core.step(api.StateMachineProgress(ready=False), Millis(1))
    core.step(api.TimerFired(), core.replica.role.fetch_deadline)
    assert isinstance(core.replica.role, Follower)
    asked = cores.vote(3, 2, 1, cores.end(0, 0), pre_vote=True)
    update = cores.ask(core, asked, now_ms=cores.config().fetch_timeout_ms + 10)
    assert answered(update).vote_granted


def test_rule_16_a_healing_voter_never_campaigns_and_votes_by_what_it_once_had() -> None:
    core = cores.started(
        1,
        cores.recovered(
            1, 2, 3, remembered_end=cores.end(9, 2), election=m.ElectionState(Epoch(2))
        ),
    )
    core.step(api.TimerFired(), Millis(1500))
    assert isinstance(core.replica.role, Unattached)
    short = cores.ask(core, cores.vote(2, 1, 3, cores.end(8, 2)), now_ms=1501)
    assert not answered(short).vote_granted
    whole = cores.ask(core, cores.vote(3, 1, 3, cores.end(9, 2)), now_ms=1502)
    assert answered(whole).vote_granted
    assert core.replica.refusals[NodeId(2)].count == 1


def test_refused_votes_are_told_for_some_minutes_and_then_forgotten() -> None:
    core = cores.started(1, cores.recovered(1, 2, 3, remembered_end=cores.end(9, 2)))

    def refuse(epoch: int, now_ms: int) -> list[str]:
        cores.ask(core, cores.vote(2, 1, epoch, cores.end(8, 2)), now_ms=now_ms)
        return [line for line in core.remarks() if line.startswith("refused")]

    assert [line.split(" to ")[0] for line in refuse(3, 1501)] == ["refused 1 vote(s)"]
    assert [line.split(" to ")[0] for line in refuse(4, 1502)] == ["refused 2 vote(s)"]
    core.step(api.TimerFired(), Millis(1502 + REFUSALS_TOLD_MS))
    assert any(line.startswith("refused") for line in core.remarks())
    core.step(api.TimerFired(), Millis(1503 + REFUSALS_TOLD_MS))
    assert not any(line.startswith("refused") for line in core.remarks())
    again = refuse(50, 1504 + REFUSALS_TOLD_MS)
    assert [line.split(" to ")[0] for line in again] == ["refused 1 vote(s)"]


def test_rule_8_who_abstains_neither_votes_nor_campaigns() -> None:
    core = cores.started(1, cores.recovered(1, 2, 3, abstains=True))
    core.step(api.TimerFired(), Millis(1500))
    assert isinstance(core.replica.role, Unattached)
    update = cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=1501)
    assert not answered(update).vote_granted


def test_refusals_of_invented_nominees_are_not_remembered_for_ever() -> None:
    core = cores.follower()
    for invented in range(100, 100 + 3 * REFUSALS_MAX):
        request = cores.vote(invented, 2, 1, cores.end(0, 0), pre_vote=True)
        cores.ask(core, request, now_ms=5)
    assert len(core.replica.refusals) == REFUSALS_MAX
    assert max(core.replica.refusals) == 99 + 3 * REFUSALS_MAX
