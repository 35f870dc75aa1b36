"""Votes and pre-votes as a voter gives them (KIP-595, KIP-996)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.pre_vote_leases import LEASE_MAX_SHARE, RENEWAL_SHARE
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import (
    Epoch,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    ReplyToken,
)
from tests.unit.raft import cores
from tests.unit.raft.expecting import expect, now_ms, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def prospective(node_id: int) -> RaftCore:
    """One of three that asks for pre-votes in epoch 0; the others have not answered."""
    core = cores.unattached(node_id, 1, 2, 3)
    core.step(api.TimerFired(), Millis(1500))
    assert told(core).role == "prospective"
    return core


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
    assert cores.voted(update).vote_granted is is_granted


def test_a_vote_is_saved_before_it_is_answered_and_given_once_an_epoch() -> None:
    core = cores.unattached()
    update = cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=1)
    expect(
        update,
        api.SaveElection(m.ElectionState(Epoch(1), None, cores.key(2)), 1, cores.voters(1, 2, 3)),
        api.SendReply(ReplyToken(1), cores.granted(1)),
        cores.progress("unattached", 1),
        wake_at_ms=1000,
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "vote of 2 in a higher epoch: unattached becomes unattached in epoch 1",
            ),
            (TraceEventKind.ROLE_TAKEN, "votes for 2: unattached becomes unattached in epoch 1"),
            (TraceEventKind.VOTE_GRANTED, "grants vote to 2 in epoch 1"),
        ),
    )
    again = cores.ask(core, cores.vote(3, 1, 1, cores.end(0, 0)), now_ms=2)
    refusal = replace(cores.granted(1), vote_granted=False, refusal=m.VoteRefusal.ALREADY_VOTED)
    expect(
        again,
        api.SendReply(ReplyToken(1), refusal),
        wake_at_ms=1000,
        notes=((TraceEventKind.VOTE_REFUSED, "refuses vote to 3: voted for 2 in epoch 1"),),
    )
    same = cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=3)
    assert cores.voted(same).vote_granted


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
    assert cores.voted(cores.ask(core, cores.vote(2, 1, 2, cores.end(4, 1)), now_ms=1)).vote_granted
    other = cores.vote(3, 1, 2, cores.end(9, 1))
    assert not cores.voted(cores.ask(core, other, now_ms=2)).vote_granted


def test_a_nominee_that_votes_for_a_candidate_draws_its_timer_and_begins_anew() -> None:
    state = cores.recovered(1, 2, 3, 4, election=m.ElectionState(Epoch(1)))
    core = cores.started(1, state)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.answer(core, asked[2][0], cores.granted(1), now_ms=1501)
    update = cores.ask(core, cores.vote(3, 1, 1, cores.end(0, 0)), now_ms=1501)
    asks_again_ms = 1500 + cores.part_of_election_timeout(RENEWAL_SHARE)
    expect(
        update,
        api.SaveElection(
            m.ElectionState(Epoch(1), None, cores.key(3)), 1, cores.voters(1, 2, 3, 4)
        ),
        api.SendReply(ReplyToken(1), cores.granted(1)),
        wake_at_ms=asks_again_ms,
        notes=((TraceEventKind.VOTE_GRANTED, "grants vote to 3 in epoch 1"),),
    )
    # Answers to the round before count for nothing.
    update = cores.answer(core, asked[4][0], cores.granted(1), now_ms=1502)
    expect(update, wake_at_ms=asks_again_ms)
    # Nor does what was granted in it, or one vote more would make a majority.
    while 4 not in cores.calls(update):
        assert update.wake_at_ms is not None
        update = core.step(api.TimerFired(), update.wake_at_ms)
    cores.answer(core, cores.calls(update)[4][0], cores.granted(1), now_ms=now_ms(core))
    core.step(api.TimerFired(), Millis(1501 + 1500 - 1))
    assert told(core).role == "prospective"
    core.step(api.TimerFired(), Millis(1501 + 1500))
    assert told(core).role == "unattached"


def test_a_vote_in_a_new_epoch_is_saved_together_with_the_epoch() -> None:
    core = cores.unattached()
    update = cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=1)
    saves = [effect for effect in update.effects if isinstance(effect, api.SaveElection)]
    state = m.ElectionState(Epoch(1), None, cores.key(2))
    assert saves == [api.SaveElection(state, 1, cores.voters(1, 2, 3))]


def test_a_vote_is_not_given_in_an_epoch_whose_leader_is_known() -> None:
    core = cores.follower(2, leader_id=1, epoch=1)
    update = cores.ask(core, cores.vote(3, 2, 1, cores.end(0, 0)), now_ms=2)
    assert not cores.voted(update).vote_granted


def test_a_request_for_another_directory_is_refused() -> None:
    core = cores.unattached()
    request = cores.vote(2, 1, 1, cores.end(0, 0))
    wrong = m.VoteRequest(
        cluster_id=request.cluster_id,
        voter=cores.key(9),
        replica=request.replica,
        replica_epoch=request.replica_epoch,
        last=request.last,
        pre_vote=False,
    )
    assert cores.voted(cores.ask(core, wrong, now_ms=1)).error is ErrorCode.INVALID_VOTER_KEY


def test_an_upgrade_that_is_not_committed_does_not_refuse_who_never_heard_of_it() -> None:
    asked = cores.vote(3, 2, 2, cores.end(5, 2))
    asked = replace(asked, replica_epoch=Epoch(3), voter=ReplicaKey(NodeId(2)))
    for high_watermark, is_refused in ((3, False), (4, True)):
        state = cores.recovered(1, 2, 3, log_end=cores.end(4, 1))
        state = replace(
            state,
            kraft_versions=(m.KRaftVersionAt(Offset(-1), 0), m.KRaftVersionAt(Offset(3), 1)),
            election=m.ElectionState(Epoch(1)),
            # All in a snapshot is committed.
            snapshots=(m.SnapshotInfo(cores.end(high_watermark, 1), 100),),
        )
        core = cores.started(2, state)
        assert told(core).high_watermark == high_watermark
        answer = cores.voted(cores.ask(core, asked, now_ms=1))
        assert (answer.error is ErrorCode.INVALID_VOTER_KEY) == is_refused
        assert answer.vote_granted != is_refused


def test_requests_of_other_clusters_older_epochs_and_nonsense_are_refused() -> None:
    core = cores.follower(2, leader_id=1, epoch=4)
    old = cores.vote(3, 2, 3, cores.end(0, 0))
    assert cores.voted(cores.ask(core, old, now_ms=2)).error is ErrorCode.FENCED_LEADER_EPOCH
    odd = cores.vote(3, 2, 5, OffsetAndEpoch(epoch=Epoch(5), offset=old.last.offset))
    assert cores.voted(cores.ask(core, odd, now_ms=2)).error is ErrorCode.INVALID_REQUEST


@pytest.mark.rule("vote_by_voter_key")
def test_a_nominee_outside_the_own_set_may_win_the_vote() -> None:
    core = cores.unattached(1, 1, 2)
    core.transitions.become_unattached(Epoch(1), RoleChangeCause.HIGHER_EPOCH, "test")
    update = cores.ask(core, cores.vote(9, 1, 2, cores.end(0, 0)), now_ms=1)
    assert cores.voted(update).vote_granted


@pytest.mark.rule("pre_vote_moves_epoch")
def test_a_pre_vote_of_a_higher_epoch_moves_the_receiver() -> None:
    core = cores.leader()
    cores.ask(core, cores.vote(2, 1, 7, cores.end(3, 1), pre_vote=True), now_ms=2001)
    assert told(core).role == "unattached"
    assert told(core).epoch == 7


def test_a_leader_and_a_follower_that_hears_it_refuse_pre_votes() -> None:
    core = cores.leader()
    update = cores.ask(core, cores.vote(2, 1, 1, cores.end(3, 1), pre_vote=True), now_ms=2001)
    assert not cores.voted(update).vote_granted
    asked = cores.vote(3, 2, 1, cores.end(0, 0), pre_vote=True)
    assert cores.voted(cores.ask(cores.follower(), asked, now_ms=3)).vote_granted
    assert not cores.voted(cores.ask(cores.heard(), asked, now_ms=3)).vote_granted


def test_of_two_nominees_the_longer_log_goes_first_then_the_higher_id() -> None:
    core = prospective(2)
    behind = cores.ask(core, cores.vote(1, 2, 0, cores.end(0, 0), pre_vote=True), now_ms=1501)
    assert not cores.voted(behind).vote_granted
    ahead = cores.ask(core, cores.vote(3, 2, 0, cores.end(0, 0), pre_vote=True), now_ms=1501)
    assert cores.voted(ahead).vote_granted
    longer = cores.vote(1, 2, 0, cores.end(5, 0), pre_vote=True)
    assert cores.voted(cores.ask(prospective(2), longer, now_ms=1501)).vote_granted


def test_a_nominee_that_gave_a_rival_its_pre_vote_begins_again_later() -> None:
    core = cores.unattached(1, 1, 2, 3)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    update = cores.ask(core, cores.vote(2, 1, 0, cores.end(0, 0), pre_vote=True), now_ms=1501)
    assert cores.voted(update).vote_granted
    cores.answer(core, asked[3][0], cores.granted(0), now_ms=1502)
    assert told(core).role == "prospective"
    assert update.wake_at_ms == 1501 + cores.part_of_election_timeout(LEASE_MAX_SHARE)
    again = cores.calls(core.step(api.TimerFired(), update.wake_at_ms))
    cores.answer(core, again[3][0], cores.granted(0), now_ms=update.wake_at_ms + 1)
    assert told(core).role == "candidate"


def test_a_nominee_that_waits_for_its_disk_lets_a_rival_pass() -> None:
    for is_flushed in (True, False):
        core = cores.behind_its_disk(3)
        if is_flushed:
            cores.flush(core, now_ms=3)
        core.step(api.TimerFired(), Millis(2003))
        assert told(core).role == "prospective"
        asked = cores.vote(1, 3, 1, cores.end(5, 1), pre_vote=True)
        answer = cores.voted(cores.ask(core, asked, now_ms=2004))
        assert answer.vote_granted != is_flushed


def test_a_rival_that_misses_the_leader_too_is_asked_again_at_once() -> None:
    core = cores.unattached(2, 1, 2, 3)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    refusal = cores.refused(core)
    cores.answer(core, asked[1][0], refusal, now_ms=1501)
    rival = cores.ask(core, cores.vote(1, 2, 0, cores.end(0, 0), pre_vote=True), now_ms=1502)
    assert not cores.voted(rival).vote_granted
    assert cores.calls(rival)[1][1] == asked[1][1]


@pytest.mark.rule("unready_voter_waits")
def test_a_voter_that_waits_for_others_to_lead_grants_them_its_pre_vote() -> None:
    core = cores.heard()
    core.step(api.StateMachineProgress(ready=False), Millis(1))
    update = core.step(api.TimerFired(), Millis(1 + cores.config().fetch_timeout_ms))
    assert [note.kind for note in update.trace] == [TraceEventKind.NOT_READY]
    assert told(core).role == "follower"
    asked = cores.vote(3, 2, 1, cores.end(0, 0), pre_vote=True)
    update = cores.ask(core, asked, now_ms=cores.config().fetch_timeout_ms + 10)
    assert cores.voted(update).vote_granted


@pytest.mark.rule("damaged_voter_heals")
def test_a_healing_voter_never_campaigns_and_votes_by_what_it_once_had() -> None:
    core = cores.started(
        1,
        cores.recovered(
            1, 2, 3, remembered_end=cores.end(9, 2), election=m.ElectionState(Epoch(2))
        ),
    )
    core.step(api.TimerFired(), Millis(1500))
    assert told(core).role == "unattached"
    short = cores.ask(core, cores.vote(2, 1, 3, cores.end(8, 2)), now_ms=1501)
    assert not cores.voted(short).vote_granted
    whole = cores.ask(core, cores.vote(3, 1, 3, cores.end(9, 2)), now_ms=1502)
    assert cores.voted(whole).vote_granted
    assert any(line.startswith("refused 1 vote(s) to 2: ") for line in core.status_warnings())


@pytest.mark.rule("empty_log_abstains")
def test_who_abstains_neither_votes_nor_campaigns() -> None:
    core = cores.started(1, cores.recovered(1, 2, 3, abstains=True))
    core.step(api.TimerFired(), Millis(1500))
    assert told(core).role == "unattached"
    update = cores.ask(core, cores.vote(2, 1, 1, cores.end(0, 0)), now_ms=1501)
    assert not cores.voted(update).vote_granted
