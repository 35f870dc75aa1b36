"""Rule `one_process_per_voter`: two processes on copies of one directory fetch as one voter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.roles import Leader
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, Offset, ReplyToken
from quorate.records.voters import Endpoint
from tests.unit.raft import cores
from tests.unit.raft.expecting import WatchedCore

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

FIRST, SECOND, THIRD = 11, 22, 33
FETCH_TIMEOUT_MS = cores.config().fetch_timeout_ms
ELSEWHERE = (Endpoint("GRPC", "elsewhere", 9095),)


def fetches(
    core: RaftCore,
    process: int,
    *,
    now_ms: int,
    offset: int | None = None,
    node_id: int = 2,
    is_late: bool = False,
) -> api.Update:
    """That process of voter 2 asks for what follows its log; a token for each moment.

    It has got all answers until now, unless this Fetch is late.
    """
    end = core.replica.log.end
    role = core.replica.role
    assert isinstance(role, Leader)
    request = cores.fetch(node_id, end.offset if offset is None else offset, end.epoch)
    places = cores.endpoints(node_id) if process == FIRST else ELSEWHERE
    request = replace(request, incarnation=process, replica_endpoints=places)
    request = replace(request, read_round=0 if is_late else role.read_round)
    return cores.ask(core, request, now_ms=now_ms, token=now_ms)


def refusals(update: api.Update) -> list[ErrorCode]:
    answers = [each for each in cores.replies(update) if isinstance(each, m.FetchResponse)]
    return [each.error for each in answers if each.error is not ErrorCode.NONE]


def leader(*node_ids: int) -> RaftCore:
    """Node 1 leads and has heard the first process of voter 2."""
    core = cores.grown_up_leader(*(node_ids or (1, 2)))
    fetches(core, FIRST, now_ms=4600)
    return core


def cloned() -> RaftCore:
    """Both processes have fetched again after the second one was heard."""
    core = leader()
    for now_ms, process in ((4700, SECOND), (4710, FIRST)):
        assert not refusals(fetches(core, process, now_ms=now_ms))
    assert refusals(fetches(core, SECOND, now_ms=4720)) == [ErrorCode.DUPLICATE_VOTER]
    assert not refusals(fetches(core, FIRST, now_ms=4730))
    return core


@pytest.mark.rule("one_process_per_voter")
def test_the_process_that_came_second_is_refused() -> None:
    core = cloned()
    assert refusals(fetches(core, SECOND, now_ms=4740)) == [ErrorCode.DUPLICATE_VOTER]
    assert not refusals(fetches(core, FIRST, now_ms=4750))
    assert refusals(fetches(core, SECOND, now_ms=4760)) == [ErrorCode.DUPLICATE_VOTER]


@pytest.mark.rule("one_process_per_voter")
def test_the_leader_tells_of_both_places() -> None:
    core = cloned()
    fetches(core, SECOND, now_ms=4740)
    (remark,) = [line for line in core.status_warnings() if "two processes" in line]
    assert "node-2:9094 counts" in remark
    assert "elsewhere:9095 is refused" in remark
    (state,) = cores.described(core, now_ms=4750).refused
    assert (state.key, state.endpoints) == (cores.key(2), ELSEWHERE)
    assert state.last_fetch_ms == 4740


@pytest.mark.rule("one_process_per_voter")
def test_a_third_process_is_refused_as_well() -> None:
    core = cloned()
    assert refusals(fetches(core, THIRD, now_ms=4740)) == [ErrorCode.DUPLICATE_VOTER]
    assert not refusals(fetches(core, FIRST, now_ms=4750))


@pytest.mark.rule("one_process_per_voter")
def test_what_a_second_process_has_is_not_counted_while_the_first_may_run() -> None:
    core = leader()
    high_watermark = core.replica.high_watermark
    cores.propose(core, now_ms=4650)
    cores.flush(core, now_ms=4651)
    end = core.replica.log.end.offset
    fetches(core, SECOND, now_ms=4700, offset=end - 1)
    fetches(core, SECOND, now_ms=4710)
    assert core.replica.high_watermark == high_watermark
    fetches(core, FIRST, now_ms=4720, is_late=True)
    assert core.replica.high_watermark == high_watermark
    # Once it is known to run it is the voter.
    fetches(core, FIRST, now_ms=4730)
    assert core.replica.high_watermark == end


@pytest.mark.rule("one_process_per_voter")
def test_a_restarted_process_counts_at_once_when_the_connection_before_it_ended() -> None:
    core = leader()
    core.step(api.CallerDisconnected(ReplyToken(4600)), Millis(4601))
    cores.propose(core, now_ms=4650)
    cores.flush(core, now_ms=4651)
    fetches(core, SECOND, now_ms=4700)
    assert core.replica.high_watermark == core.replica.log.end.offset


@pytest.mark.rule("one_process_per_voter")
def test_a_process_that_restarts_twice_counts_at_once_each_time() -> None:
    core = leader()
    waiting = 4600
    for now_ms, process in ((4700, SECOND), (4800, THIRD)):
        core.step(api.CallerDisconnected(ReplyToken(waiting)), Millis(waiting + 1))
        cores.propose(core, now_ms=now_ms - 20)
        cores.flush(core, now_ms=now_ms - 10)
        fetches(core, process, now_ms=now_ms)
        assert core.replica.high_watermark == core.replica.log.end.offset
        waiting = now_ms + 50
        fetches(core, process, now_ms=waiting)


@pytest.mark.rule("one_process_per_voter")
def test_one_whose_end_was_not_seen_delays_no_later_restart() -> None:
    core = leader()
    waiting = 4600 + FETCH_TIMEOUT_MS // 2
    fetches(core, SECOND, now_ms=waiting)
    core.step(api.CallerDisconnected(ReplyToken(waiting)), Millis(waiting + 1))
    cores.propose(core, now_ms=waiting + 10)
    cores.flush(core, now_ms=waiting + 20)
    fetches(core, THIRD, now_ms=waiting + 30)
    assert core.replica.high_watermark == core.replica.log.end.offset


@pytest.mark.rule("one_process_per_voter")
def test_a_reset_connection_does_not_let_the_refused_process_count() -> None:
    core = cloned()
    core.step(api.CallerDisconnected(ReplyToken(4730)), Millis(4731))
    assert refusals(fetches(core, SECOND, now_ms=4740)) == [ErrorCode.DUPLICATE_VOTER]
    assert not refusals(fetches(core, FIRST, now_ms=4750))
    assert refusals(fetches(core, SECOND, now_ms=4760)) == [ErrorCode.DUPLICATE_VOTER]


@pytest.mark.rule("one_process_per_voter")
def test_the_original_restarts_at_once_after_its_copy_was_stopped() -> None:
    core = cloned()
    end_ms = 4720 + FETCH_TIMEOUT_MS
    for now_ms in range(4740, end_ms + 1, 20):
        fetches(core, FIRST, now_ms=now_ms)
    core.step(api.CallerDisconnected(ReplyToken(end_ms)), Millis(end_ms + 1))
    cores.propose(core, now_ms=end_ms + 1)
    cores.flush(core, now_ms=end_ms + 2)
    assert not refusals(fetches(core, THIRD, now_ms=end_ms + 3))
    assert core.replica.high_watermark == core.replica.log.end.offset


@pytest.mark.rule("one_process_per_voter")
def test_a_restarted_process_counts_once_the_one_before_has_been_silent() -> None:
    core = leader()
    cores.propose(core, now_ms=4650)
    cores.flush(core, now_ms=4651)
    end = core.replica.log.end.offset
    fetches(core, SECOND, now_ms=4700)
    assert core.replica.high_watermark < end
    fetches(core, SECOND, now_ms=4700 + FETCH_TIMEOUT_MS // 2)
    assert core.replica.high_watermark == end
    assert not core.status_warnings()


@pytest.mark.rule("one_process_per_voter")
def test_a_restarted_process_is_answered_when_it_counts() -> None:
    """Without news, its Fetch would be parked for its whole max_wait_ms."""
    core = leader()
    cores.propose(core, now_ms=4650)
    cores.flush(core, now_ms=4651)
    silent_from = 4600 + FETCH_TIMEOUT_MS // 2
    now_ms = silent_from - 5
    fetches(core, SECOND, now_ms=now_ms)
    update = fetches(core, SECOND, now_ms=now_ms + 1)
    assert update.wake_at_ms == silent_from
    update = core.step(api.TimerFired(), Millis(silent_from))
    assert [type(each) for each in cores.replies(update)] == [m.FetchResponse]
    fetches(core, SECOND, now_ms=silent_from + 1)
    assert core.replica.high_watermark == core.replica.log.end.offset


@pytest.mark.rule("one_process_per_voter")
def test_a_restarted_process_waits_for_no_process_that_is_refused() -> None:
    core = leader()
    silent_from = 4600 + FETCH_TIMEOUT_MS // 2
    for now_ms, process in ((4700, SECOND), (4710, THIRD), (4720, SECOND)):
        assert not refusals(fetches(core, process, now_ms=now_ms))
    cores.propose(core, now_ms=4731)
    cores.flush(core, now_ms=4732)
    assert refusals(fetches(core, THIRD, now_ms=silent_from - 10)) == [ErrorCode.DUPLICATE_VOTER]
    assert fetches(core, SECOND, now_ms=silent_from - 5).wake_at_ms == silent_from


@pytest.mark.rule("one_process_per_voter")
def test_one_late_fetch_of_an_ended_process_is_no_clone() -> None:
    core = leader()
    assert not refusals(fetches(core, SECOND, now_ms=4700))
    assert not refusals(fetches(core, FIRST, now_ms=4701, is_late=True))
    for now_ms in range(4750, 9000, 250):
        assert not refusals(fetches(core, SECOND, now_ms=now_ms))
    assert not cores.described(core, now_ms=9000).refused


@pytest.mark.rule("one_process_per_voter")
def test_late_fetches_of_an_ended_process_are_no_clone_however_many() -> None:
    core = leader()
    for now_ms in (4700, 4710):
        assert not refusals(fetches(core, SECOND, now_ms=now_ms))
    for now_ms in range(4711, 4716):
        assert not refusals(fetches(core, FIRST, now_ms=now_ms, is_late=True))
    for now_ms in range(4750, 9000, 250):
        assert not refusals(fetches(core, SECOND, now_ms=now_ms))
        assert not core.status_warnings()


@pytest.mark.rule("one_process_per_voter")
def test_late_fetches_of_a_process_before_the_one_before_are_no_clone() -> None:
    core = leader()
    fetches(core, SECOND, now_ms=4700)
    fetches(core, THIRD, now_ms=4900)
    fetches(core, FIRST, now_ms=4905, is_late=True)
    for now_ms in range(4910, 9000, 50):
        assert not refusals(fetches(core, THIRD, now_ms=now_ms))
        assert not core.status_warnings()


@pytest.mark.rule("one_process_per_voter")
def test_three_processes_that_take_turns_are_found() -> None:
    core = leader()
    cores.propose(core, now_ms=4610)
    cores.flush(core, now_ms=4611)
    end = core.replica.log.end.offset
    for now_ms in range(4700, 4760, 10):
        process = (SECOND, THIRD, FIRST)[now_ms // 10 % 3 - 2]
        fetches(core, process, now_ms=now_ms, offset=end if process == SECOND else end - 1)
    assert refusals(fetches(core, SECOND, now_ms=4770, offset=end)) == [ErrorCode.DUPLICATE_VOTER]
    assert refusals(fetches(core, THIRD, now_ms=4780)) == [ErrorCode.DUPLICATE_VOTER]
    # None of what only a second process has was committed.
    assert core.replica.high_watermark < end
    fetches(core, FIRST, now_ms=4790)
    assert core.replica.high_watermark == end


@pytest.mark.rule("one_process_per_voter")
def test_more_processes_than_are_remembered_are_found() -> None:
    core = leader()
    for now_ms in range(4610, 4900, 10):
        fetches(core, FIRST + now_ms // 10 % 7, now_ms=now_ms)
    assert core.status_warnings()
    assert not refusals(fetches(core, FIRST, now_ms=4910))
    assert refusals(fetches(core, FIRST + 1, now_ms=4920)) == [ErrorCode.DUPLICATE_VOTER]


@pytest.mark.rule("one_process_per_voter")
def test_the_refused_process_is_taken_when_the_other_has_gone() -> None:
    core = cloned()
    last_ms = 4730
    assert refusals(fetches(core, SECOND, now_ms=last_ms + FETCH_TIMEOUT_MS // 2 - 1))
    update = fetches(core, SECOND, now_ms=last_ms + FETCH_TIMEOUT_MS // 2)
    assert not refusals(update)
    assert not cores.described(core, now_ms=last_ms + FETCH_TIMEOUT_MS).refused


@pytest.mark.rule("one_process_per_voter")
def test_a_clone_that_has_gone_is_forgotten() -> None:
    core = cloned()
    fetches(core, SECOND, now_ms=4740)
    for now_ms in range(4800, 4800 + 6 * FETCH_TIMEOUT_MS, 200):
        fetches(core, FIRST, now_ms=now_ms)
    assert not cores.described(core, now_ms=now_ms + 1).refused
    assert not refusals(fetches(core, THIRD, now_ms=now_ms + 2))


def test_releases_that_draw_no_number_are_served_as_before() -> None:
    core = leader()
    for now_ms in range(4700, 4800, 10):
        assert not refusals(fetches(core, 0 if now_ms % 20 else FIRST, now_ms=now_ms))
    assert not core.status_warnings()


def update_to(listeners: tuple[Endpoint, ...]) -> m.UpdateRaftVoterRequest:
    return m.UpdateRaftVoterRequest(
        cluster_id=cores.CLUSTER,
        current_leader_epoch=Epoch(1),
        voter=cores.key(2),
        listeners=listeners,
        kraft_version_min=0,
        kraft_version_max=1,
    )


@pytest.mark.rule("one_process_per_voter")
def test_a_clone_does_not_move_the_voter() -> None:
    core = cloned()
    fetches(core, SECOND, now_ms=4740)
    answer = cores.membership(cores.ask(core, update_to(ELSEWHERE), now_ms=4741))
    assert answer.reason is m.Reason.PENDING_VOTER_CHANGE
    answer = cores.membership(cores.ask(core, update_to(cores.endpoints(2)), now_ms=4742))
    assert answer.error is ErrorCode.NONE


@pytest.mark.rule("one_process_per_voter")
def test_the_voters_entry_stays_until_it_is_clear_who_it_is() -> None:
    core = leader()
    fetches(core, SECOND, now_ms=4700)
    answer = cores.membership(cores.ask(core, update_to(ELSEWHERE), now_ms=4701))
    assert answer.reason is m.Reason.PENDING_VOTER_CHANGE
    assert "two processes may be voter" in answer.message


def downloads(core: RaftCore, process: int, *, now_ms: int) -> ErrorCode:
    """The answer to that process of voter 2, which asks for a slice of a snapshot."""
    request = m.FetchSnapshotRequest(
        cluster_id=cores.CLUSTER,
        replica=cores.key(2),
        current_leader_epoch=Epoch(1),
        snapshot_id=cores.end(2, 1),
        position=0,
        max_bytes=1024,
        incarnation=process,
    )
    replies = cores.replies(cores.ask(core, request, now_ms=now_ms, token=now_ms))
    (answer,) = [each for each in replies if isinstance(each, m.FetchSnapshotResponse)]
    return answer.error


@pytest.mark.rule("one_process_per_voter")
def test_the_second_process_is_served_no_snapshot() -> None:
    core = cloned()
    assert downloads(core, FIRST, now_ms=4740) is ErrorCode.SNAPSHOT_NOT_FOUND
    assert downloads(core, SECOND, now_ms=4750) is ErrorCode.DUPLICATE_VOTER
    # It is taken when the first one fetches neither records nor a snapshot any more.
    last_ms = 4740 + FETCH_TIMEOUT_MS // 2
    assert downloads(core, SECOND, now_ms=last_ms - 1) is ErrorCode.DUPLICATE_VOTER
    assert downloads(core, SECOND, now_ms=last_ms) is ErrorCode.SNAPSHOT_NOT_FOUND


@pytest.mark.rule("one_process_per_voter")
def test_a_process_that_downloads_a_snapshot_is_not_silent() -> None:
    core = leader()
    cores.propose(core, now_ms=4650)
    cores.flush(core, now_ms=4651)
    end = core.replica.log.end.offset
    step_ms = FETCH_TIMEOUT_MS // 4
    for now_ms in range(4700, 4700 + 4 * step_ms, step_ms):
        downloads(core, FIRST, now_ms=now_ms)
        fetches(core, SECOND, now_ms=now_ms + 1)
        assert core.replica.high_watermark < end


@pytest.mark.rule("one_process_per_voter")
@pytest.mark.parametrize("is_downloading", [False, True])
def test_a_process_that_never_shows_that_it_runs_keeps_nothing_from_being_committed(
    *, is_downloading: bool
) -> None:
    """All of its Fetches may be late; a copy of an older disk asks for slices of a snapshot."""
    core = leader()
    high_watermark = core.replica.high_watermark
    cores.propose(core, now_ms=4650)
    cores.flush(core, now_ms=4651)
    end = core.replica.log.end.offset
    for now_ms in range(4700, 4703):
        if is_downloading and now_ms > 4700:
            assert downloads(core, SECOND, now_ms=now_ms) is ErrorCode.SNAPSHOT_NOT_FOUND
        else:
            fetches(core, SECOND, now_ms=now_ms, is_late=True)
        assert core.replica.high_watermark == high_watermark
    fetches(core, FIRST, now_ms=4710)
    assert core.replica.high_watermark == end
    # What it has counts no more than before.
    cores.propose(core, now_ms=4711)
    cores.flush(core, now_ms=4712)
    fetches(core, SECOND, now_ms=4713, is_late=True)
    assert core.replica.high_watermark == end


# --- the process that is refused ------------------------------------------------------------------


def refused() -> RaftCore:
    """Voter 2 has fetched from leader 1, which refuses it then."""
    core = cores.fed()
    answer = m.FetchResponse(error=ErrorCode.DUPLICATE_VOTER, leader=cores.LEADER)
    cores.answer(core, cores.under_way(core), answer, now_ms=10)
    return core


@pytest.mark.rule("one_process_per_voter")
def test_a_refused_process_is_not_ready_and_says_why() -> None:
    core = refused()
    assert not core.has_live_leader
    (remark,) = core.status_warnings()
    assert "the leader refuses this process" in remark


@pytest.mark.rule("one_process_per_voter")
def test_a_refused_process_neither_votes_nor_campaigns() -> None:
    core = refused()
    vote = cores.vote(3, 2, 2, cores.end(99, 1))
    response = cores.voted(cores.ask(core, vote, now_ms=20))
    assert not response.vote_granted
    assert response.refusal is m.VoteRefusal.ABSTAINS
    for now_ms in range(100, FETCH_TIMEOUT_MS, 100):
        update = core.step(api.TimerFired(), Millis(now_ms))
        assert not [r for _, r in cores.calls(update).values() if isinstance(r, m.VoteRequest)]
    # Where no leader says so any more, the quorum may need this vote.
    vote = cores.vote(3, 2, 3, cores.end(99, 1))
    response = cores.voted(cores.ask(core, vote, now_ms=11 + FETCH_TIMEOUT_MS))
    assert response.vote_granted


@pytest.mark.rule("one_process_per_voter")
def test_a_process_that_is_taken_again_votes_again() -> None:
    core = refused()
    core.step(api.TimerFired(), Millis(40))
    cores.answer(core, cores.under_way(core), cores.fetch_answer(high_watermark=5), now_ms=41)
    assert core.has_live_leader
    assert not core.status_warnings()


def test_each_request_for_the_log_names_its_process() -> None:
    core = WatchedCore(cores.config(2), cores.recovered(1, 2, 3), cores.Midway(), 7)
    core.start(Millis(0))
    ((call, request),) = cores.calls(cores.begin(core, 1, 1, now_ms=1)).values()
    assert isinstance(request, m.FetchRequest)
    assert (request.replica, request.fetch_offset) == (cores.key(2), Offset(0))
    assert request.incarnation == 7
    answer = cores.fetch_answer(snapshot_id=cores.end(9, 1))
    ((_, request),) = cores.calls(cores.answer(core, call, answer, now_ms=2)).values()
    assert isinstance(request, m.FetchSnapshotRequest)
    assert request.incarnation == 7
