"""Votes and pre-votes (KIP-595, KIP-996), early suspicion, readiness, healing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.campaign import REPEAT_SHARE, RETRY_SHARE
from quorate.raft.election.pre_vote_leases import LEASE_MAX_SHARE, LEASE_SHARE, RENEWAL_SHARE
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.records.ids import CallId, Epoch, Millis
from tests.unit.raft import cores
from tests.unit.raft.expecting import expect, told

# With every draw one half.
ELECTION_TIMEOUT_MS = cores.config().election_timeout_ms * 3 // 2


def test_an_election_timeout_asks_for_pre_votes_without_touching_the_epoch() -> None:
    core = cores.unattached()
    update = core.step(api.TimerFired(), Millis(1500))
    expect(
        update,
        *(
            api.SendRequest(
                CallId(node),
                cores.peer(node),
                cores.vote(1, node, 0, cores.end(0, 0), pre_vote=True),
            )
            for node in (2, 3)
        ),
        cores.progress("prospective", 0),
        wake_at_ms=1500 + cores.part_of_election_timeout(REPEAT_SHARE),
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "no leader was found: unattached becomes prospective in epoch 0",
            ),
        ),
    )


def test_a_majority_of_pre_votes_raises_the_epoch_and_saves_the_own_vote_first() -> None:
    core = cores.unattached()
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    update = cores.answer(core, asked[2][0], cores.granted(0), now_ms=1501)
    state = m.ElectionState(Epoch(1), None, cores.key(1))
    expect(
        update,
        api.SaveElection(state, 1, cores.voters(1, 2, 3)),
        *(
            api.SendRequest(CallId(call), cores.peer(node), cores.vote(1, node, 1, cores.end(0, 0)))
            for call, node in ((4, 2), (5, 3))
        ),
        cores.progress("candidate", 1),
        wake_at_ms=1501 + cores.part_of_election_timeout(REPEAT_SHARE),
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "2 of 3 pre-votes: prospective becomes candidate in epoch 1",
            ),
        ),
    )


def test_nobody_is_asked_for_votes_before_the_whole_log_is_on_the_disk() -> None:
    """The log that a vote was given for must not be shorter after a crash."""
    core = cores.behind_its_disk()
    expect(
        core.step(api.TimerFired(), Millis(2002)),
        cores.progress("prospective", 1, leader_id=1),
        wake_at_ms=2002 + ELECTION_TIMEOUT_MS,
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "no fetch from leader 1 for 2000 ms: follower becomes prospective in epoch 1",
            ),
        ),
    )
    expect(
        cores.flush(core, now_ms=2003),
        *(
            api.SendRequest(
                CallId(call),
                cores.peer(node),
                cores.vote(2, node, 1, cores.end(5, 1), pre_vote=True),
            )
            for call, node in ((3, 1), (4, 3))
        ),
        wake_at_ms=2003 + cores.part_of_election_timeout(REPEAT_SHARE),
    )


def test_an_answer_of_an_older_epoch_counts_for_nothing() -> None:
    core = cores.unattached()
    core.transitions.become_unattached(Epoch(3), RoleChangeCause.HIGHER_EPOCH, "test")
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    update = cores.answer(core, asked[2][0], cores.granted(2), now_ms=1501)
    # It is asked again after the shortest wait.
    expect(update, wake_at_ms=1517)
    cores.answer(core, asked[3][0], cores.granted(3), now_ms=1502)
    assert (told(core).role, told(core).epoch) == ("candidate", 4)


@pytest.mark.rule("pre_vote_moves_epoch")
def test_a_lost_election_waits_for_the_rest_of_its_timeout() -> None:
    core = cores.unattached()
    update = core.step(api.TimerFired(), Millis(1500))
    update = cores.answer(core, cores.calls(update)[2][0], cores.granted(0), now_ms=1500)
    deadline = 1500 + ELECTION_TIMEOUT_MS
    refusal = replace(cores.granted(1), vote_granted=False)
    for call, _ in cores.calls(update).values():
        update = cores.answer(core, call, refusal, now_ms=1501)
    expect(
        update,
        # What was asked at the start has its timeout before.
        wake_at_ms=cores.config().request_timeout_ms,
        notes=((TraceEventKind.ELECTION_LOST, "election lost: waits for the rest of its timeout"),),
    )
    expect(core.step(api.TimerFired(), Millis(deadline - 1)), wake_at_ms=deadline)
    core.step(api.TimerFired(), Millis(deadline))
    assert told(core).role == "prospective"


def test_all_are_asked_again_soon_while_a_round_lasts() -> None:
    core = cores.unattached(2, 1, 2, 3, 4)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.answer(core, asked[1][0], cores.refused(core), now_ms=1501)
    update = cores.answer(core, asked[3][0], cores.granted(0), now_ms=1501)
    assert update.wake_at_ms == 1500 + cores.part_of_election_timeout(RENEWAL_SHARE)
    again = cores.calls(core.step(api.TimerFired(), update.wake_at_ms))
    assert {node: request for node, (_, request) in again.items()} == {
        node: asked[node][1] for node in (1, 3)
    }


def test_who_answers_late_is_asked_again_at_once() -> None:
    """A promise lasts for two such waits, and not for two and the way there and back."""
    core = cores.unattached(2, 1, 2, 3, 4)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    late = 1500 + cores.part_of_election_timeout(RENEWAL_SHARE)
    again = cores.calls(cores.answer(core, asked[3][0], cores.granted(0), now_ms=late))
    assert {node: request for node, (_, request) in again.items()} == {3: asked[3][1]}


@pytest.mark.parametrize("epoch", [0, 1], ids=["pre-vote", "vote"])
def test_a_voter_that_does_not_answer_is_asked_again_before_the_request_times_out(
    epoch: int,
) -> None:
    core = cores.unattached(2, 1, 2, 3, 4, 5)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    if epoch:
        for node in (1, 3):
            update = cores.answer(core, asked[node][0], cores.granted(0), now_ms=1500)
        assert told(core).role == "candidate"
        asked = cores.calls(update)
    update = core.step(api.TimerFired(), Millis(1501))
    assert cores.calls(update) == {}
    assert update.wake_at_ms == 1500 + cores.part_of_election_timeout(REPEAT_SHARE)
    again = cores.calls(core.step(api.TimerFired(), update.wake_at_ms))
    assert {node: request for node, (_, request) in again.items()} == {
        node: request for node, (_, request) in asked.items()
    }
    # The first of the two responses counts.
    cores.answer(core, asked[4][0], cores.granted(epoch), now_ms=1800)
    update = cores.answer(core, again[5][0], cores.granted(epoch), now_ms=1800)
    assert told(core).role == ("leader" if epoch else "candidate")


def test_who_waits_for_answers_sleeps_although_what_it_asked_is_overdue() -> None:
    core = cores.unattached(2, 1, 2, 3, 4)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    for now_ms in range(1501, 2400):
        update = core.step(api.TimerFired(), Millis(now_ms))
        if now_ms == 1800:
            update = cores.answer(core, asked[1][0], api.RequestFailure.DISCONNECTED, now_ms=now_ms)
        assert update.wake_at_ms is not None
        assert update.wake_at_ms > now_ms


def test_a_promise_that_is_not_renewed_counts_no_more() -> None:
    """Its voter may have given it to a rival: two nominees must not both count it."""
    core = cores.unattached(2, 1, 2, 3, 4)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.answer(core, asked[1][0], cores.granted(0), now_ms=1501)
    over = 1501 + cores.part_of_election_timeout(LEASE_SHARE)
    cores.answer(core, asked[3][0], cores.granted(0), now_ms=over)
    assert told(core).role == "prospective"
    # Two of four are not enough; with a third they are.
    cores.answer(core, asked[4][0], cores.granted(0), now_ms=over)
    assert told(core).role == "candidate"


def test_a_round_that_only_rivals_spoil_goes_on() -> None:
    """A return to a leader that others miss, too, would restart all of them at one moment."""
    core = cores.unattached(3, 1, 2, 3)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.ask(core, cores.vote(2, 3, 0, cores.end(0, 0), pre_vote=True), now_ms=1501)
    for node in (1, 2):
        update = cores.answer(core, asked[node][0], cores.refused(core), now_ms=1502)
    expect(update, wake_at_ms=1500 + cores.part_of_election_timeout(RENEWAL_SHARE))
    again = cores.calls(core.step(api.TimerFired(), Millis(1600)))
    cores.answer(core, again[1][0], cores.granted(0), now_ms=1601)
    assert told(core).role == "candidate"


def test_a_round_is_lost_once_its_rivals_are_silent() -> None:
    core = cores.unattached(3, 1, 2, 3)
    asked = cores.calls(core.step(api.TimerFired(), Millis(1500)))
    cores.ask(core, cores.vote(2, 3, 0, cores.end(0, 0), pre_vote=True), now_ms=1501)
    cores.answer(core, asked[1][0], cores.refused(core), now_ms=1502)
    over = 1501 + cores.part_of_election_timeout(LEASE_MAX_SHARE)
    cores.answer(core, asked[2][0], cores.refused(core), now_ms=over)
    assert told(core).role == "unattached"


def test_a_lost_round_is_repeated_soon_and_then_ever_later() -> None:
    core = cores.follower(2, 1)
    begun = [cores.lost_round(core) for _ in range(7)]
    waits = [later - earlier for earlier, later in pairwise(begun)]
    share = cores.part_of_election_timeout(RETRY_SHARE)
    assert waits[:3] == [share + share // 2, 2 * (share + share // 2), 4 * (share + share // 2)]
    assert waits[-1] == ELECTION_TIMEOUT_MS
