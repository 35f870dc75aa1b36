"""A replica of a quorum of several voters meets another quorum of its cluster.

See rule `sole_voter_conflict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.identity.second_quorum import MET_FACTOR, PROOFS
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores
from tests.unit.raft.expecting import told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

pytestmark = pytest.mark.rule("sole_voter_conflict")

# The log of `cores.fed` ends at 5, and everything below 3 is committed.
DIVERGES = cores.fetch_answer(diverging=cores.end(2, 1))


def answered(core: RaftCore, *answers: m.FetchResponse | api.RequestFailure) -> list[api.Update]:
    """Each Fetch that follows has the next answer, as soon as it is sent."""
    updates = []
    for response in answers:
        now_ms = int(core.replica.timers.now)
        update = cores.answer(core, cores.under_way(core), response, now_ms=now_ms)
        updates.append(update)
        assert update.wake_at_ms is not None
        core.step(api.TimerFired(), update.wake_at_ms)
    return updates


def test_a_leader_that_diverges_below_what_is_committed_proves_another_quorum() -> None:
    core = cores.fed()
    *before, last = answered(core, *[DIVERGES] * PROOFS)
    assert not [
        n for update in before for n in update.trace if n.kind is TraceEventKind.RIVAL_FOUND
    ]
    assert [note.kind for note in last.trace] == [TraceEventKind.RIVAL_FOUND]
    assert core.replica.second_quorum.is_met
    remark = core.replica.second_quorum.remark()
    assert remark is not None
    assert f"node 1, leader of epoch 1, leads another quorum of cluster {cores.CLUSTER}" in remark
    assert "--no-initial-controllers" in remark
    # It is reported once while it lasts.
    (more,) = answered(core, DIVERGES)
    assert more.trace == ()


def test_a_leader_that_refuses_the_log_of_another_quorum_proves_it() -> None:
    core = cores.fed()
    refusal = m.FetchResponse(error=ErrorCode.INCONSISTENT_VOTER_SET, leader=cores.LEADER)
    answered(core, *[refusal] * (PROOFS - 1))
    assert not core.replica.second_quorum.is_met
    answered(core, refusal)
    assert core.replica.second_quorum.is_met
    assert not core.has_live_leader


def test_one_damaged_answer_proves_nothing() -> None:
    core = cores.fed()
    answered(core, *[DIVERGES] * (PROOFS - 1))
    assert not core.replica.second_quorum.is_met
    assert core.replica.second_quorum.remark() is None


@pytest.mark.parametrize(
    "answer",
    [
        cores.fetch_answer(high_watermark=Offset(2)),
        cores.fetch_answer(diverging=cores.end(9, 1)),
        cores.fetch_answer(snapshot_id=cores.end(3, 1)),
        m.FetchResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR, leader=cores.LEADER),
        api.RequestFailure.UNREADABLE,
    ],
)
def test_what_a_leader_of_this_quorum_may_have_lost_is_no_proof(
    answer: m.FetchResponse | api.RequestFailure,
) -> None:
    core = cores.fed()
    answered(core, *[answer] * (PROOFS + 1))
    assert not core.replica.second_quorum.is_met


def test_a_follower_with_a_leader_of_another_quorum_is_not_ready_and_campaigns() -> None:
    core = cores.fed()
    answered(core, *[DIVERGES] * PROOFS)
    core.step(api.TimerFired(), Millis(2 + cores.config().fetch_timeout_ms))
    assert told(core).role == "prospective"
    assert not core.has_live_leader


def lead(core: RaftCore) -> None:
    """The replica wins the next election."""
    now_ms = 2 + cores.config().fetch_timeout_ms
    update = core.step(api.TimerFired(), Millis(now_ms))
    for _ in ("pre-vote", "vote"):
        (call, request), *_ = (
            found for found in cores.calls(update).values() if isinstance(found[1], m.VoteRequest)
        )
        assert isinstance(request, m.VoteRequest)
        update = cores.answer(core, call, cores.granted(request.replica_epoch), now_ms=now_ms)


def test_it_leads_on_and_is_not_ready_until_the_other_quorum_is_silent() -> None:
    core = cores.fed()
    *_, last = answered(core, *[DIVERGES] * PROOFS)
    assert last.wake_at_ms is not None
    lead(core)
    assert told(core).role == "leader"
    assert core.replica.second_quorum.is_met
    assert not core.has_live_leader

    core.replica.timers.now = Millis(last.wake_at_ms + met_ms())

    assert not core.replica.second_quorum.is_met
    assert core.has_live_leader


def met_ms() -> int:
    """So long after the last proof another quorum is taken for silent."""
    return cores.config().fetch_timeout_ms * MET_FACTOR


def test_a_leader_that_agrees_after_all_takes_it_back() -> None:
    core = cores.fed()
    answered(core, *[DIVERGES] * PROOFS)
    assert core.replica.second_quorum.is_met
    answered(core, cores.fetch_answer(high_watermark=Offset(3)))
    assert not core.replica.second_quorum.is_met
    assert core.has_live_leader


def test_proofs_of_one_leader_count_across_epochs() -> None:
    core = cores.fed()
    second = core.replica.second_quorum
    for epoch in range(1, PROOFS):
        second.prove(NodeId(1), Epoch(epoch), "why")
        assert not second.is_met
    second.prove(NodeId(1), Epoch(PROOFS), "why")
    assert second.is_met


def test_proofs_of_long_ago_or_of_another_leader_do_not_count() -> None:
    core = cores.fed()
    second, timers = core.replica.second_quorum, core.replica.timers
    for _ in range(PROOFS):
        second.prove(NodeId(1), Epoch(1), "why")
        timers.now = Millis(timers.now + met_ms())
        assert not second.is_met
    for leader in (2, 3) * PROOFS:
        second.prove(NodeId(leader), Epoch(1), "why")
    assert not second.is_met


def test_a_leader_that_met_another_quorum_changes_no_membership() -> None:
    core = cores.grown_up_leader()
    for _ in range(PROOFS):
        core.replica.second_quorum.prove(NodeId(2), Epoch(1), "why")
    for request in (
        m.RemoveRaftVoterRequest(
            cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(1000), force=True
        ),
        m.AddRaftVoterRequest(
            cluster_id=cores.CLUSTER,
            voter=cores.key(4),
            listeners=cores.endpoints(4),
            timeout_ms=Millis(1000),
        ),
    ):
        answer = cores.membership(cores.ask(core, request, now_ms=4500))
        assert answer.reason is m.Reason.HIGH_WATERMARK_UNKNOWN
        assert "leads another quorum" in answer.message
