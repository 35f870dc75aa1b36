"""TakeLeave: one voter after the other stops, and a majority stays."""

from __future__ import annotations

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Millis, ReplicaKey, ReplyToken
from tests.unit.raft import cores, quorums


def test_one_of_a_healthy_quorum_has_leave_at_once() -> None:
    for asker in (1, 2, 3):
        assert quorums.Quorum(1, 2, 3).may_stop(asker)


def test_leaves_are_given_while_a_majority_stays() -> None:
    quorum = quorums.Quorum()
    assert quorum.may_stop(4)
    assert quorum.may_stop(5)
    for asker in (1, 2, 3):
        answer = quorum.take_leave(asker)
        assert (answer.error, answer.reason) == (
            ErrorCode.REQUEST_TIMED_OUT,
            m.Reason.VOTERS_AWAY,
        )
        assert dict(answer.metadata) == {"away": "4,5", "majority": "3", "stay": "2"}
        assert "voter 4 has leave and is not back" in answer.message
    # They still fetch, and count as away all the same.
    quorum.passes(2 * quorums.FETCH_TIMEOUT_MS, *quorums.FIVE[1:])
    assert not quorum.may_stop(3)


def test_whoever_asks_again_is_answered_anew() -> None:
    quorum = quorums.Quorum(1, 2, 3)
    assert quorum.may_stop(2)
    assert quorum.may_stop(2)
    quorum.passes(quorums.SILENCE_MS, 2)
    # Voter 3 has died since: a voter that has not stopped yet learns of it.
    assert not quorum.may_stop(2)
    quorum.fetch(3)
    assert quorum.may_stop(2)


def test_a_refusal_takes_no_leave_back() -> None:
    """The caller that asked first in the name of that voter may have stopped it."""
    quorum = quorums.Quorum(1, 2, 3)
    assert quorum.may_stop(2)
    quorum.passes(quorums.SILENCE_MS, 2)
    assert not quorum.may_stop(2)
    quorum.fetch(3)
    answer = quorum.take_leave(3)
    assert answer.reason is m.Reason.VOTERS_AWAY
    assert "voter 2 has leave and is not back" in answer.message


def test_a_voter_that_is_back_but_has_not_caught_up_cannot_be_relied_on() -> None:
    quorum = quorums.Quorum(1, 2, 3)
    assert quorum.may_stop(2)
    quorum.passes(quorums.FETCH_TIMEOUT_MS + 100, 3)
    core = quorum.core
    batch = api.ProposedBatch(b"records", 1)
    core.step(api.RecordsProposed(ReplyToken(9), Epoch(1), batch), Millis(quorum.now))
    cores.flush(core, now_ms=quorum.now)
    quorum.fetch(3)
    for _ in range(2):
        cores.ask(core, cores.fetch(2, 3, 1), now_ms=quorum.now, token=50)
    answer = quorum.take_leave(3)
    assert answer.reason is m.Reason.VOTERS_AWAY
    assert "voter 2 has not caught up" in answer.message
    quorum.fetch(2)
    assert quorum.may_stop(3)


def test_who_died_without_leave_is_away_as_well() -> None:
    quorum = quorums.Quorum(1, 2, 3)
    quorum.passes(quorums.SILENCE_MS, 3)
    answer = quorum.take_leave(3)
    assert answer.reason is m.Reason.VOTERS_AWAY
    assert f"voter 2 was last heard {quorums.SILENCE_MS} ms ago" in answer.message


def test_a_new_leader_waits_until_the_leaves_of_its_predecessor_show() -> None:
    core = cores.leader(1, 1, 2, 3)
    for node_id in (2, 3):
        cores.ask(core, cores.fetch(node_id, 3, 1), now_ms=quorums.START - 1, token=node_id)
    request = m.TakeLeaveRequest(cores.CLUSTER, cores.key(3))
    answer = cores.membership(cores.ask(core, request, now_ms=quorums.START - 1, token=7))
    assert answer.reason is m.Reason.HIGH_WATERMARK_UNKNOWN
    assert "has yet to learn who is away: try again in 1 ms" in answer.message
    answer = cores.membership(cores.ask(core, request, now_ms=quorums.START, token=8))
    assert answer.error is ErrorCode.NONE


@pytest.mark.parametrize("node_ids", [(1,), (1, 2)])
def test_where_none_can_be_spared_nobody_waits(node_ids: tuple[int, ...]) -> None:
    quorum = quorums.Quorum(*node_ids)
    answer = quorum.take_leave(1)
    assert (answer.error, answer.reason) == (ErrorCode.INVALID_REQUEST, m.Reason.TOO_FEW_VOTERS)


def test_the_leader_takes_leave_of_itself_and_then_hands_over() -> None:
    quorum = quorums.Quorum(1, 2, 3)
    assert quorum.may_stop(1)
    assert not quorum.may_stop(2)
    update = cores.hand_over(quorum.core, 2, now_ms=quorum.now)
    assert cores.membership(update).error is ErrorCode.NONE


def test_no_voter_is_removed_on_whom_those_with_leave_would_rely() -> None:
    quorum = quorums.Quorum()
    assert quorum.may_stop(4)
    assert quorum.may_stop(5)
    removal = m.RemoveRaftVoterRequest(
        cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(0)
    )
    answer = quorum.ask(removal)
    assert answer.reason is m.Reason.NO_LIVE_MAJORITY
    assert dict(answer.metadata) == {"alive": "2", "majority": "3"}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (m.TakeLeaveRequest(cores.CLUSTER, cores.key(9)), ErrorCode.VOTER_NOT_FOUND),
        (
            m.TakeLeaveRequest(
                cores.CLUSTER, ReplicaKey(cores.key(2).node_id, cores.key(3).directory_id)
            ),
            ErrorCode.VOTER_NOT_FOUND,
        ),
        (
            m.TakeLeaveRequest(ClusterId("another"), cores.key(2)),
            ErrorCode.INCONSISTENT_CLUSTER_ID,
        ),
    ],
)
def test_only_voters_of_this_cluster_are_answered(
    request_: m.TakeLeaveRequest, error: ErrorCode
) -> None:
    quorum = quorums.Quorum()
    assert quorum.ask(request_).error is error
    assert quorum.core.status_warnings() == []


def test_a_follower_names_the_leader() -> None:
    core = cores.follower()
    request = m.TakeLeaveRequest(cores.CLUSTER, cores.key(2))
    answer = cores.membership(cores.ask(core, request, now_ms=5000, token=7))
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.leader.leader_id == 1
