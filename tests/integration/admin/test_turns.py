"""PrepareStop of a voter that comes back: it waits for its turn, and for nothing else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from quorate.admin.statefulset import Outlook, StopIntent
from quorate.raft import messages as m
from quorate.raft.messages import Reason
from quorate.records.errors import ErrorCode
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from quorate.rpc.raft.servicer import RaftServicer
from tests.integration.admin.test_prepare_stop import RESTART, names
from tests.integration.client.conftest import sidecar
from tests.integration.client.scripted import refusal

if TYPE_CHECKING:
    from quorate.api.admin_api import AdminError
    from quorate.client.membership_client import MembershipClient
    from tests.integration.client.conftest import Beside
    from tests.integration.client.scripted import ScriptedQuorum

AWAY = refusal(ErrorCode.REQUEST_TIMED_OUT, Reason.VOTERS_AWAY, "voter 3 is away", away="3")
# A quarter of it is for the leadership transfer, also if others keep the machine busy.
SHORT = pb.PrepareStopRequest(timeout_ms=6_000)


class Pod:
    """A pod with a scripted StatefulSet; the last answer of the script holds."""

    def __init__(self, *fates: StopIntent | None, end: int | None = None) -> None:
        self.fates = list(fates)
        self.end = end
        self.looks = 0

    async def read_cached(self) -> Outlook | None:
        self.looks += 1
        fate = self.fates.pop(0) if len(self.fates) > 1 else self.fates[0]
        return None if fate is None else Outlook(fate, self.end)


class Told:
    """Records the Events of a stop."""

    def __init__(self) -> None:
        self.not_removed: list[str] = []
        self.not_spared: list[str] = []

    async def tell_not_removed(self, error: AdminError) -> None:
        self.not_removed.append(error.reason)

    async def tell_not_spared(self, why: str) -> None:
        self.not_spared.append(why)


async def test_it_waits_until_it_can_be_spared(quorum: ScriptedQuorum, beside: Beside) -> None:
    quorum.lead(2)
    gate = asyncio.Event()

    async def not_yet(request: m.MembershipRequest) -> m.MembershipResponse:
        gate.set()
        return AWAY

    quorum.answers.extend([not_yet, AWAY, AWAY])
    stopping = asyncio.ensure_future(beside.stub.PrepareStop(RESTART))
    await gate.wait()
    assert not stopping.done()
    answer = await stopping
    assert (answer.has_leave, answer.without_leave) == (True, "")
    assert names(quorum) == ["TakeLeave"] * 4


async def test_without_leave_it_stops_when_its_time_is_up_and_hands_over_before(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    async def perform(request: m.MembershipRequest) -> m.MembershipResponse:
        if isinstance(request, m.TakeLeaveRequest):
            quorum.answers.append(perform)
            return AWAY
        return quorum.perform(request)

    quorum.answers.append(perform)
    answer = await beside.stub.PrepareStop(SHORT)
    assert (answer.has_leave, answer.handed_over) == (False, True)
    assert answer.without_leave == "its time is up: voter 3 is away"
    asked = names(quorum)
    assert asked.count("TakeLeave") > 1
    assert asked[-1] == "TransferLeadership"


async def test_a_last_try_that_is_cut_short_does_not_hide_why_leave_was_refused(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    quorum.lead(2)
    silence = asyncio.Event()

    async def silent(request: m.MembershipRequest) -> m.MembershipResponse:
        await silence.wait()
        return AWAY

    # Its turn takes less time than one try: the second one is always cut short.
    quorum.answers.extend([AWAY, silent])
    answer = await beside.stub.PrepareStop(pb.PrepareStopRequest(timeout_ms=2_000))
    silence.set()
    assert answer.without_leave == "its time is up: voter 3 is away"
    assert names(quorum) == ["TakeLeave"] * 2


async def test_an_old_controller_lets_it_stop_as_before(
    quorum: ScriptedQuorum, beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(
        self: RaftServicer,
        request: object,
        context: grpc.aio.ServicerContext[object, object],
    ) -> None:
        del self, request
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")

    monkeypatch.setattr(RaftServicer, "TakeLeave", unknown, raising=False)
    await quorum.stop(1)
    await quorum.start(1)
    answer = await beside.stub.PrepareStop(RESTART)
    assert (answer.handed_over, answer.has_leave) == (True, False)
    assert answer.without_leave == "leave is refused (INVALID_REQUEST): Method not found!"
    assert names(quorum) == ["TransferLeadership"]


async def test_of_two_voters_none_waits_for_the_other(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    quorum.lead(2)
    quorum.answers.append(refusal(ErrorCode.INVALID_REQUEST, Reason.TOO_FEW_VOTERS, "two voters"))
    answer = await beside.stub.PrepareStop(RESTART)
    assert answer.without_leave == "leave is refused (TOO_FEW_VOTERS): two voters"
    assert names(quorum) == ["TakeLeave"]


async def test_who_is_scaled_away_while_it_waits_removes_itself(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.lead(2)
    quorum.answers.append(AWAY)
    pod = Pod(StopIntent.RETURNS, StopIntent.SCALED_AWAY)
    async with sidecar(membership, pod=pod) as beside:  # type: ignore[arg-type]
        answer = await beside.stub.PrepareStop(RESTART)
    assert (answer.removed, answer.is_voter, answer.without_leave) == (True, False, "")
    assert names(quorum) == ["TakeLeave", "RemoveRaftVoter"]
    removal = quorum.asked[-1][1]
    assert isinstance(removal, m.RemoveRaftVoterRequest)
    assert removal.scaled_away


async def test_who_is_wanted_again_before_its_removal_stays_a_voter(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.lead(2)
    quorum.answers.append(refusal(ErrorCode.REQUEST_TIMED_OUT, Reason.NO_LIVE_MAJORITY))
    pod = Pod(StopIntent.SCALED_AWAY, StopIntent.RETURNS)
    async with sidecar(membership, pod=pod) as beside:  # type: ignore[arg-type]
        answer = await beside.stub.PrepareStop(RESTART)
    assert (answer.removed, answer.is_voter, answer.has_leave) == (False, True, True)
    assert names(quorum) == ["RemoveRaftVoter", "TakeLeave"]


@pytest.mark.parametrize("before", [(), (StopIntent.RETURNS,)])
async def test_where_all_go_nobody_waits_and_nobody_is_removed(
    quorum: ScriptedQuorum, membership: MembershipClient, before: tuple[StopIntent, ...]
) -> None:
    quorum.answers.append(AWAY)
    pod = Pod(*before, StopIntent.ALL_GO)
    async with sidecar(membership, pod=pod) as beside:  # type: ignore[arg-type]
        answer = await beside.stub.PrepareStop(RESTART)
    assert answer == pb.PrepareStopResponse(
        current_leader=answer.current_leader, without_leave="all pods of its StatefulSet stop"
    )
    assert names(quorum) == ["TakeLeave"] * len(before)


async def test_what_cannot_be_known_is_a_restart_that_waits_for_its_turn(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.lead(2)
    quorum.answers.append(AWAY)
    pod = Pod(None)
    async with sidecar(membership, pod=pod) as beside:  # type: ignore[arg-type]
        answer = await beside.stub.PrepareStop(RESTART)
    assert (answer.removed, answer.has_leave) == (False, True)
    assert pod.looks > 1


async def test_of_two_voters_one_that_may_be_scaled_away_waits_until_that_is_known(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.lead(2)
    quorum.answers.append(refusal(ErrorCode.INVALID_REQUEST, Reason.TOO_FEW_VOTERS, "two voters"))
    pod = Pod(None, StopIntent.SCALED_AWAY)
    async with sidecar(membership, pod=pod) as beside:  # type: ignore[arg-type]
        answer = await beside.stub.PrepareStop(RESTART)
    assert (answer.removed, answer.is_voter, answer.without_leave) == (True, False, "")
    assert names(quorum) == ["TakeLeave", "RemoveRaftVoter"]


async def test_what_was_known_holds_while_nothing_can_be_known(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.lead(2)
    quorum.answers.append(refusal(ErrorCode.REQUEST_TIMED_OUT, Reason.NO_LIVE_MAJORITY))
    pod = Pod(StopIntent.SCALED_AWAY, None)
    async with sidecar(membership, pod=pod) as beside:  # type: ignore[arg-type]
        answer = await beside.stub.PrepareStop(RESTART)
    assert (answer.removed, answer.is_voter) == (True, False)


async def test_nobody_leads_for_a_moment_and_the_turn_is_kept(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    quorum.lead(2)

    async def resign(request: m.MembershipRequest) -> m.MembershipResponse:
        quorum.lead(None)
        asyncio.get_running_loop().call_later(0.5, quorum.lead, 3)
        return AWAY

    quorum.answers.append(resign)
    answer = await beside.stub.PrepareStop(RESTART)
    assert (answer.has_leave, answer.current_leader.leader_id) == (True, 3)


async def test_the_silent_that_are_scaled_away_as_well_are_removed_first(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.lead(2)
    # Nodes from 1 on are scaled down: 2 leads and has a hook of its own, 3 is on a dead node.
    quorum.silences[3] = 9_000
    pod = Pod(StopIntent.SCALED_AWAY, end=1)
    async with sidecar(membership, pod=pod) as beside:  # type: ignore[arg-type]
        answer = await beside.stub.PrepareStop(RESTART)
    assert (answer.removed, answer.is_voter) == (True, False)
    removals = [r for _, r in quorum.asked if isinstance(r, m.RemoveRaftVoterRequest)]
    assert [removal.voter.node_id for removal in removals] == [3, 1]
    assert all(removal.scaled_away for removal in removals)


@pytest.mark.parametrize("leave", [False, True])
async def test_a_removal_that_fails_is_told_unless_a_person_asked_for_it(
    quorum: ScriptedQuorum, membership: MembershipClient, *, leave: bool
) -> None:
    quorum.lead(2)
    quorum.answers.append(refusal(ErrorCode.INVALID_REQUEST, Reason.LAST_VOTER))
    told, pod = Told(), Pod(StopIntent.SCALED_AWAY)
    async with sidecar(membership, pod=pod, events=told) as beside:  # type: ignore[arg-type]
        with pytest.raises(grpc.aio.AioRpcError):
            await beside.stub.PrepareStop(pb.PrepareStopRequest(leave=leave))
    assert told.not_removed == ([] if leave else ["LAST_VOTER"])


async def test_a_stop_that_the_quorum_cannot_bear_is_told(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.lead(2)

    async def away(request: m.MembershipRequest) -> m.MembershipResponse:
        del request
        quorum.answers.append(away)
        return AWAY

    quorum.answers.append(away)
    told, pod = Told(), Pod(StopIntent.RETURNS)
    async with sidecar(membership, pod=pod, events=told) as beside:  # type: ignore[arg-type]
        answer = await beside.stub.PrepareStop(SHORT)
    assert not answer.has_leave
    assert told.not_spared == ["its time is up: voter 3 is away"]


async def test_a_stop_that_is_ordinary_is_not_told(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    quorum.lead(2)
    # It waits for its turn and gets it; a voter of two is never spared; all go.
    quorum.answers.append(AWAY)
    quorum.answers.append(m.MembershipResponse(ErrorCode.NONE, "", m.NOTHING_KNOWN))
    quorum.answers.append(refusal(ErrorCode.INVALID_REQUEST, Reason.TOO_FEW_VOTERS, "two voters"))
    told, pod = Told(), Pod(StopIntent.RETURNS)
    async with sidecar(membership, pod=pod, events=told) as beside:  # type: ignore[arg-type]
        await beside.stub.PrepareStop(RESTART)
        await beside.stub.PrepareStop(RESTART)
        pod.fates = [StopIntent.ALL_GO]
        await beside.stub.PrepareStop(RESTART)
    assert told.not_spared == told.not_removed == []
    assert not quorum.answers
