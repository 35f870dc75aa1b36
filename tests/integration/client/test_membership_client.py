"""Changes over real sockets: leaders change under them, answers get lost, nothing is done twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quorate.api.admin_api import (
    AMBIGUOUS_OBSERVER,
    NO_LEADER,
    OBSERVER_NOT_FOUND,
    OUTCOME_UNKNOWN,
    AdminError,
)
from quorate.raft import messages as m
from quorate.raft.last_message import Heard
from quorate.raft.messages import Reason
from quorate.records.errors import ErrorCode
from quorate.records.field_limits import INT32_MAX
from quorate.records.ids import ClusterId, Epoch, Millis, NodeId, ReplicaKey
from quorate.records.voters import Voter
from tests.integration.client.scripted import observer, refusal
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.client.membership_client import MembershipClient
    from tests.integration.client.scripted import ScriptedQuorum

ANY = ClusterId("")
WAIT_S = 60.0
SHORT_S = 1.0
# A setting in milliseconds may have ten digits.
LONG_S = 9_876_543.21


def within(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(NodeId(node_id))


def add(node_id: int) -> m.AddRaftVoterRequest:
    return m.AddRaftVoterRequest(
        cluster_id=ANY, voter=key(node_id), listeners=(), timeout_ms=Millis(0)
    )


def remove(node_id: int) -> m.RemoveRaftVoterRequest:
    return m.RemoveRaftVoterRequest(cluster_id=ANY, voter=key(node_id), timeout_ms=Millis(0))


def transfer(node_id: int) -> m.TransferLeadershipRequest:
    return m.TransferLeadershipRequest(ANY, key(node_id))


def changes(quorum: ScriptedQuorum) -> list[str]:
    return [f"{type(request).__name__} at {node}" for node, request in quorum.asked]


async def test_a_time_longer_than_the_field_holds_is_told_as_what_it_holds(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.observers = (observer(4),)
    await membership.change(add(4), within(LONG_S))
    (asked,) = quorum.asked
    assert isinstance(asked[1], m.AddRaftVoterRequest)
    assert asked[1].timeout_ms == INT32_MAX


async def test_what_is_left_out_is_looked_up(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.observers = (observer(4),)
    done = await membership.change(add(4), within(WAIT_S))
    (asked,) = quorum.asked
    assert isinstance(asked[1], m.AddRaftVoterRequest)
    assert 0 < asked[1].timeout_ms <= WAIT_S * 1000
    assert (asked[1].cluster_id, asked[1].voter) == (cores.CLUSTER, cores.key(4))
    assert asked[1].listeners == cores.endpoints(4)
    assert asked[1].ack_when_committed
    assert done.leader.leader_id == 1
    await membership.change(remove(4), within(WAIT_S))
    assert sorted(quorum.voters) == [1, 2, 3]


async def test_a_follower_names_the_leader(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.lead(3)
    await membership.change(remove(2), within(WAIT_S))
    assert changes(quorum) == ["RemoveRaftVoterRequest at 3"]


async def test_a_leader_that_changes_during_a_call_is_followed(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    async def resign(_: m.MembershipRequest) -> m.MembershipResponse:
        quorum.lead(2)
        return refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, Reason.NOT_LEADER)

    quorum.answers.append(resign)
    done = await membership.change(remove(3), within(WAIT_S))
    assert changes(quorum) == ["RemoveRaftVoterRequest at 1", "RemoveRaftVoterRequest at 2"]
    assert done.leader.leader_id == 2


async def test_the_controller_beside_it_need_not_run(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    await membership.describe(within(WAIT_S))
    await quorum.stop(1)
    quorum.lead(3)
    await membership.change(remove(1), within(WAIT_S))
    assert changes(quorum) == ["RemoveRaftVoterRequest at 3"]


@pytest.mark.parametrize("reason", [Reason.PENDING_VOTER_CHANGE, Reason.HIGH_WATERMARK_UNKNOWN])
async def test_what_passes_by_itself_is_waited_for(
    reason: Reason, quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.answers.extend([refusal(ErrorCode.REQUEST_TIMED_OUT, reason)] * 3)
    await membership.change(remove(3), within(WAIT_S))
    assert len(quorum.asked) == 4


async def test_what_does_not_pass_in_time_is_told(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    pending = refusal(ErrorCode.REQUEST_TIMED_OUT, Reason.PENDING_VOTER_CHANGE, "add 4")
    quorum.answers.extend([pending] * 1000)
    # Connections are there before the time begins to run.
    await membership.describe(within(WAIT_S))
    with pytest.raises(AdminError, match="add 4") as error:
        await membership.change(remove(3), within(SHORT_S))
    assert error.value.reason == Reason.PENDING_VOTER_CHANGE.value


async def test_what_passes_by_itself_is_not_asked_for_with_hardly_any_time_left(
    quorum: ScriptedQuorum, membership: MembershipClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outcome would be unknown then; the leader's reason is what one needs."""
    monkeypatch.setattr("quorate.client.membership_client.ATTEMPT_MIN_S", WAIT_S)
    pending = refusal(ErrorCode.REQUEST_TIMED_OUT, Reason.PENDING_VOTER_CHANGE, "add 4")
    quorum.answers.append(pending)
    with pytest.raises(AdminError, match="add 4") as error:
        await membership.change(remove(3), within(WAIT_S))
    assert error.value.reason == Reason.PENDING_VOTER_CHANGE.value
    assert len(quorum.asked) == 1


