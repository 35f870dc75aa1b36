"""Servers that take a call and never answer it: the client finds another leader in that time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.client.controller_calls import OutcomeUnknownError
from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import ListTopics
from quorate.raft import messages as m
from quorate.raft.messages import LeaderInfo
from quorate.records.errors import ErrorCode
from quorate.records.ids import (
    ClusterId,
    Epoch,
    Millis,
    NodeId,
    ReplicaKey,
)
from quorate.records.voters import Endpoint
from tests.integration.client.mute import mute
from tests.integration.client.topics import CREATED, LISTED, REQUEST, TIMEOUT_MS
from tests.integration.rpc.conftest import HOST, WAIT_S
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from quorate.client.membership_client import MembershipClient
    from tests.integration.client.scripted import ScriptedQuorum
    from tests.integration.rpc.conftest import Served

# Time for a call to arrive; no other server is asked as long as it lasts.
IMPATIENT_S = 2.0


@pytest.fixture(autouse=True)
def _endless_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One server may take all the time: only a client that asks another in between succeeds."""
    monkeypatch.setattr("quorate.client.controller_client.ATTEMPT_TIMEOUT_S", 10 * WAIT_S)


def at(one: Served, epoch: int) -> ControllerApiError:
    """The error of a follower."""
    hint = LeaderInfo(NodeId(2), Epoch(epoch), (Endpoint("GRPC", HOST, one.port),))
    return ControllerApiError(ErrorCode.NOT_CONTROLLER, "not here", leader=hint)


def leads(one: Served, epoch: int) -> m.DescribeQuorumResponse:
    """The description of a quorum by its leader."""
    ways = (Endpoint("GRPC", HOST, one.port),)
    return m.DescribeQuorumResponse(
        error=ErrorCode.NONE, leader=m.LeaderInfo(NodeId(2), Epoch(epoch), ways)
    )


def follows(one: Served, epoch: int) -> m.DescribeQuorumResponse:
    """The description of a quorum by a follower."""
    ways = (Endpoint("GRPC", HOST, one.port),)
    leader = m.LeaderInfo(NodeId(1), Epoch(epoch), ways)
    return m.DescribeQuorumResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=leader)


async def test_a_description_comes_from_the_leader_while_another_server_stands_still(
    served: Served, another: Served
) -> None:
    servers = [served.address, another.address]
    async with ControllerClient(servers, timeout_ms=TIMEOUT_MS, transport=chosen()) as client:
        describing = asyncio.ensure_future(client.describe_quorum())
        await served.raft.asked()
        for _ in range(2):
            (await another.raft.asked()).answer.set_result(leads(another, 6))
        assert await describing == leads(another, 6)


@pytest.mark.parametrize("current", [True, False])
async def test_a_read_leaves_a_server_that_says_nothing_at_all(
    served: Served, *, current: bool
) -> None:
    served.controller.read_replies.append(LISTED)
    async with (
        mute() as silent,
        ControllerClient([silent, served.address], transport=chosen()) as client,
    ):
        reading = asyncio.ensure_future(client.read(ListTopics(), current=current))
        (await served.raft.asked()).answer.set_result(leads(served, 6))
        assert await reading == LISTED


async def test_a_write_at_a_leader_that_was_replaced_is_of_unknown_outcome_and_the_next_goes_on(
    served: Served, another: Served
) -> None:
    async with ControllerClient(
        [another.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        writing = asyncio.ensure_future(client.write(REQUEST))
        (await another.controller.asked())[1].set_exception(at(served, 5))
        await served.controller.asked()
        # As long as its followers take it for the leader it is waited for.
        (await another.raft.asked()).answer.set_result(follows(served, 5))
        (await another.raft.asked()).answer.set_result(leads(another, 6))
        said = f"{HOST}:{served.port}: no answer, and node 2 leads epoch 6 meanwhile"
        with pytest.raises(OutcomeUnknownError, match=said):
            await writing
        writing = asyncio.ensure_future(client.write(REQUEST))
        (await another.controller.asked())[1].set_result(CREATED)
        assert await writing == CREATED
    assert served.controller.writes.empty()


async def test_who_did_not_answer_is_not_asked_again_in_the_same_epoch(
    served: Served, another: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.client.unresponsive_servers.SILENCE_S", 10 * WAIT_S)
    servers = [served.address, another.address]
    async with ControllerClient(servers, timeout_ms=TIMEOUT_MS, transport=chosen()) as client:
        # Once it is connected, what it is asked is there within the shortest time.
        assert not isinstance(await client.try_api_versions_at(served.address, WAIT_S), str)
        # The first server of all, of which nothing is known.
        with monkeypatch.context() as impatient:
            impatient.setattr("quorate.client.controller_client.ATTEMPT_TIMEOUT_S", IMPATIENT_S)
            impatient.setattr("quorate.client.unresponsive_servers.HEDGE_AFTER_S", 10 * WAIT_S)
            with pytest.raises(OutcomeUnknownError, match="no answer in time"):
                await client.write(REQUEST)
        await served.controller.asked()
        writing = asyncio.ensure_future(client.write(REQUEST))
        (await another.controller.asked())[1].set_exception(at(served, 5))
        (await another.controller.asked())[1].set_result(CREATED)
        assert await writing == CREATED
        assert served.controller.writes.empty()
        # In a later epoch it leads again.
        writing = asyncio.ensure_future(client.write(REQUEST))
        (await another.controller.asked())[1].set_exception(at(served, 6))
        (await served.controller.asked())[1].set_result(CREATED)
        assert await writing == CREATED


async def test_a_slow_leader_is_waited_for_while_it_leads(served: Served, another: Served) -> None:
    async with ControllerClient(
        [another.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        writing = asyncio.ensure_future(client.write(REQUEST))
        (await another.controller.asked())[1].set_exception(at(served, 5))
        _, reply = await served.controller.asked()
        (await another.raft.asked()).answer.set_result(follows(served, 5))
        reply.set_result(CREATED)
        assert await writing == CREATED


async def test_a_change_of_the_voters_goes_on_at_the_next_leader(
    quorum: ScriptedQuorum, membership: MembershipClient
) -> None:
    async def stands_still(_: m.MembershipRequest) -> m.MembershipResponse:
        quorum.lead(2)
        await asyncio.Event().wait()
        raise AssertionError

    quorum.answers.append(stands_still)
    removal = m.RemoveRaftVoterRequest(
        cluster_id=ClusterId(""), voter=ReplicaKey(NodeId(3)), timeout_ms=Millis(0)
    )
    deadline = asyncio.get_running_loop().time() + WAIT_S
    done = await membership.change(removal, deadline)
    assert done.leader.leader_id == 2
    assert [node for node, _ in quorum.asked] == [1, 2]
    assert sorted(quorum.voters) == [1, 2]
