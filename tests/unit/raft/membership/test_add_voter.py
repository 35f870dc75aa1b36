"""AddRaftVoter (KIP-853): what is checked, asked and appended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.membership.voter_changes import LAG_MAX
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Millis, Offset, ReplicaKey, ReplyToken
from quorate.records.voters import Endpoint, Voter
from tests.unit.raft import cores
from tests.unit.raft.expecting import appended_voters, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def with_observer(*node_ids: int) -> RaftCore:
    """A leader with an observer 4 that has everything that is committed."""
    core = cores.grown_up_leader(*node_ids)
    cores.ask(core, cores.fetch(4, 3, 1), now_ms=4450, token=50)
    return core


def asked(core: RaftCore, request: m.AddRaftVoterRequest = cores.ADD) -> api.Update:
    return cores.ask(core, request, now_ms=4500, token=7)


def refused(core: RaftCore, request: m.AddRaftVoterRequest = cores.ADD) -> m.MembershipResponse:
    answer = cores.membership(asked(core, request))
    assert appended_voters(core).by_id(cores.key(4).node_id) is None
    return answer


def answered(
    core: RaftCore,
    versions: m.ApiVersionsResponse | api.RequestFailure = cores.VERSIONS,
    request: m.AddRaftVoterRequest = cores.ADD,
    *,
    by: tuple[int, ...] = (2, 3),
) -> api.Update:
    call, question = cores.calls(asked(core, request))[4]
    assert question == m.ApiVersionsRequest()
    cores.echo(core, *by, now_ms=4501)
    return cores.answer(core, call, versions, now_ms=4501)


def test_a_caught_up_observer_is_asked_for_its_versions_and_becomes_a_voter() -> None:
    core = with_observer()
    update = answered(core)
    assert not cores.memberships(update)
    assert appended_voters(core).by_id(cores.key(4).node_id) == Voter(
        cores.key(4), cores.endpoints(4), 0, 1
    )
    cores.flush(core, now_ms=4502)
    cores.ask(core, cores.fetch(2, 4, 1), now_ms=4503, token=8)
    update = cores.ask(core, cores.fetch(4, 4, 1), now_ms=4504, token=9)
    assert cores.membership(update).error is ErrorCode.NONE
    assert told(core).high_watermark == Offset(4)


def test_who_does_not_wait_for_the_commit_is_answered_when_it_is_appended() -> None:
    core = with_observer()
    answer = cores.membership(answered(core, request=replace(cores.ADD, ack_when_committed=False)))
    assert answer.error is ErrorCode.NONE
    assert cores.key(4) in appended_voters(core)


def test_what_it_acknowledged_as_an_observer_commits_nothing() -> None:
    # An observer need not be trusted as a voter is: a broker's identity may fetch as one.
    core = with_observer(1, 2)
    cores.propose(core, now_ms=4455)
    cores.flush(core, now_ms=4456)
    cores.ask(core, cores.fetch(4, 5, 1), now_ms=4460, token=51)
    assert told(core).high_watermark == Offset(3)
    answered(core, by=())
    assert cores.key(4) in appended_voters(core)
    assert told(core).high_watermark == Offset(3)
    cores.ask(core, cores.fetch(4, 5, 1), now_ms=4510, token=52)
    assert told(core).high_watermark == Offset(5)


def test_a_request_without_directory_or_shared_listener_is_invalid() -> None:
    core = with_observer()
    answer = refused(core, replace(cores.ADD, voter=ReplicaKey(cores.key(4).node_id)))
    assert (answer.error, answer.reason) == (
        ErrorCode.INVALID_REQUEST,
        m.Reason.DIRECTORY_ID_UNKNOWN,
    )
    other = (Endpoint("CONTROLLER", "node-4", 9093),)
    answer = refused(core, replace(cores.ADD, listeners=other))
    assert (answer.error, answer.reason) == (ErrorCode.INVALID_REQUEST, m.Reason.INVALID_LISTENERS)
    assert "GRPC" in answer.message


def test_a_node_id_votes_once() -> None:
    core = with_observer()
    twin = replace(cores.ADD, voter=ReplicaKey(cores.key(3).node_id, cores.key(9).directory_id))
    answer = refused(core, twin)
    assert (answer.error, answer.reason) == (ErrorCode.DUPLICATE_VOTER, m.Reason.DUPLICATE_VOTER)


def test_a_replica_that_never_fetched_or_lags_is_refused_with_its_lag() -> None:
    core = cores.grown_up_leader()
    answer = refused(core)
    assert (answer.error, answer.reason) == (ErrorCode.REQUEST_TIMED_OUT, m.Reason.VOTER_LAGGING)
    cores.ask(core, cores.fetch(4, 1, 1, wait_ms=0), now_ms=4499, token=51)
    answer = refused(core)
    assert answer.reason is m.Reason.VOTER_LAGGING
    assert dict(answer.metadata) == {"lag": "2"}


@pytest.mark.rule("observer_lag_baseline")
def test_what_is_not_committed_is_no_lag_of_an_observer() -> None:
    core = with_observer()
    batch = api.ProposedBatch(b"x" * 70, LAG_MAX + 1)
    core.step(api.RecordsProposed(ReplyToken(9), Epoch(1), batch), Millis(4460))
    _, question = cores.calls(asked(core))[4]
    assert question == m.ApiVersionsRequest()


def test_who_was_caught_up_long_ago_is_not_now() -> None:
    core = with_observer()
    later = 4450 + cores.config().fetch_timeout_ms + 1
    for node_id in (2, 3):
        cores.ask(core, cores.fetch(node_id, 3, 1), now_ms=later - 1, token=60 + node_id)
    answer = cores.membership(cores.ask(core, cores.ADD, now_ms=later, token=7))
    assert answer.reason is m.Reason.VOTER_LAGGING


def test_who_fetches_from_further_back_has_lost_what_it_was_caught_up_with() -> None:
    core = with_observer()
    cores.ask(core, cores.fetch(4, 1, 1, wait_ms=0), now_ms=4460, token=51)
    answer = refused(core)
    assert answer.reason is m.Reason.VOTER_LAGGING
    assert dict(answer.metadata) == {"lag": "2"}


def test_who_fetches_with_another_log_has_lost_what_it_was_caught_up_with() -> None:
    core = with_observer()
    update = cores.ask(core, cores.fetch(4, 9, 1, wait_ms=0), now_ms=4460, token=51)
    answers = [reply for reply in cores.replies(update) if isinstance(reply, m.FetchResponse)]
    assert cores.end(3, 1) in [answer.diverging for answer in answers]
    assert refused(core).reason is m.Reason.VOTER_LAGGING


@pytest.mark.rule("decommissioned_voters")
def test_who_was_decommissioned_comes_back_by_hand_only() -> None:
    core = with_observer()
    core.replica.log.voters[-1] = m.VotersAt(
        Offset(2), replace(cores.voters(1, 2, 3), decommissioned=(cores.key(4),))
    )
    answer = refused(core, replace(cores.ADD, auto_join=True))
    assert (answer.error, answer.reason) == (
        ErrorCode.INVALID_REQUEST,
        m.Reason.VOTER_DECOMMISSIONED,
    )
    answered(core)
    assert cores.key(4) in appended_voters(core)
    assert appended_voters(core).decommissioned == ()


def test_a_new_voter_that_does_not_answer_is_not_added() -> None:
    core = with_observer()
    answer = cores.membership(answered(core, api.RequestFailure.DISCONNECTED))
    assert (answer.error, answer.reason) == (
        ErrorCode.REQUEST_TIMED_OUT,
        m.Reason.VOTER_UNREACHABLE,
    )
    assert appended_voters(core) == cores.voters(1, 2, 3)


def test_an_answer_that_takes_longer_than_the_caller_waits_comes_too_late() -> None:
    core = with_observer()
    call, _ = cores.calls(asked(core))[4]
    cores.echo(core, 2, 3, now_ms=5000)
    answer = cores.membership(core.step(api.TimerFired(), Millis(5500)))
    assert answer.reason is m.Reason.VOTER_UNREACHABLE
    cores.answer(core, call, cores.VERSIONS, now_ms=5501)
    assert appended_voters(core) == cores.voters(1, 2, 3)


def test_an_answer_to_an_earlier_question_says_nothing_about_this_one() -> None:
    core = with_observer()
    first, _ = cores.calls(asked(core))[4]
    core.step(api.TimerFired(), Millis(5500))
    cores.ask(core, cores.fetch(4, 3, 1), now_ms=5501, token=60)
    for node_id in (2, 3):
        cores.ask(core, cores.fetch(node_id, 3, 1), now_ms=5501, token=60 + node_id)
    second, _ = cores.calls(cores.ask(core, cores.ADD, now_ms=5502, token=8))[4]
    assert not cores.memberships(
        cores.answer(core, first, api.RequestFailure.DISCONNECTED, now_ms=5503)
    )
    cores.echo(core, 2, 3, now_ms=5504)
    cores.answer(core, second, cores.VERSIONS, now_ms=5504)
    assert cores.key(4) in appended_voters(core)


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        (replace(cores.VERSIONS, key=cores.key(5)), m.Reason.VOTER_IS_SOMEBODY_ELSE),
        (replace(cores.VERSIONS, cluster_id=ClusterId("other")), m.Reason.VOTER_IS_SOMEBODY_ELSE),
        (replace(cores.VERSIONS, kraft_version_max=0), m.Reason.VOTER_UNSUPPORTED),
    ],
)
def test_somebody_else_or_old_software_is_not_added(
    versions: m.ApiVersionsResponse, reason: m.Reason
) -> None:
    core = with_observer()
    answer = cores.membership(answered(core, versions))
    assert (answer.error, answer.reason) == (ErrorCode.INVALID_REQUEST, reason)
    assert appended_voters(core) == cores.voters(1, 2, 3)


def test_a_leader_that_is_deposed_while_it_asks_has_changed_nothing() -> None:
    core = with_observer()
    asked(core)
    (answer,) = cores.memberships(cores.begin(core, 2, 5, now_ms=4501))
    assert answer.reason is m.Reason.LEADERSHIP_LOST
    assert "nothing was changed" in answer.message


def test_another_change_waits_while_a_new_voter_is_asked() -> None:
    core = with_observer()
    asked(core)
    removal = m.RemoveRaftVoterRequest(
        cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(1000)
    )
    answer = cores.membership(cores.ask(core, removal, now_ms=4501, token=8))
    assert answer.reason is m.Reason.PENDING_VOTER_CHANGE