async def test_a_lost_answer_of_a_change_that_was_made_is_success(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    async def die_after(request: m.MembershipRequest) -> m.MembershipResponse:
        answer = quorum.perform(request)
        quorum.lead(2)
        await quorum.stop(1)
        return answer

    quorum.answers.append(die_after)
    done = await membership.change(remove(3), within(WAIT_S))
    assert changes(quorum) == ["RemoveRaftVoterRequest at 1"]
    assert done.leader.leader_id == 2


async def test_a_lost_answer_of_a_change_that_was_not_made_is_asked_again(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    async def die(_: m.MembershipRequest) -> m.MembershipResponse:
        quorum.lead(2)
        await quorum.stop(1)
        return refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)

    quorum.answers.append(die)
    await membership.describe(within(WAIT_S))
    await membership.change(remove(3), within(WAIT_S))
    assert changes(quorum) == ["RemoveRaftVoterRequest at 1", "RemoveRaftVoterRequest at 2"]


@pytest.mark.parametrize("reason", [Reason.LEADERSHIP_LOST, Reason.NOT_COMMITTED_IN_TIME])
async def test_an_open_change_is_awaited_and_not_asked_for_twice(
    reason: Reason, quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    async def append(request: m.MembershipRequest) -> m.MembershipResponse:
        quorum.perform(request)
        quorum.pending = m.VoterChange(m.ChangeKind.REMOVE, Voter(cores.key(3)))
        asyncio.get_running_loop().call_later(0.2, commit)
        return refusal(ErrorCode.REQUEST_TIMED_OUT, reason)

    def commit() -> None:
        quorum.pending = None

    quorum.answers.append(append)
    await membership.change(remove(3), within(WAIT_S))
    assert quorum.pending is None
    assert len(quorum.asked) == 1


async def test_an_open_change_that_stays_open_is_told_as_such(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    async def append(request: m.MembershipRequest) -> m.MembershipResponse:
        quorum.perform(request)
        quorum.high_watermark = None
        return refusal(ErrorCode.REQUEST_TIMED_OUT, Reason.NOT_COMMITTED_IN_TIME, offset="7")

    quorum.answers.append(append)
    await membership.describe(within(WAIT_S))
    with pytest.raises(AdminError) as error:
        await membership.change(remove(3), within(SHORT_S))
    assert error.value.reason == Reason.NOT_COMMITTED_IN_TIME.value
    assert error.value.metadata["offset"] == "7"


async def test_an_unknown_outcome_is_not_hidden_by_what_comes_after(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    async def vanish(_: m.MembershipRequest) -> m.MembershipResponse:
        quorum.lead(None)
        return refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, Reason.LEADERSHIP_LOST, "lost it")

    quorum.answers.append(vanish)
    await membership.describe(within(WAIT_S))
    with pytest.raises(AdminError, match=r"may have been made.*lost it.*knows no leader") as error:
        # Long enough for one more look after the answer, however slow the first one was.
        await membership.change(remove(3), within(3 * SHORT_S))
    assert error.value.reason == OUTCOME_UNKNOWN


async def test_a_change_made_between_two_looks_is_success(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    async def late(request: m.MembershipRequest) -> m.MembershipResponse:
        quorum.perform(request)
        return refusal(ErrorCode.VOTER_NOT_FOUND, Reason.VOTER_NOT_FOUND)

    quorum.answers.append(refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, Reason.LEADERSHIP_LOST))
    quorum.answers.append(late)
    await membership.change(remove(3), within(WAIT_S))
    assert len(quorum.asked) == 2


async def test_a_refusal_after_an_unknown_outcome_is_final_when_nothing_was_made(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.observers = (observer(4),)
    quorum.answers.append(refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, Reason.LEADERSHIP_LOST))
    quorum.answers.append(refusal(ErrorCode.DUPLICATE_VOTER, Reason.DUPLICATE_VOTER))
    with pytest.raises(AdminError) as error:
        await membership.change(add(4), within(WAIT_S))
    assert error.value.reason == Reason.DUPLICATE_VOTER.value


async def test_leadership_is_transferred_once_the_other_leads(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    done = await membership.change(transfer(3), within(WAIT_S))
    assert done.leader == m.LeaderInfo(NodeId(3), Epoch(6), quorum.endpoints(3))
    again = await membership.change(transfer(3), within(WAIT_S))
    assert again.leader == done.leader


async def test_a_hand_over_to_somebody_else_is_told(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    async def other(_: m.MembershipRequest) -> m.MembershipResponse:
        return quorum.perform(m.TransferLeadershipRequest(ANY, cores.key(2)))

    quorum.answers.append(other)
    with pytest.raises(AdminError, match="node 2 leads epoch 6 now") as error:
        await membership.change(transfer(3), within(WAIT_S))
    assert error.value.reason == Reason.NO_HAND_OVER.value


async def test_an_update_is_awaited_until_it_is_committed(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    listeners = quorum.endpoints(2)
    update = m.UpdateRaftVoterRequest(
        cluster_id=ANY,
        current_leader_epoch=Epoch(0),
        voter=key(2),
        listeners=listeners,
        kraft_version_min=0,
        kraft_version_max=1,
    )
    quorum.answers.append(refusal(ErrorCode.FENCED_LEADER_EPOCH, Reason.STALE_EPOCH))
    await membership.change(update, within(WAIT_S))
    asked = quorum.asked[-1][1]
    assert isinstance(asked, m.UpdateRaftVoterRequest)
    assert asked.current_leader_epoch == 5
    assert len(quorum.asked) == 2


async def test_an_epoch_that_the_caller_names_is_not_replaced(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    update = m.UpdateRaftVoterRequest(
        cluster_id=ANY,
        current_leader_epoch=Epoch(4),
        voter=key(2),
        listeners=quorum.endpoints(2),
        kraft_version_min=0,
        kraft_version_max=1,
    )
    quorum.answers.append(refusal(ErrorCode.FENCED_LEADER_EPOCH, Reason.STALE_EPOCH))
    with pytest.raises(AdminError) as error:
        await membership.change(update, within(WAIT_S))
    assert error.value.reason == Reason.STALE_EPOCH.value


async def test_observers_are_told_apart(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.observers = (observer(4), observer(4, directory=9))
    with pytest.raises(AdminError, match="name the directory id") as error:
        await membership.change(add(4), within(WAIT_S))
    assert error.value.reason == AMBIGUOUS_OBSERVER
    with pytest.raises(AdminError, match="node 5 does not fetch") as error:
        await membership.change(add(5), within(WAIT_S))
    assert error.value.reason == OBSERVER_NOT_FOUND
    with pytest.raises(AdminError, match="6 is no voter: the voters are 1:") as error:
        await membership.change(remove(6), within(WAIT_S))
    assert error.value.reason == Reason.VOTER_NOT_FOUND.value
    assert quorum.asked == []


async def test_what_is_foreseen_changes_nothing(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.observers = (observer(4),)
    whole, refused = await membership.predict(add(4), within(WAIT_S))
    assert isinstance(whole, m.AddRaftVoterRequest)
    assert (whole.voter, refused) == (cores.key(4), None)
    quorum.pending = m.VoterChange(m.ChangeKind.ADD, Voter(cores.key(4)))
    _, refused = await membership.predict(remove(3), within(WAIT_S))
    assert refused is not None
    assert refused.reason == Reason.PENDING_VOTER_CHANGE.value
    assert quorum.asked == []


async def test_without_any_leader_it_is_told_who_led_and_who_was_heard(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    await membership.describe(within(WAIT_S))
    quorum.lead(None)
    quorum.last_leader = m.LeaderInfo(NodeId(2), Epoch(5))
    quorum.heard = (Heard(NodeId(2), Millis(4_000)), Heard(NodeId(3), Millis(9_900)))
    with pytest.raises(AdminError) as error:
        await membership.describe(within(SHORT_S))
    said = error.value
    assert said.reason == NO_LEADER
    assert "last one that it knew is node 2 of epoch 5" in str(said)
    assert "node 2 6000 ms ago, node 3 100 ms ago" in str(said)
    host, port = quorum.addresses[1]
    assert said.metadata == {
        "asked": f"{host}:{port}",
        "epoch": "6",
        "last_leader_id": "2",
        "last_leader_epoch": "5",
        "heard_2_ms_ago": "6000",
        "heard_3_ms_ago": "100",
    }


async def test_without_any_answer_it_is_told_who_was_asked(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    await quorum.stop(1)
    with pytest.raises(AdminError, match=r"no controller answers: .*connection refused") as error:
        await membership.describe(within(SHORT_S))
    assert error.value.reason == NO_LEADER
