"""TransferLeadership: to a voter that has everything, and nothing is proposed meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.roles import Resigned
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, Offset, ReplyToken
from tests.unit.raft import cores
from tests.unit.raft.expecting import log_end, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

TO_2 = m.TransferLeadershipRequest(cores.CLUSTER, cores.key(2))


def propose(core: RaftCore, *, now_ms: int, token: int) -> api.Update:
    batch = api.ProposedBatch(b"records", 1)
    return core.step(api.RecordsProposed(ReplyToken(token), Epoch(1), batch), Millis(now_ms))


def test_a_voter_with_the_whole_log_is_named_first_at_once() -> None:
    core = cores.grown_up_leader()
    update = cores.ask(core, TO_2, now_ms=4500, token=7)
    assert cores.membership(update).error is ErrorCode.NONE
    assert isinstance(core.replica.role, Resigned)
    assert core.replica.role.preferred == (cores.key(2), cores.key(3))


def test_proposals_wait_until_the_successor_has_what_went_before() -> None:
    core = cores.grown_up_leader()
    propose(core, now_ms=4490, token=20)
    assert not cores.memberships(cores.ask(core, TO_2, now_ms=4500, token=7))
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
