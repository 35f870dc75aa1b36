"""One call to one controller over real sockets: answers, and what is known where there is none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.client.controller_calls import (
    ControllerCalls,
    NoAnswerError,
    OutcomeUnknownError,
    QuorumUnavailableError,
    RedirectError,
    RequestRefusedError,
)
from quorate.controller.topics.messages import ListTopics
from quorate.raft import messages as m
from quorate.raft.messages import LeaderInfo
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId
from quorate.records.voters import Endpoint
from tests.integration.client.topics import REQUEST
from tests.integration.rpc.conftest import HOST, WAIT_S
from tests.integration.transports import chosen
from tests.ports import free_ports
from tests.unit.raft import cores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.integration.rpc.conftest import Served

REMOVAL = m.RemoveRaftVoterRequest(
    cluster_id=cores.CLUSTER, voter=cores.key(3), timeout_ms=Millis(0)
)
SHORT_S = 0.3


@pytest.fixture
async def calls() -> AsyncIterator[ControllerCalls]:
    opened = ControllerCalls(drain_s=1, transport=chosen())
    yield opened
    await opened.close()


async def test_what_cannot_have_been_sent_had_no_answer(calls: ControllerCalls) -> None:
    server = (HOST, free_ports(1)[0])
    with pytest.raises(NoAnswerError, match=r"^connection refused$"):
        await calls.write_to(server, REQUEST, WAIT_S)
    with pytest.raises(QuorumUnavailableError, match=f"tried {HOST}:{server[1]}: connection ref"):
        await calls.change_on(server, REMOVAL, WAIT_S)
    with pytest.raises(NoAnswerError, match=r"^connection refused$"):
        await calls.describe_from(server)
    assert await calls.try_describe_at(server) == "connection refused"
    assert await calls.try_api_versions_at(server, WAIT_S) == "connection refused"


async def test_a_change_that_was_sent_may_have_been_made(
    calls: ControllerCalls, served: Served
) -> None:
    assert not isinstance(await calls.try_api_versions_at(served.address, WAIT_S), str)
    with pytest.raises(OutcomeUnknownError, match=f"{HOST}:{served.port}: no answer in time"):
        await calls.write_to(served.address, REQUEST, SHORT_S)
    with pytest.raises(OutcomeUnknownError, match=f"{HOST}:{served.port}: no answer in time"):
        await calls.change_on(served.address, REMOVAL, SHORT_S)


async def test_who_leads_instead_is_told_with_the_epoch(
    calls: ControllerCalls, served: Served
) -> None:
    writing = asyncio.ensure_future(calls.write_to(served.address, REQUEST, WAIT_S))
    hint = LeaderInfo(NodeId(2), Epoch(5), (Endpoint("GRPC", HOST, 9),))
    not_here = ControllerApiError(ErrorCode.NOT_CONTROLLER, "not here", leader=hint)
    (await served.controller.asked())[1].set_exception(not_here)
    with pytest.raises(RedirectError, match="not here; it says that node 2 leads") as redirect:
        await writing
    assert (redirect.value.leader, redirect.value.epoch) == ((HOST, 9), 5)

    describing = asyncio.ensure_future(calls.describe_leader_at(served.address, WAIT_S))
    follower = m.DescribeQuorumResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(None, Epoch(6))
    )
    (await served.raft.asked()).answer.set_result(follower)
    with pytest.raises(RedirectError, match="knows no leader") as redirect:
        await describing
    assert (redirect.value.leader, redirect.value.epoch) == (None, 6)


async def test_a_read_that_no_server_would_take_is_refused_at_once(
    calls: ControllerCalls, served: Served
) -> None:
    with pytest.raises(RequestRefusedError, match="min_offset: -1 is negative") as refused:
        await calls.read_from(
            *(served.address, ListTopics(), WAIT_S),
            min_offset=-1,
            current=False,
            even_if_behind=False,
        )
    assert refused.value.error is ErrorCode.INVALID_REQUEST
    assert served.controller.reads == []


async def test_a_server_that_lacks_the_offset_sends_elsewhere(
    calls: ControllerCalls, served: Served
) -> None:
    late = ControllerApiError(ErrorCode.REQUEST_TIMED_OUT, "offset 8 is not committed here")
    served.controller.read_replies.append(late)
    with pytest.raises(RedirectError, match="offset 8 is not committed here"):
        await calls.read_from(
            *(served.address, ListTopics(), WAIT_S),
            min_offset=8,
            current=False,
            even_if_behind=False,
        )
