"""The quorum of a log, told by the place and the content of its newest voter set.

See rule `sole_voter_conflict`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.raft import messages as m
from quorate.raft.identity.log_identity import is_of_another_quorum, mark_of, marks_below
from quorate.raft.identity.voter_set_mark import VotersMark
from quorate.raft.replication.log_state import LogState
from quorate.raft.request_manager import RequestKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Offset
from tests.unit.raft import cores


def log(*node_ids: int, set_at: int = 2, end: int = 50, log_start: int = 0) -> LogState:
    """A log of epochs 1 (0..9) and 4 with one voter set."""
    epochs = (m.EpochStart(Epoch(1), Offset(0)), m.EpochStart(Epoch(4), Offset(10)))
    state = cores.recovered(9, log_end=cores.end(end, 4), epochs=epochs)
    entry = m.VotersAt(Offset(set_at), cores.voters(*node_ids))
    return LogState(replace(state, voters=(entry,), log_start=Offset(log_start)))


def mark(*node_ids: int, set_at: int = 2) -> VotersMark:
    found = mark_of(log(*node_ids, set_at=set_at))
    assert found is not None
    return found


def test_a_set_that_no_record_has_put_in_force_marks_nothing() -> None:
    assert mark_of(LogState(cores.recovered(1, 2, 3))) is None


def test_a_mark_holds_place_and_epoch() -> None:
    found = mark(1, 2, 3, set_at=12)
    assert (found.offset, found.epoch) == (12, 4)
    assert found != mark(1, 2, set_at=12)


@pytest.mark.rule("sole_voter_conflict")
def test_the_same_set_is_of_the_same_quorum() -> None:
    assert not is_of_another_quorum(log(1, 2, 3), mark(1, 2, 3))
    # A snapshot's set stands at the snapshot's end.
    assert not is_of_another_quorum(log(1, 2, 3, set_at=1), mark(1, 2, 3))


@pytest.mark.rule("sole_voter_conflict")
def test_another_set_at_the_same_place_is_of_another_quorum() -> None:
    assert is_of_another_quorum(log(4), mark(1, 2, 3))
    assert is_of_another_quorum(log(1, 2, 3), mark(4))


@pytest.mark.parametrize(
    "here",
    [
        log(4, set_at=40),  # It knows no set of that place any more.
        log(4, log_start=20),  # It has no record of that place any more.
        log(4, end=2),  # It has none yet.
    ],
)
def test_what_is_not_there_tells_nothing(here: LogState) -> None:
    assert not is_of_another_quorum(here, mark(1, 2, 3))


def test_another_epoch_at_that_place_is_a_tail_to_be_cut() -> None:
    assert not is_of_another_quorum(log(4), replace(mark(1, 2, 3), epoch=Epoch(2)))


@pytest.mark.rule("sole_voter_conflict")
def test_a_leader_refuses_the_log_of_another_quorum() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    request = replace(
        cores.fetch(2, 4, 1), voters_at=VotersMark(offset=Offset(2), epoch=Epoch(1), checksum=1)
    )
    answer = cores.replies(cores.ask(core, request, now_ms=4450))[-1]
    assert isinstance(answer, m.FetchResponse)
    assert answer.error is ErrorCode.INCONSISTENT_VOTER_SET
    assert answer.leader == m.NOTHING_KNOWN
    assert answer.diverging is None


def test_a_follower_states_its_set_until_the_leader_has_answered() -> None:
    core = cores.fed()
    cores.begin(core, 3, 2, now_ms=900)
    (sent,) = [each.request for each in cores.open_calls(core, RequestKind.FETCH)]
    assert isinstance(sent, m.FetchRequest)
    assert sent.voters_at == mark_of(core.replica.log)


def test_a_leader_states_its_oldest_set_and_the_one_below_a_divergence() -> None:
    here = log(4, set_at=2)
    assert marks_below(here, Offset(9)) == (mark(4),)
    here.voters += [m.VotersAt(Offset(n), cores.voters(4, 5)) for n in (5, 7, 12)]
    assert [found.offset for found in marks_below(here, Offset(12))] == [2, 7]
    assert marks_below(here, Offset(2)) == ()


def test_a_set_of_a_bootstrap_is_no_mark_of_a_log() -> None:
    assert marks_below(LogState(cores.recovered(1, 2, 3)), Offset(9)) == ()


@pytest.mark.rule("sole_voter_conflict")
def test_a_leader_states_its_sets_beside_a_diverging_epoch() -> None:
    core = cores.grown_up_leader(1, 2, 3)
    update = cores.ask(core, cores.fetch(2, 40, 1), now_ms=4450)
    (known,) = [
        reply.voters_known
        for reply in cores.replies(update)
        if isinstance(reply, m.FetchResponse) and reply.diverging is not None
    ]
    assert known == (mark_of(core.replica.log),)
