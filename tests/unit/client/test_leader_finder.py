"""Errors without a leader; the search itself is tested over sockets in test_membership."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from quorate.api.admin_api import AdminError
from quorate.client import leader_finder
from quorate.client.controller_calls import address_of
from quorate.client.leader_finder import LeaderFinder, no_leader_error
from quorate.raft import messages as m
from quorate.raft.last_message import Heard
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.client.controller_calls import Address
    from quorate.client.controller_client import ControllerClient
    from tests.unit.client.conftest import Clock


def test_the_first_controller_that_answers_tells() -> None:
    answer = m.DescribeQuorumResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        leader=m.LeaderInfo(None, Epoch(7)),
        now_ms=Millis(500),
        last_leader=m.LeaderInfo(NodeId(2), Epoch(5)),
        heard=(Heard(NodeId(3), Millis(100)),),
    )
    error = no_leader_error({"a:1": "connection refused", "b:2": answer})
    assert str(error) == (
        "b:2 knows no leader in epoch 7; the last one that it knew is node 2 of epoch 5; it heard "
        "node 3 400 ms ago: see that a majority of the voters runs"
    )
    assert error.metadata == {
        "asked": "b:2",
        "epoch": "7",
        "last_leader_id": "2",
        "last_leader_epoch": "5",
        "heard_3_ms_ago": "400",
    }


def test_a_controller_that_knows_nothing_says_so() -> None:
    answer = m.DescribeQuorumResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(None, Epoch(0))
    )
    error = no_leader_error({"a:1": answer})
    assert str(error).startswith(
        "a:1 knows no leader in epoch 0, and none since it began; it heard nobody"
    )
    assert error.metadata == {"asked": "a:1", "epoch": "0"}


def test_a_leader_that_is_gone_and_still_believed_in_is_the_last_one() -> None:
    answer = m.DescribeQuorumResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(NodeId(3), Epoch(5))
    )
    error = no_leader_error({"a:1": answer, "c:3": "connection refused"})
    assert str(error).startswith("a:1 takes node 3 for the leader of epoch 5, which is not one;")
    assert error.metadata == {
        "asked": "a:1",
        "epoch": "5",
        "last_leader_id": "3",
        "last_leader_epoch": "5",
    }


def test_without_any_answer_everybody_is_named() -> None:
    error = no_leader_error({"a:1": "connection refused", "b:2": "no answer in time"})
    assert str(error).startswith(
        "no controller answers: a:1: connection refused; b:2: no answer in time"
    )
    assert error.metadata == {}


def test_an_address_is_the_first_listener() -> None:
    assert address_of(cores.endpoints(2)) == ("node-2", 9094)
    assert address_of(()) is None


async def test_a_leader_that_another_request_forgets_meanwhile_is_still_an_address() -> None:
    """Requests of several callers share one finder."""
    leads = m.DescribeQuorumResponse(error=ErrorCode.NONE, leader=m.LeaderInfo(NodeId(1), Epoch(3)))

    class Client:
        async def try_describe_at(self, _: Address, __: float) -> m.DescribeQuorumResponse:
            finder.on_leader_lost()
            return leads

    finder = LeaderFinder(cast("ControllerClient", Client()), [("a", 1)])
    deadline = asyncio.get_running_loop().time() + 60
    assert (await finder.find(deadline)).server == ("a", 1)
    assert (await finder.find(deadline)).server == ("a", 1)


async def test_what_was_learnt_in_time_outlives_a_last_question_cut_short(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last round returns what the round before it returned, however little time is left."""
    answer = m.DescribeQuorumResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        leader=m.LeaderInfo(None, Epoch(7)),
        last_leader=m.LeaderInfo(NodeId(2), Epoch(5)),
    )
    rounds: list[float] = []
    whole_s = 0.05
    monkeypatch.setattr(leader_finder, "ASK_TIMEOUT_S", whole_s)

    class Client:
        async def try_describe_at(
            self, server: Address, timeout_s: float
        ) -> m.DescribeQuorumResponse | str:
            if server != ("a", 1):
                return "connection refused"
            rounds.append(timeout_s)
            return answer if timeout_s == whole_s else "no answer in time"

        def renew(self, _: Address, *, keeps_address: bool) -> None:
            assert keeps_address

    finder = LeaderFinder(cast("ControllerClient", Client()), [("a", 1), ("b", 2)])
    with pytest.raises(AdminError) as refused:
        await finder.find(clock.now_s + whole_s + 0.02)
    assert rounds[0] == whole_s > rounds[-1]
    assert refused.value.metadata["asked"] == "a:1"
    assert refused.value.metadata["last_leader_id"] == "2"


async def test_servers_that_do_not_lead_are_resolved_again_where_no_leader_is_found(
    clock: Clock,
) -> None:
    """A name may have led to a controller of another quorum, which answers for ever."""
    stranger = m.DescribeQuorumResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=m.LeaderInfo(None, Epoch(0))
    )
    leads = m.DescribeQuorumResponse(error=ErrorCode.NONE, leader=m.LeaderInfo(NodeId(1), Epoch(3)))
    renewed: list[Address] = []

    class Client:
        async def try_describe_at(
            self, server: Address, _: float
        ) -> m.DescribeQuorumResponse | str:
            if server == ("silent", 2):
                return "no answer in time"
            return leads if server in renewed else stranger

        def renew(self, server: Address, *, keeps_address: bool) -> None:
            assert keeps_address
            renewed.append(server)

    finder = LeaderFinder(cast("ControllerClient", Client()), [("a", 1), ("silent", 2)])
    assert (await finder.find(clock.now_s + 10)).server == ("a", 1)
    assert renewed == [("a", 1)]
