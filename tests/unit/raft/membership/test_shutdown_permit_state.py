"""Shutdown permits that a leader remembers."""

from __future__ import annotations

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.membership.shutdown_permits import PERMIT_MS
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis
from tests.unit.raft import cores, quorums


def test_a_voter_that_was_silent_and_fetches_twice_is_back() -> None:
    quorum = quorums.Quorum(1, 2, 3)
    assert quorum.may_stop(2)
    quorum.passes(quorums.SILENCE_MS + 100, 3)
    # It may be on its way since before the stop: that proves nothing.
    assert quorum.fetch(2) == []
    assert not quorum.may_stop(3)
    assert quorum.fetch(2) == [f"voter {cores.key(2)} is back from its leave"]
    assert quorum.may_stop(3)


def test_a_voter_that_was_cut_off_before_its_leave_is_not_back_from_it() -> None:
    quorum = quorums.Quorum()
    quorum.passes(quorums.SILENCE_MS + 100, 3, 4, 5)
    assert quorum.may_stop(2)
    # Its own Fetches come through again, and it is about to stop.
    assert quorum.fetch(2) == []
    assert quorum.fetch(2) == []
    assert quorum.may_stop(3)
    assert not quorum.may_stop(4)


def test_a_leave_that_is_not_used_ends() -> None:
    quorum = quorums.Quorum(1, 2, 3)
    assert quorum.may_stop(2)
    quorum.passes(PERMIT_MS - 100, 2, 3)
    assert not quorum.may_stop(3)
    quorum.passes(100, 2, 3)
    assert quorum.may_stop(3)


def test_who_has_leave_is_named_last_as_a_successor() -> None:
    quorum = quorums.Quorum()
    assert quorum.may_stop(2)
    update = quorum.core.step(api.ResignRequested("a test"), Millis(quorum.now))
    assert cores.successors(update) == [3, 4, 5, 2]


def test_who_has_leave_is_told_of() -> None:
    quorum = quorums.Quorum()
    assert quorum.may_stop(4)
    assert quorum.core.status_warnings() == [
        f"voter {cores.key(4)} has leave to stop and is not back"
    ]


def test_leadership_is_not_handed_over_while_somebody_is_about_to_stop() -> None:
    quorum = quorums.Quorum()
    assert quorum.may_stop(4)
    to_4 = m.TransferLeadershipRequest(cores.CLUSTER, cores.key(4))
    to_2 = m.TransferLeadershipRequest(cores.CLUSTER, cores.key(2))
    for request, words in ((to_4, "let another voter lead"), (to_2, "has not stopped yet")):
        answer = quorum.ask(request)
        assert (answer.error, answer.reason) == (
            ErrorCode.REQUEST_TIMED_OUT,
            m.Reason.NO_HAND_OVER,
        )
        assert words in answer.message
    quorum.passes(quorums.SILENCE_MS, 2, 3, 5)
    update = cores.hand_over(quorum.core, 2, now_ms=quorum.now)
    assert cores.membership(update).error is ErrorCode.NONE
