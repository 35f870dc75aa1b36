"""Brokers of `quorate brokers register` that come and go: replicas leave the ISR and return."""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING

from quorate.controller.topics.messages import DescribeTopics, NewTopic
from tests.integration.disks import log_start
from tests.integration.quorum import DEADLINE_S, SMALL_LOG, STEADY, Quorum

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from quorate.controller.topics.messages import DescribedPartition

PARTITIONS = 6
# Three heartbeats, so that a busy machine fences no live broker.
SESSION = {"broker.session.timeout.ms": "6000"}


class Brokers:
    """Processes of stand-ins, one for each id."""

    def __init__(self, quorum: Quorum) -> None:
        self.quorum = quorum
        self._processes: dict[int, Process] = {}

    async def start(self, broker_id: int) -> None:
        """Start one; it has registered and caught up."""
        process = await self.quorum.spawn_cli("brokers", "register", "--ids", str(broker_id))
        self._processes[broker_id] = process
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            line = await process.stdout.readline()
            if not line:
                raise AssertionError((await process.communicate())[1].decode())
        assert line.startswith(f"Registered broker {broker_id} with epoch ".encode())

    async def kill(self, broker_id: int) -> None:
        """kill -9."""
        process = self._processes.pop(broker_id)
        process.kill()
        await process.communicate()

    async def stop(self, broker_id: int) -> tuple[int | None, str]:
        """SIGTERM; exit status and stderr."""
        process = self._processes.pop(broker_id)
        process.terminate()
        async with asyncio.timeout(DEADLINE_S):
            _, stderr = await process.communicate()
        return process.returncode, stderr.decode()

    def signal(self, broker_id: int, number: signal.Signals) -> None:
        """Send a signal to one, which stays one of ours."""
        self._processes[broker_id].send_signal(number)

    async def end(self) -> None:
        """Kill those that are left."""
        for broker_id in list(self._processes):
            with suppress(ProcessLookupError):
                await self.kill(broker_id)


@asynccontextmanager
async def brokers_of(quorum: Quorum) -> AsyncIterator[Brokers]:
    brokers = Brokers(quorum)
    try:
        yield brokers
    finally:
        await brokers.end()


async def until(
    quorum: Quorum, what: str, is_so: Callable[[DescribedPartition], bool]
) -> tuple[DescribedPartition, ...]:
    """Wait until that holds of every partition of the topic."""
    found: list[DescribedPartition] = []

    async def holds() -> bool:
        reply = await quorum.client.read(DescribeTopics(("orders",)), current=True)
        found[:] = reply.topics[0].partitions
        return len(found) == PARTITIONS and all(map(is_so, found))

    await quorum.eventually(what, holds)
    return tuple(found)


def is_complete(partition: DescribedPartition) -> bool:
    return set(partition.isr) == set(partition.replicas) and partition.leader >= 0


async def test_replicas_of_two_brokers_return_to_the_isr_whichever_of_them_went(
    tmp_path: Path,
) -> None:
    async with (
        Quorum(tmp_path / "q", STEADY | SESSION, controllers=1) as quorum,
        brokers_of(quorum) as brokers,
    ):
        await brokers.start(1)
        await brokers.start(2)
        await quorum.create(NewTopic("orders", PARTITIONS, 2))
        await brokers.kill(1)
        await until(quorum, "2 is alone in every ISR", lambda p: p.isr == (2,))
        await brokers.start(1)
        await until(quorum, "1 is back in every ISR", is_complete)
        assert await brokers.stop(2) == (0, "")
        left = await until(quorum, "1 leads everything", lambda p: p.leader == 1)
        assert {partition.isr for partition in left} == {(1,)}
        await brokers.start(2)
        await until(quorum, "2 is back in every ISR", is_complete)
        everything = ("--election-type", "preferred", "--all-topic-partitions")
        told = await quorum.cli("elect-leaders", *everything)
        led = [f"orders-{p.partition}" for p in left if p.replicas[0] == 2]
        assert led
        assert told.splitlines() == [
            "Successfully completed leader election (PREFERRED) for partitions " + ", ".join(led)
        ]
        await until(quorum, "first replicas lead", lambda p: p.leader == p.replicas[0])
        assert await quorum.cli("elect-leaders", *everything) == ""


async def test_brokers_stop_although_no_quorum_lets_them_go(tmp_path: Path) -> None:
    async with (
        Quorum(tmp_path / "q", STEADY, controllers=1) as quorum,
        brokers_of(quorum) as brokers,
    ):
        await brokers.start(1)
        await quorum.kill(1)
        # The second ends what the first began; a process that gets both as one ends later.
        brokers.signal(1, signal.SIGTERM)
        status, stderr = await brokers.stop(1)
        assert status == 0
        assert stderr.startswith("warning: stopped without a shutdown permit: 1: ")
        assert len(stderr.splitlines()) == 1


async def test_a_broker_that_begins_with_a_snapshot_takes_part(tmp_path: Path) -> None:
    async with (
        Quorum(tmp_path / "q", STEADY | SESSION | SMALL_LOG, controllers=1) as quorum,
        brokers_of(quorum) as brokers,
    ):
        await brokers.start(1)
        node = quorum.nodes[1]
        numbers = count()

        async def begins_late() -> bool:
            await quorum.create(NewTopic(f"t{next(numbers)}", 50, 1))
            return log_start(node) > 0

        await quorum.eventually("the first segment is deleted", begins_late)
        # From now on a new follower begins with the snapshot.
        await brokers.start(2)
        await quorum.create(NewTopic("orders", PARTITIONS, 2))
        await brokers.kill(1)
        await until(quorum, "2 is alone in every ISR", lambda p: p.isr == (2,))
        await brokers.start(1)
        await until(quorum, "1 is back in every ISR", is_complete)
