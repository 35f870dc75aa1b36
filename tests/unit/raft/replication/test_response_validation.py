"""Responses that a follower accepts from its leader, and those that it rejects.

The rule is `leader_contradiction`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.identity.log_identity import mark_of
from quorate.raft.identity.voter_set_mark import VotersMark
from quorate.records.control import KRaftVoters, LeaderChange
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def cores_heard(core: RaftCore) -> bool:
    return core.has_live_leader and core.status_warnings() == []


IMPOSSIBLE: dict[str, m.FetchResponse | api.RequestFailure] = {
    "diverges below what is committed": cores.fetch_answer(diverging=cores.end(2, 1)),
    "diverges where nothing differs": cores.fetch_answer(diverging=cores.end(9, 1)),
    "diverges in an epoch to come": cores.fetch_answer(diverging=cores.end(4, 7)),
    "its high watermark falls": cores.fetch_answer(high_watermark=Offset(2)),
    "it falls beside records": cores.fetch_answer(
        high_watermark=Offset(1), records=cores.batches(cores.RECORD)
    ),
    "another leader of its epoch": m.FetchResponse(
        error=ErrorCode.NONE, leader=m.LeaderInfo(NodeId(3), Epoch(1)), high_watermark=Offset(3)
    ),
    "a snapshot of what is here": cores.fetch_answer(snapshot_id=cores.end(3, 1)),
    "a snapshot of less": cores.fetch_answer(snapshot_id=cores.end(1, 1)),
    "a snapshot of a later epoch": cores.fetch_answer(snapshot_id=cores.end(9, 2)),
    "a snapshot of an earlier epoch": cores.fetch_answer(snapshot_id=cores.end(9, 0)),
    "records with a gap": cores.fetch_answer(
        records=cores.batches(replace(cores.RECORD, base_offset=Offset(6)))
    ),
    "an answer that does not check": api.RequestFailure.UNREADABLE,
}


@pytest.mark.rule("leader_contradiction")
@pytest.mark.parametrize("what", list(IMPOSSIBLE))
def test_a_leader_that_contradicts_what_is_committed_changes_nothing(what: str) -> None:
    core = cores.fed()
    assert cores_heard(core)
    update = cores.answer(core, cores.under_way(core), IMPOSSIBLE[what], now_ms=4)
    assert update.effects == ()
    assert not core.has_live_leader
    (note,) = update.trace
    assert note.text.startswith("does not believe leader 1: ")
    assert any("does not believe leader 1 of epoch 1" in line for line in core.status_warnings())
    # It asks again from where its log ends, and knows of what was committed before.
    assert update.wake_at_ms is not None
    expect(
        core.step(api.TimerFired(), update.wake_at_ms),
        traffic.fetch_sent(4, 5, 1, high_watermark=3),
        wake_at_ms=2000,
    )
    # Its leader was heard at 2 ms, and not since.
    deadline = 2 + cores.config().fetch_timeout_ms
    core.step(api.TimerFired(), Millis(deadline - 1))
    assert told(core).role == "follower"
    core.step(api.TimerFired(), Millis(deadline))
    assert told(core).role == "prospective"


# --- the log of another quorum --------------------------------------------------------------------

STRANGE = VotersMark(offset=Offset(1), epoch=Epoch(1), checksum=1)


def uncommitted() -> RaftCore:
    """A follower of five records, with a set in the second of them, none known committed."""
    core = cores.follower()
    control = (LeaderChange(NodeId(1), (), ()), KRaftVoters(cores.voters(1, 2, 3)))
    first = replace(cores.FIRST.batches[0], last_offset=Offset(1), control=control)
    second = replace(cores.FIRST.batches[1], base_offset=Offset(2))
    told_all = cores.fetch_answer(records=cores.batches(first, second))
    cores.answer(core, cores.under_way(core), told_all, now_ms=2)
    cores.flush(core, now_ms=3)
    return core


@pytest.mark.rule("sole_voter_conflict")
@pytest.mark.parametrize(
    "answer",
    [
        cores.fetch_answer(diverging=cores.end(4, 1), voters_known=(STRANGE,)),
        cores.fetch_answer(snapshot_id=cores.end(9, 1), voters_known=(STRANGE,)),
    ],
)
def test_nothing_is_given_up_for_the_log_of_another_quorum(
    answer: m.FetchResponse,
) -> None:
    core = uncommitted()
    update = cores.answer(core, cores.under_way(core), answer, now_ms=4)
    assert update.effects == ()
    assert not core.has_live_leader
    assert any("its log is of another quorum" in line for line in core.status_warnings())
    # It is a proof, whatever is committed (`second_quorum`).
    assert core.follower_replication.fetch_response_validator.shows_another_quorum(answer)


@pytest.mark.rule("sole_voter_conflict")
@pytest.mark.parametrize(
    "known",
    [
        (),  # A release that states none.
        "own",
        (replace(STRANGE, epoch=Epoch(2)),),  # A tail of this log, which goes.
        (replace(STRANGE, offset=Offset(70)),),  # Nothing of it is here.
    ],
)
def test_a_leader_whose_sets_can_be_is_believed(
    known: tuple[VotersMark, ...] | str,
) -> None:
    core = uncommitted()
    mark = mark_of(core.replica.log)
    assert mark is not None
    marks = (mark,) if isinstance(known, str) else known
    answer = cores.fetch_answer(diverging=cores.end(4, 1), voters_known=marks)
    update = cores.answer(core, cores.under_way(core), answer, now_ms=4)
    assert any(isinstance(effect, api.TruncateLog) for effect in update.effects)
