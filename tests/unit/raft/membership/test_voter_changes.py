"""Preconditions of a voter change, and the time at which its caller is answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.membership.shutdown_permits import PERMIT_MS
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Millis
from tests.unit.raft import cores, quorums
from tests.unit.raft.expecting import appended_voters, told


def remove(node_id: int, *, force: bool = False) -> m.RemoveRaftVoterRequest:
    return m.RemoveRaftVoterRequest(
        cluster_id=cores.CLUSTER, voter=cores.key(node_id), timeout_ms=Millis(1000), force=force
    )


def test_another_cluster_and_a_follower_refuse() -> None:
    stray = m.RemoveRaftVoterRequest(
        cluster_id=ClusterId("other"), voter=cores.key(3), timeout_ms=Millis(1000)
    )
    answer = cores.membership(cores.ask(cores.grown_up_leader(), stray, now_ms=4500))
    assert answer.error is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert answer.reason is m.Reason.INCONSISTENT_CLUSTER_ID
    answer = cores.membership(cores.ask(cores.follower(), remove(3), now_ms=2))
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.reason is m.Reason.NOT_LEADER
    assert answer.leader.leader_id == 1


def test_a_leader_that_has_not_committed_in_its_epoch_changes_nothing() -> None:
    core = cores.leader()
    answer = cores.membership(cores.ask(core, remove(3), now_ms=2001))
    assert answer.error is ErrorCode.REQUEST_TIMED_OUT
    assert answer.reason is m.Reason.HIGH_WATERMARK_UNKNOWN
    assert appended_voters(core) == cores.voters(1, 2, 3)


@pytest.mark.rule("check_quorum_restart")
def test_a_young_leader_does_not_know_who_lives() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001, token=2)
    answer = cores.membership(cores.ask(core, remove(3), now_ms=3999))
    assert answer.reason is m.Reason.HIGH_WATERMARK_UNKNOWN


def test_one_change_at_a_time() -> None:
    core = cores.grown_up_leader()
    cores.ask(core, remove(3), now_ms=4500, token=7)
    answer = cores.membership(cores.ask(core, remove(2), now_ms=4501, token=8))
    assert answer.error is ErrorCode.REQUEST_TIMED_OUT
    assert answer.reason is m.Reason.PENDING_VOTER_CHANGE
    assert dict(answer.metadata) == {"pending": f"remove voter {cores.key(3)}"}


def test_a_set_without_a_live_majority_is_refused_unless_forced() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    late = 4400 + cores.config().fetch_timeout_ms
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=late, token=2)
    answer = cores.membership(cores.ask(core, remove(2), now_ms=late + 1))
    assert answer.error is ErrorCode.REQUEST_TIMED_OUT
    assert answer.reason is m.Reason.NO_LIVE_MAJORITY
    assert dict(answer.metadata) == {"alive": "1", "majority": "2"}
    cores.ask(core, remove(2, force=True), now_ms=late + 2)
    assert [voter.key.node_id for voter in appended_voters(core)] == [1, 3]


def test_kraft_version_0_has_its_voters_in_the_settings() -> None:
    static = replace(cores.recovered(1, 2, 3), kraft_versions=())
    core = cores.grown_up(cores.elected(cores.started(1, static)), 2, 3)
    answer = cores.membership(cores.ask(core, remove(3), now_ms=4500))
    assert answer.error is ErrorCode.UNSUPPORTED_VERSION
    assert answer.reason is m.Reason.KRAFT_VERSION_TOO_OLD


def test_the_answer_comes_when_the_new_set_has_committed_the_change() -> None:
    core = cores.grown_up_leader()
    update = cores.change(core, remove(3), now_ms=4500, token=7)
    assert not cores.memberships(update)
    cores.flush(core, now_ms=4501)
    update = cores.ask(core, cores.fetch(2, 4, 1), now_ms=4502, token=8)
    assert cores.membership(update) == m.MembershipResponse(ErrorCode.NONE, "", cores.LEADER)
    assert told(core).role == "leader"
    # The next change may begin.
    assert not cores.memberships(cores.ask(core, remove(2), now_ms=4503, token=9))
    assert [voter.key.node_id for voter in appended_voters(core)] == [1]


def test_who_waits_too_long_is_told_and_the_set_stays_in_force() -> None:
    core = cores.grown_up_leader()
    update = cores.change(core, remove(3), now_ms=4500, token=7)
    assert update.wake_at_ms is not None
    answer = cores.membership(core.step(api.TimerFired(), Millis(5500)))
    assert answer.error is ErrorCode.REQUEST_TIMED_OUT
    assert answer.reason is m.Reason.NOT_COMMITTED_IN_TIME
    assert [voter.key.node_id for voter in appended_voters(core)] == [1, 2]
    again = cores.membership(cores.ask(core, remove(2), now_ms=5501, token=9))
    assert again.reason is m.Reason.PENDING_VOTER_CHANGE


def test_who_waits_when_leadership_is_lost_is_told_that_it_may_still_happen() -> None:
    core = cores.grown_up_leader()
    cores.change(core, remove(3), now_ms=4500, token=7)
    update = cores.begin(core, 2, 5, now_ms=4501)
    (answer,) = cores.memberships(update)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.reason is m.Reason.LEADERSHIP_LOST
    assert "may still be committed" in answer.message
    assert told(core).epoch == Epoch(5)


def test_a_voter_that_was_cut_off_just_before_is_not_counted() -> None:
    """Two of five have gone silent 100 ms ago, and a third one, which lives, is to be removed."""
    core = cores.grown_up_leader(1, 2, 3, 4, 5)
    update = cores.ask(core, remove(2), now_ms=4500, token=7)
    assert not cores.memberships(update)
    assert not cores.memberships(cores.echo(core, 2, 3, now_ms=4501))
    assert appended_voters(core) == cores.voters(1, 2, 3, 4, 5)
    answer = cores.membership(core.step(api.TimerFired(), Millis(5500)))
    assert answer.reason is m.Reason.NO_LIVE_MAJORITY
    assert dict(answer.metadata) == {"alive": "2", "majority": "3"}
    assert appended_voters(core) == cores.voters(1, 2, 3, 4, 5)


def test_a_fetch_that_was_sent_before_the_request_counts_for_nothing() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    cores.ask(core, remove(3), now_ms=4500, token=7)
    late = cores.ask(core, cores.fetch(2, 3, 1), now_ms=4501, token=8)
    # It is answered immediately, for its answer carries the round.
    assert cores.fetched(late).read_round > 0
    assert appended_voters(core) == cores.voters(1, 2, 3)
    cores.echo(core, 2, now_ms=4502)
    assert [voter.key.node_id for voter in appended_voters(core)] == [1, 2]


def test_parked_fetches_are_answered_so_that_others_come() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    update = cores.ask(core, remove(3), now_ms=4405, token=7)
    answers = [each for each in cores.replies(update) if isinstance(each, m.FetchResponse)]
    assert [each.read_round for each in answers] == [1, 1]
    # Those that have shown it wait for records again.
    shown = cores.ask(core, cores.fetch(3, 3, 1, read_round=1), now_ms=4406, token=8)
    assert not cores.replies(shown)


def test_fetches_are_waited_for_no_longer_than_two_fetch_timeouts() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    cores.ask(core, replace(remove(3), timeout_ms=Millis(60_000)), now_ms=4500, token=7)
    half = cores.config().fetch_timeout_ms // 2
    deadline = 4500 + 4 * half
    # They keep the leader in office, and show nothing.
    for token, now_ms in enumerate((4500 + half, 4500 + 2 * half, 4500 + 3 * half), 10):
        cores.ask(core, cores.fetch(2, 3, 1), now_ms=now_ms, token=token)
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=deadline - 2, token=20)
    update = core.step(api.TimerFired(), Millis(deadline - 1))
    assert not cores.memberships(update)
    assert update.wake_at_ms == deadline
    answer = cores.membership(core.step(api.TimerFired(), Millis(deadline)))
    assert answer.reason is m.Reason.NO_LIVE_MAJORITY
    assert "fetched since this was asked for" in answer.message


def test_a_voter_that_takes_almost_a_fetch_timeout_for_each_fetch_is_alive() -> None:
    """The Fetch that was in flight shows nothing, and the next one is as slow."""
    core = cores.grown_up_leader(1, 2, 3)
    turn_ms = cores.config().fetch_timeout_ms - 100
    cores.ask(core, replace(remove(3), timeout_ms=Millis(60_000)), now_ms=4500, token=7)
    before = cores.ask(core, cores.fetch(2, 3, 1), now_ms=4400 + turn_ms, token=8)
    assert cores.fetched(before).read_round == 1
    late_ms = 4400 + 2 * turn_ms
    assert not cores.memberships(core.step(api.TimerFired(), Millis(late_ms - 1)))
    cores.echo(core, 2, now_ms=late_ms)
    assert [voter.key.node_id for voter in appended_voters(core)] == [1, 2]


def test_a_voter_that_sends_no_round_back_is_answered_at_once_only_once() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    cores.ask(core, remove(3), now_ms=4500, token=7)
    answers = [
        cores.replies(cores.ask(core, cores.fetch(2, 3, 1), now_ms=4501, token=token))
        for token in (8, 9)
    ]
    # The second one waits, as any Fetch does that finds nothing new.
    assert [len(each) for each in answers] == [1, 0]
    answer = cores.membership(core.step(api.TimerFired(), Millis(5500)))
    assert answer.reason is m.Reason.NO_LIVE_MAJORITY
    assert "[2] fetched within 2000 ms, but show no Fetch sent since" in answer.message
    assert "bring the others back" not in answer.message


def test_the_next_round_is_told_at_once_again() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    for token, now_ms in ((7, 4500), (17, 6000)):
        cores.ask(core, remove(3), now_ms=now_ms, token=token)
        told_at_once = cores.ask(core, cores.fetch(2, 3, 1), now_ms=now_ms + 1, token=token + 1)
        assert cores.replies(told_at_once)
        cores.ask(core, cores.fetch(2, 3, 1), now_ms=now_ms + 2, token=token + 2)
        assert cores.memberships(core.step(api.TimerFired(), Millis(now_ms + 1000)))


def test_an_addition_waits_for_the_fetches_of_the_new_set_too() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    cores.ask(core, cores.fetch(4, 3, 1), now_ms=4450, token=50)
    call, _ = cores.calls(cores.ask(core, cores.ADD, now_ms=4500, token=7))[4]
    assert not cores.memberships(cores.answer(core, call, cores.VERSIONS, now_ms=4501))
    assert appended_voters(core) == cores.voters(1, 2, 3)
    cores.echo(core, 3, now_ms=4502)
    assert cores.key(4) in appended_voters(core)


def test_an_addition_is_refused_where_the_voters_do_not_fetch() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    cores.ask(core, cores.fetch(4, 3, 1), now_ms=4450, token=50)
    cores.ask(core, cores.ADD, now_ms=4500, token=7)
    answer = cores.membership(core.step(api.TimerFired(), Millis(5500)))
    assert answer.reason is m.Reason.NO_LIVE_MAJORITY
    assert dict(answer.metadata) == {"alive": "2", "majority": "3"}


def test_what_has_changed_while_fetches_were_waited_for_is_seen() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    cores.ask(core, remove(3), now_ms=4500, token=7)
    cores.ask(core, m.TransferLeadershipRequest(cores.CLUSTER, cores.key(2)), now_ms=4501)
    answer = cores.membership(cores.echo(core, 2, now_ms=4502))
    assert answer.reason is m.Reason.PENDING_VOTER_CHANGE
    assert appended_voters(core) == cores.voters(1, 2, 3)


def test_a_set_is_appended_with_a_step_of_its_own() -> None:
    """Earlier decisions have their offsets already, and are proposed before the set."""
    core = cores.grown_up_leader(1, 2, 3)
    assert not core.may_append_voters
    cores.ask(core, remove(3), now_ms=4500, token=7)
    update = cores.ask(core, cores.fetch(2, 3, 1, read_round=1), now_ms=4501, token=8)
    assert core.may_append_voters
    assert update.wake_at_ms == 4501
    assert appended_voters(core) == cores.voters(1, 2, 3)
    core.step(api.TimerFired(), Millis(4501))
    assert [voter.key.node_id for voter in appended_voters(core)] == [1, 2]
    assert not core.may_append_voters


def test_a_leave_that_has_lapsed_wakes_nobody_who_waits_for_fetches() -> None:
    quorum = quorums.Quorum(1, 2, 3)
    assert quorum.may_stop(2)
    quorum.passes(PERMIT_MS + 1, 2, 3)
    update = cores.ask(quorum.core, remove(3), now_ms=quorum.now, token=7)
    assert not cores.memberships(update)
    assert update.wake_at_ms is not None
    assert update.wake_at_ms > quorum.now
