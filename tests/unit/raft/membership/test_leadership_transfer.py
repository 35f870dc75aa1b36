"""TransferLeadership: to a voter that is caught up and answers; it blocks proposals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.epoch_announcements import REPEAT_SHARE
from quorate.raft.request_manager import RequestKind
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset, ReplyToken
from quorate.records.voters import Endpoint
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, log_end, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

TO_2 = m.TransferLeadershipRequest(cores.CLUSTER, cores.key(2))


def propose(core: RaftCore, *, now_ms: int, token: int) -> api.Update:
    batch = api.ProposedBatch(b"records", 1)
    return core.step(api.RecordsProposed(ReplyToken(token), Epoch(1), batch), Millis(now_ms))


def test_a_voter_with_the_whole_log_is_named_first_at_once() -> None:
    core = cores.grown_up_leader()
    update = cores.hand_over(core, 2, now_ms=4500)
    # It leads no more, and does not know yet who does.
    nobody = m.LeaderInfo(None, Epoch(1))
    expect(
        update,
        api.SendReply(ReplyToken(7), m.MembershipResponse(ErrorCode.NONE, "", nobody)),
        traffic.end_sent(11, 2, 2, 3),
        traffic.end_sent(12, 3, 2, 3),
        cores.progress("resigned", 1, leader_id=1, high_watermark=3),
        wake_at_ms=4500 + cores.part_of_election_timeout(REPEAT_SHARE),
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                f"leadership goes to {cores.key(2)}: leader becomes resigned in epoch 1",
            ),
        ),
    )


def begun(update: api.Update) -> dict[int, api.Peer]:
    """The endpoints at which an update notifies voters of the leader."""
    return {
        effect.to.node_id: effect.to
        for effect in update.effects
        if isinstance(effect, api.SendRequest)
        if isinstance(effect.request, m.BeginQuorumEpochRequest)
    }


def test_a_successor_that_does_not_answer_leaves_the_leader_leading() -> None:
    core = cores.grown_up_leader()
    assert begun(cores.ask(core, TO_2, now_ms=4500, token=7)) == {2: cores.peer(2)}
    propose(core, now_ms=4501, token=21)
    cores.ask(core, cores.fetch(3, 3, 1), now_ms=4600, token=9)
    update = core.step(api.TimerFired(), Millis(5500))
    answer = cores.membership(update)
    assert (answer.error, answer.reason) == (ErrorCode.REQUEST_TIMED_OUT, m.Reason.NO_HAND_OVER)
    assert "did not answer at node-2:9094 within 1000 ms: this leader goes on" in answer.message
    assert told(core).role == "leader"
    (appended,) = [r for r in cores.replies(update) if isinstance(r, m.ProposalResponse)]
    assert appended.base_offset == Offset(3)


def test_a_successor_that_moved_is_looked_for_where_it_says_that_it_is() -> None:
    """It fetches from another address than its set says, and its old address is unused."""
    core = cores.grown_up_leader()
    there = (Endpoint("GRPC", "elsewhere", 9094),)
    moved = replace(cores.fetch(2, 3, 1), replica_endpoints=there)
    elsewhere = api.Peer(NodeId(2), "elsewhere", 9094)
    assert begun(cores.ask(core, moved, now_ms=4450, token=8)) == {2: elsewhere}
    cores.answer(
        core,
        cores.under_way(core, RequestKind.BEGIN_QUORUM_EPOCH),
        api.RequestFailure.DISCONNECTED,
        now_ms=4451,
    )
    assert begun(cores.ask(core, TO_2, now_ms=4452, token=7)) == {2: cores.peer(2)}
    assert begun(core.step(api.TimerFired(), Millis(4702))) == {2: elsewhere}
    update = cores.heed(core, 2, now_ms=4703)
    assert cores.membership(update).error is ErrorCode.NONE
    ended = [e.to for e in update.effects if isinstance(e, api.SendRequest) if e.to.node_id == 2]
    assert ended == [elsewhere]


def test_another_voter_that_answers_there_is_not_the_successor() -> None:
    core = cores.grown_up_leader()
    call = cores.calls(cores.ask(core, TO_2, now_ms=4500, token=7))[2][0]
    other = m.BeginQuorumEpochResponse(ErrorCode.INVALID_VOTER_KEY, cores.LEADER)
    assert not cores.memberships(cores.answer(core, call, other, now_ms=4501))
    assert told(core).role == "leader"


def test_proposals_wait_until_the_successor_has_what_went_before() -> None:
    core = cores.grown_up_leader()
    propose(core, now_ms=4490, token=20)
    assert not cores.memberships(cores.hand_over(core, 2, now_ms=4500))
    assert not cores.replies(propose(core, now_ms=4501, token=21))
    assert log_end(core).offset == 4
    update = cores.ask(core, cores.fetch(2, 4, 1), now_ms=4502, token=8)
    assert cores.membership(update).error is ErrorCode.NONE
    (refused,) = [r for r in cores.replies(update) if isinstance(r, m.ProposalResponse)]
    assert refused.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert told(core).role == "resigned"


def test_a_successor_that_does_not_get_there_leaves_the_leader_leading() -> None:
    core = cores.grown_up_leader()
    propose(core, now_ms=4490, token=20)
    cores.ask(core, TO_2, now_ms=4500, token=7)
    propose(core, now_ms=4501, token=21)
    cores.ask(core, cores.fetch(3, 4, 1), now_ms=4600, token=9)
    update = core.step(api.TimerFired(), Millis(5500))
    answer = cores.membership(update)
    assert (answer.error, answer.reason) == (ErrorCode.REQUEST_TIMED_OUT, m.Reason.NO_HAND_OVER)
    assert told(core).role == "leader"
    (appended,) = [r for r in cores.replies(update) if isinstance(r, m.ProposalResponse)]
    assert appended.base_offset == Offset(4)


def test_a_voter_that_lags_is_refused_with_its_lag() -> None:
    core = cores.grown_up_leader()
    propose(core, now_ms=4490, token=20)
    late = 4401 + cores.config().fetch_timeout_ms
    cores.ask(core, cores.fetch(3, 4, 1), now_ms=late, token=9)
    answer = cores.membership(cores.ask(core, TO_2, now_ms=late, token=7))
    assert (answer.error, answer.reason) == (ErrorCode.REQUEST_TIMED_OUT, m.Reason.VOTER_LAGGING)
    assert dict(answer.metadata) == {"lag": "1"}
    assert told(core).role == "leader"


def test_leadership_goes_to_voters_only_and_stays_where_it_is_asked_to_be() -> None:
    core = cores.grown_up_leader()
    stranger = m.TransferLeadershipRequest(cores.CLUSTER, cores.key(9))
    answer = cores.membership(cores.ask(core, stranger, now_ms=4500, token=7))
    assert (answer.error, answer.reason) == (ErrorCode.VOTER_NOT_FOUND, m.Reason.VOTER_NOT_FOUND)
    own = m.TransferLeadershipRequest(cores.CLUSTER, cores.key(1))
    assert cores.membership(cores.ask(core, own, now_ms=4501, token=8)).error is ErrorCode.NONE
    assert told(core).role == "leader"
