"""The client over real sockets: it follows the leader, ends in time, says what it tried."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.client.controller_calls import (
    ApiVersions,
    NoAnswerError,
    OutcomeUnknownError,
    QuorumUnavailableError,
    RedirectError,
    RequestRefusedError,
)
from quorate.client.controller_client import ControllerClient
from quorate.client.pagination import LIMIT
from quorate.controller.topics.messages import (
    Cursor,
    DescribedPartition,
    DescribedTopic,
    DescribeTopics,
    DescribeTopicsReply,
    ListTopics,
)
from quorate.raft import messages as m
from quorate.raft.messages import LeaderInfo
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId, Offset
from quorate.records.voters import Endpoint
from tests.integration.client.topics import CREATED, LISTED, REQUEST, TIMEOUT_MS, TOPIC_ID
from tests.integration.rpc.conftest import HOST, WAIT_S
from tests.integration.transports import EACH, chosen
from tests.ports import free_ports
from tests.unit.raft import cores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from quorate.client.controller_calls import Address
    from quorate.controller.request_types import (
        ReadReply,
        ReadRequestOf,
        WriteReply,
        WriteRequestOf,
    )
    from tests.integration.rpc.conftest import Served

pytestmark = EACH

SHORT_MS = 300
# Ten digits, as a setting may have.
LONG_MS = 9_876_543_210
# Time for each server to answer once, on a busy machine, too.
ROUND_MS = 2_000


def elsewhere(port: int | None) -> ControllerApiError:
    hint = (
        LeaderInfo(None, Epoch(5))
        if port is None
        else LeaderInfo(NodeId(2), Epoch(5), (Endpoint("GRPC", HOST, port),))
    )
    return ControllerApiError(ErrorCode.NOT_CONTROLLER, "not here", leader=hint)


async def test_a_write_follows_the_leader_and_stays_with_it(
    served: Served, another: Served
) -> None:
    async with ControllerClient(
        [served.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        writing = asyncio.ensure_future(client.write(REQUEST))
        (await served.controller.asked())[1].set_exception(elsewhere(another.port))
        (await another.controller.asked())[1].set_result(CREATED)
        assert await writing == CREATED
        writing = asyncio.ensure_future(client.write(REQUEST))
        (await another.controller.asked())[1].set_result(CREATED)
        assert await writing == CREATED


async def test_a_leader_that_was_asked_by_chance_is_asked_again(
    served: Served, another: Served
) -> None:
    servers = [served.address, another.address]
    async with ControllerClient(servers, timeout_ms=TIMEOUT_MS, transport=chosen()) as client:
        for _ in range(3):
            writing = asyncio.ensure_future(client.write(REQUEST))
            (await served.controller.asked())[1].set_result(CREATED)
            assert await writing == CREATED


async def test_a_server_that_is_down_is_passed_over(served: Served) -> None:
    servers = [(HOST, free_ports(1)[0]), served.address]
    async with ControllerClient(servers, timeout_ms=TIMEOUT_MS, transport=chosen()) as client:
        writing = asyncio.ensure_future(client.write(REQUEST))
        (await served.controller.asked())[1].set_result(CREATED)
        assert await writing == CREATED


async def test_an_unknown_outcome_is_not_tried_again(served: Served) -> None:
    async with ControllerClient(
        [served.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        writing = asyncio.ensure_future(client.write(REQUEST))
        (await served.controller.asked())[1].set_exception(
            ControllerApiError(ErrorCode.NOT_CONTROLLER, "it stopped leading", outcome_unknown=True)
        )
        with pytest.raises(OutcomeUnknownError, match="it stopped leading"):
            await writing
    assert served.controller.writes.empty()


async def test_a_write_without_an_answer_is_of_unknown_outcome(served: Served) -> None:
    async with ControllerClient(
        [served.address], timeout_ms=SHORT_MS, transport=chosen()
    ) as client:
        with pytest.raises(OutcomeUnknownError, match=f"{HOST}:{served.port}: no answer in time"):
            await client.write(REQUEST)


async def test_a_refused_request_is_the_answer(served: Served) -> None:
    async with ControllerClient(
        [served.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        writing = asyncio.ensure_future(client.write(REQUEST))
        (await served.controller.asked())[1].set_exception(
            ControllerApiError(ErrorCode.POLICY_VIOLATION, "too many")
        )
        with pytest.raises(RequestRefusedError, match="POLICY_VIOLATION: too many") as refused:
            await writing
        assert refused.value.error is ErrorCode.POLICY_VIOLATION


async def test_nobody_leads_within_the_time_and_all_answers_are_told(
    served: Served, another: Served
) -> None:
    down = (HOST, free_ports(1)[0])
    for one in (served, another):
        one.controller.read_replies.extend(elsewhere(None) for _ in range(1000))
    servers = [served.address, another.address, down]
    async with ControllerClient(servers, timeout_ms=ROUND_MS, transport=chosen()) as client:
        with pytest.raises(QuorumUnavailableError) as error:
            await client.read(ListTopics(), current=True)
    said = str(error.value)
    assert said.startswith("no answer within 2 s; tried ")
    for one in (served, another):
        assert f"{HOST}:{one.port}: not here; it knows no leader (epoch 5)" in said
    assert f"{HOST}:{down[1]}: connection refused" in said


async def test_a_read_may_be_pinned(served: Served, another: Served) -> None:
    another.controller.read_replies.append(LISTED)
    async with ControllerClient(
        [served.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        reply = await client.read(ListTopics(), min_offset=8, controller=another.address)
    assert reply == LISTED
    assert another.controller.reads == [(ListTopics(None, LIMIT), 8, False)]
    assert served.controller.reads == []


async def test_a_pinned_read_may_have_more_time_than_its_field_holds(served: Served) -> None:
    served.controller.read_replies.append(LISTED)
    async with ControllerClient([served.address], timeout_ms=LONG_MS, transport=chosen()) as client:
        assert await client.read(ListTopics(), controller=served.address) == LISTED


async def test_a_pinned_server_that_is_down_is_named(served: Served) -> None:
    port = free_ports(1)[0]
    async with ControllerClient(
        [served.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        with pytest.raises(QuorumUnavailableError, match=f"tried {HOST}:{port}: connection ref"):
            await client.read(ListTopics(), controller=(HOST, port))


async def test_describe_comes_from_the_leader(served: Served, another: Served) -> None:
    ways = (Endpoint("GRPC", HOST, another.port),)
    follower = m.DescribeQuorumResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(NodeId(2), Epoch(5), ways)
    )
    leader = m.DescribeQuorumResponse(
        error=ErrorCode.NONE,
        leader=m.LeaderInfo(NodeId(2), Epoch(5), ways),
        high_watermark=Offset(7),
        voters=(
            m.ReplicaState(
                key=cores.key(2),
                log_end_offset=Offset(8),
                last_fetch_ms=None,
                last_caught_up_ms=None,
            ),
        ),
    )
    async with ControllerClient(
        [served.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        describing = asyncio.ensure_future(client.describe_quorum())
        (await served.raft.asked()).answer.set_result(follower)
        (await another.raft.asked()).answer.set_result(leader)
        assert await describing == leader
        describing_one = asyncio.ensure_future(client.try_describe_at(served.address))
        (await served.raft.asked()).answer.set_result(follower)
        assert await describing_one == follower
        assert await client.try_describe_at((HOST, free_ports(1)[0])) == "connection refused"


async def test_versions_say_who_answers(served: Served) -> None:
    async with ControllerClient(
        [served.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        features = (("kraft.version", 0, 1),)
        assert await client.api_versions() == ApiVersions(
            *(cores.CLUSTER, 1, "9", features), cores.key(1).directory_id
        )


def test_there_must_be_a_server() -> None:
    with pytest.raises(ValueError, match="give at least one HOST:PORT"):
        ControllerClient([])


async def test_a_server_that_lacks_the_offset_says_so_and_another_is_asked(
    served: Served, another: Served
) -> None:
    late = ControllerApiError(ErrorCode.REQUEST_TIMED_OUT, "offset 8 is not committed here")
    served.controller.read_replies.append(late)
    another.controller.read_replies.append(LISTED)
    servers = [served.address, another.address]
    async with ControllerClient(servers, timeout_ms=TIMEOUT_MS, transport=chosen()) as client:
        assert await client.read(ListTopics(), min_offset=8) == LISTED
        served.controller.read_replies.append(late)
        with pytest.raises(QuorumUnavailableError, match="offset 8 is not committed here"):
            await client.read(ListTopics(), min_offset=8, controller=served.address)


async def test_pages_are_followed_and_never_go_back(served: Served) -> None:
    partition = DescribedPartition(0, 1, 0, 0, (1,), (1,))

    def page(name: str, offset: int, following: Cursor | None) -> DescribeTopicsReply:
        topic = DescribedTopic(name, topic_id=TOPIC_ID, partitions=(partition,))
        return DescribeTopicsReply(Offset(offset), (topic,), following)

    served.controller.read_replies += [page("a", 7, Cursor("b")), page("b", 9, None)]
    async with ControllerClient(
        [served.address], timeout_ms=int(WAIT_S * 1000), transport=chosen()
    ) as client:
        reply = await client.read(DescribeTopics())
    assert isinstance(reply, DescribeTopicsReply)
    assert (reply.offset, [topic.name for topic in reply.topics]) == (7, ["a", "b"])
    assert served.controller.reads == [
        (DescribeTopics((), None, LIMIT), 0, False),
        (DescribeTopics((), Cursor("b"), LIMIT), 7, False),
    ]


async def test_pages_may_be_had_one_by_one(served: Served) -> None:
    topic = DescribedTopic("a", topic_id=TOPIC_ID)
    first = DescribeTopicsReply(Offset(7), (topic,), Cursor("a", 3))
    last = DescribeTopicsReply(Offset(9), (topic,), None)
    served.controller.read_replies += [first, last]
    async with ControllerClient(
        [served.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        found = [page async for page in client.read_pages(DescribeTopics(), current=True)]
    assert found == [first, last]
    # The second page may come from any controller that knows as much as the first one.
    assert served.controller.reads == [
        (DescribeTopics((), None, LIMIT), 0, True),
        (DescribeTopics((), Cursor("a", 3), LIMIT), 7, False),
    ]


async def test_servers_that_name_each_other_are_asked_ever_more_seldom(
    served: Served, another: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []

    def noting(count: int) -> float:
        rounds.append(count)
        return 0.0

    monkeypatch.setattr("quorate.client.backoff.wait_s", noting)
    async with ControllerClient(
        [served.address], timeout_ms=TIMEOUT_MS, transport=chosen()
    ) as client:
        writing = asyncio.ensure_future(client.write(REQUEST))
        for _ in range(4):
            (await served.controller.asked())[1].set_exception(elsewhere(another.port))
            (await another.controller.asked())[1].set_exception(elsewhere(served.port))
        (await served.controller.asked())[1].set_result(CREATED)
        assert await writing == CREATED
    assert rounds == [1, 2, 3, 4]


SILENCE = "no answer in time"
WHOLE_S = 0.05
R = TypeVar("R", bound="ReadReply")
W = TypeVar("W", bound="WriteReply")


class Leaderless(ControllerClient):
    """Its server knows no leader, and says so when it is given the time to."""

    attempts = 0

    def _told(self, timeout_s: float) -> RedirectError | None:
        self.attempts += 1
        if self.attempts > 1 and timeout_s < WHOLE_S:
            return None
        return RedirectError("not here; it knows no leader", None, Epoch(5))

    async def read_from(
        self,
        server: Address,
        request: ReadRequestOf[R],
        timeout_s: float,
        *,
        min_offset: int,
        current: bool,
        even_if_behind: bool,
    ) -> R:
        raise self._told(timeout_s) or NoAnswerError(SILENCE, None, is_silence=True)

    async def write_to(self, server: Address, request: WriteRequestOf[W], timeout_s: float) -> W:
        raise self._told(timeout_s) or OutcomeUnknownError(SILENCE, is_silence=True)


@pytest.fixture
async def leaderless(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Leaderless]:
    """It asks so often that it asks once with less time than its server takes."""
    monkeypatch.setattr("quorate.client.backoff.wait_s", lambda _: WHOLE_S / 10)
    monkeypatch.setattr("quorate.client.controller_client.ATTEMPT_TIMEOUT_S", WHOLE_S)
    async with Leaderless([(HOST, 1)], timeout_ms=SHORT_MS) as client:
        yield client


async def test_a_last_read_cut_short_does_not_unsay_what_was_said(leaderless: Leaderless) -> None:
    with pytest.raises(QuorumUnavailableError, match="it knows no leader"):
        await leaderless.read(ListTopics())


async def test_a_write_is_not_asked_for_with_hardly_any_time_left(leaderless: Leaderless) -> None:
    """Its outcome would be unknown, but is known while every controller denied that it leads."""
    with pytest.raises(QuorumUnavailableError, match="it knows no leader"):
        await leaderless.write(REQUEST)
