"""Stand-ins ask for what their partitions lack, in bounded requests, and not without end."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from quorate.cli import isr_requests
from quorate.cli.isr_requests import IsrRequests
from quorate.client.controller_calls import (
    OutcomeUnknownError,
    QuorumUnavailableError,
    RequestRefusedError,
)
from quorate.client.isr_expansion import IsrExpansion
from quorate.controller.replication.messages import AlterPartition
from quorate.records.errors import ErrorCode
from tests.unit.cli.quorum_of_one import QuorumOfOne

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from quorate.client.isr_expansion import WantedAlteration
    from quorate.controller.partitions.rows import PartitionRows

SECONDS = 20


@pytest.fixture
def quorum() -> QuorumOfOne:
    """Brokers 1 to 3 are active."""
    quorum = QuorumOfOne()
    quorum.cluster.start_brokers(1, 2, 3)
    return quorum


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr_requests, "LINGER_S", 0.0)
    monkeypatch.setattr(isr_requests, "RETRY_FIRST_MS", 1)


def leave_and_return(quorum: QuorumOfOne, broker_id: int) -> None:
    """Fence a broker, which leaves all ISRs, and unfence it."""
    cluster = quorum.cluster
    cluster.ask(cluster.heartbeat(broker_id, want_fence=True))
    cluster.settle()
    cluster.ask(cluster.heartbeat(broker_id))
    cluster.settle()


def epochs_of(quorum: QuorumOfOne, *broker_ids: int) -> dict[int, int]:
    brokers = quorum.image.brokers.by_id
    return {id_: brokers[id_].registration.broker_epoch for id_ in broker_ids}


@asynccontextmanager
async def asking(
    quorum: QuorumOfOne, epochs: dict[int, int]
) -> AsyncIterator[tuple[Callable[[Callable[[], bool]], Awaitable[None]], list[str]]]:
    """Requests at work, with a function that waits for a condition, and the reports so far."""
    said: list[str] = []
    requests = IsrRequests(quorum.client, quorum.follower, lambda: epochs, said.append)
    task = asyncio.create_task(requests.run())

    async def until(is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not is_so():
                if task.done():
                    task.result()
                await asyncio.sleep(0.001)

    try:
        yield until, said
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def isr_sizes(quorum: QuorumOfOne, name: str) -> list[int]:
    return [len(isr) for _, isr in quorum.cluster.leading(name)]


async def test_replicas_that_were_fenced_come_back(quorum: QuorumOfOne) -> None:
    quorum.cluster.create("a", (1, 2), (2, 1), (1, 3))
    leave_and_return(quorum, 2)
    assert quorum.cluster.leading("a") == [(1, (1,)), (1, (1,)), (1, (1, 3))]
    async with asking(quorum, epochs_of(quorum, 1)) as (until, said):
        await until(lambda: isr_sizes(quorum, "a") == [2, 2, 2])
        # And once more, of what changes later.
        leave_and_return(quorum, 2)
        quorum.move()
        await until(lambda: isr_sizes(quorum, "a") == [2, 2, 2])
    assert said == []
    assert len(quorum.asked) == 2


async def test_requests_are_bounded_and_a_leader_has_one_at_a_time(
    quorum: QuorumOfOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isr_requests, "PARTITIONS_MAX", 2)
    quorum.cluster.create("a", *[(1, 3)] * 3)
    quorum.cluster.create("b", *[(1, 3)] * 2, (2, 3))
    leave_and_return(quorum, 3)
    under_way: Counter[int] = Counter()
    write = quorum.write

    async def counted(request: AlterPartition) -> object:
        under_way[request.broker_id] += 1
        assert under_way[request.broker_id] == 1
        reply = await write(request)
        under_way[request.broker_id] -= 1
        return reply

    monkeypatch.setattr(quorum, "write", counted)
    async with asking(quorum, epochs_of(quorum, 1, 2)) as (until, _):
        await until(lambda: isr_sizes(quorum, "a") + isr_sizes(quorum, "b") == [2] * 6)
    asked = [
        (request.broker_id, [len(topic.partitions) for topic in request.topics])
        for request in quorum.asked
        if isinstance(request, AlterPartition)
    ]
    assert sorted(asked) == [(1, [1]), (1, [1, 1]), (1, [2]), (2, [1])]


async def test_wide_isrs_make_more_requests(
    quorum: QuorumOfOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isr_requests, "MEMBERS_MAX", 5)
    quorum.cluster.create("a", *[(1, 2, 3)] * 2)
    leave_and_return(quorum, 3)
    async with asking(quorum, epochs_of(quorum, 1)) as (until, _):
        await until(lambda: isr_sizes(quorum, "a") == [3, 3])
    assert len(quorum.asked) == 2


@pytest.mark.parametrize(
    "failure", [OutcomeUnknownError("lost"), QuorumUnavailableError("an election")]
)
async def test_a_request_without_an_answer_is_judged_by_the_log(
    quorum: QuorumOfOne, failure: Exception
) -> None:
    quorum.cluster.create("a", (1, 2))
    leave_and_return(quorum, 2)
    quorum.failures.append(failure)
    async with asking(quorum, epochs_of(quorum, 1)) as (until, said):
        await until(lambda: isr_sizes(quorum, "a") == [2])
        leave_and_return(quorum, 2)
        quorum.move()
        await until(lambda: isr_sizes(quorum, "a") == [2])
    # It was done although no answer came: nothing is asked for twice.
    assert (len(quorum.asked), said) == (2, [])


async def test_who_may_not_ask_is_told_once_and_asks_again(quorum: QuorumOfOne) -> None:
    quorum.cluster.create("a", (1, 2))
    leave_and_return(quorum, 2)
    refused = RequestRefusedError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "User:x may not")

    async def refuse(request: AlterPartition) -> object:
        quorum.asked.append(request)
        raise refused

    write, quorum.write = quorum.write, refuse  # type: ignore[method-assign, assignment]
    async with asking(quorum, epochs_of(quorum, 1)) as (until, said):
        await until(lambda: len(quorum.asked) > 2)
        assert len(said) == 1
        assert "User:x may not; allow it the operation that AlterPartition needs" in said[0]
        quorum.write = write  # type: ignore[method-assign]
        await until(lambda: isr_sizes(quorum, "a") == [2])


async def test_a_registration_that_another_process_replaced_asks_for_nothing(
    quorum: QuorumOfOne,
) -> None:
    quorum.cluster.create("a", (1, 2))
    leave_and_return(quorum, 2)
    epochs = {1: epochs_of(quorum, 1)[1] - 1}
    async with asking(quorum, epochs) as (until, _):
        for _ in range(10):
            quorum.move()
            await asyncio.sleep(0)
        assert quorum.asked == []
        epochs.update(epochs_of(quorum, 1))
        quorum.move()
        await until(lambda: isr_sizes(quorum, "a") == [2])


async def test_what_was_looked_at_is_not_looked_at_again(
    quorum: QuorumOfOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    look = IsrExpansion.wanted

    def counted(expansion: IsrExpansion, rows: PartitionRows) -> Iterator[WantedAlteration]:
        looked.append(len(rows))
        return look(expansion, rows)

    monkeypatch.setattr(IsrExpansion, "wanted", counted)
    quorum.cluster.create("a", *[(1, 2)] * 600)
    async with asking(quorum, epochs_of(quorum, 1)) as (until, _):
        await until(lambda: sum(looked) == 600)
        quorum.move()
        await asyncio.sleep(0.01)
        assert sum(looked) == 600
        quorum.cluster.create("b", (2, 1))
        quorum.move()
        await until(lambda: sum(looked) > 600)
        # One part changed, which the new partition is in.
        assert sum(looked) < 1_200
