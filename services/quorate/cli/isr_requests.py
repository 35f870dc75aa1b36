"""AlterPartition requests of stand-in brokers, for the partitions that they lead.

A pass goes through all partitions except the parts of the image that were checked before; another
one follows when topics or brokers have changed. A failed request changes nothing here: the next
pass derives the wanted changes from the log again.
"""

from __future__ import annotations

import asyncio
import random
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NoReturn

from quorate.client.controller_calls import (
    OutcomeUnknownError,
    QuorumUnavailableError,
    RequestRefusedError,
)
from quorate.client.isr_expansion import IsrExpansion
from quorate.controller.replication.messages import AlterPartition, TopicAlteration
from quorate.raft.backoff import backoff_ms
from quorate.records.errors import ErrorCode
from quorate.rpc.time_slicer import BACKGROUND_SHARE, TimeSlicer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from typing import Any

    from quorate.client.controller_client import ControllerClient
    from quorate.client.isr_expansion import WantedAlteration
    from quorate.client.metadata_follower import MetadataFollower
    from quorate.controller.brokers.image import Brokers
    from quorate.controller.partitions.rows import PartitionRows
    from quorate.controller.topics.image import Topics

# Limits of one request, which may have a mebibyte: partitions, and members of their ISRs.
PARTITIONS_MAX: Final = 1_000
MEMBERS_MAX: Final = 20_000
# Seconds in which changes are accumulated for one pass.
LINGER_S: Final = 0.05
RETRY_FIRST_MS: Final = 100
RETRY_LONGEST_MS: Final = 2_000
_RANDOM: Final = random.SystemRandom()


class IsrRequests:
    """Requests ISR changes. `run` it as a task next to the follower."""

    def __init__(
        self,
        client: ControllerClient,
        follower: MetadataFollower,
        epochs: Callable[[], Mapping[int, int]],
        report: Callable[[str], None],
    ) -> None:
        """`epochs` are those of the stand-ins, by id; `report` is called once after a denial."""
        self._client = client
        self._follower = follower
        self._epochs = epochs
        self._report = report
        self._is_told = False
        # By identity of the parts, which are kept alive here: parts without wanted changes.
        self._settled: dict[int, PartitionRows] = {}
        self._settled_for: tuple[Brokers, Mapping[int, int]] | None = None

    async def run(self) -> NoReturn:
        """Ask until cancelled."""
        failures = 0
        while True:
            seen = self._seen()
            has_asked, has_failed = await self._pass()
            if has_asked:
                # Results have to be in the image before the next pass.
                await self._follower.catch_up()
            failures = failures + 1 if has_failed else 0
            if failures:
                await asyncio.sleep(_backoff_s(failures))
            else:
                while self._is_same(seen):
                    await self._follower.moved()
                await asyncio.sleep(LINGER_S)

    def _seen(self) -> tuple[Topics, Brokers, Mapping[int, int]]:
        image = self._follower.image
        return image.topics, image.brokers, dict(self._epochs())

    def _is_same(self, seen: tuple[Topics, Brokers, Mapping[int, int]]) -> bool:
        topics, brokers, epochs = seen
        image = self._follower.image
        # An image keeps the parts in which nothing changed.
        return image.topics is topics and image.brokers is brokers and self._epochs() == epochs

    async def _pass(self) -> tuple[bool, bool]:
        """Request all changes wanted now; returns if there were any, and if any failed."""
        image, epochs = self._follower.image, dict(self._epochs())
        brokers = image.brokers
        known = self._settled_for
        if known is None or known[0] is not brokers or known[1] != epochs:
            self._settled = {}
        leaders = [id_ for id_, epoch in epochs.items() if _is_registered(brokers, id_, epoch)]
        expansion, settled, pace = IsrExpansion(brokers, leaders), {}, TimeSlicer(BACKGROUND_SHARE)
        async with asyncio.TaskGroup() as group:
            sending = _Sending(group, self._ask, epochs)
            for part in image.topics.partitions.rows.parts_from(0) if leaders else ():
                before = sending.count
                if id(part) not in self._settled:
                    for wanted in expansion.wanted(part):
                        await sending.add(wanted)
                        await pace.yield_if_due()
                    await pace.yield_if_due()
                if sending.count == before:
                    settled[id(part)] = part
            await sending.send_rest()
        self._settled, self._settled_for = settled, (brokers, epochs)
        return sending.count > 0, sending.has_failed

    async def _ask(self, request: AlterPartition) -> bool:
        """True if all changes were made."""
        try:
            reply = await self._client.write(request)
        except (OutcomeUnknownError, QuorumUnavailableError):
            return False
        except RequestRefusedError as error:
            if not self._is_told:
                self._is_told = True
                self._report(
                    f"brokers cannot ask for replicas to be back in the ISR: {error}; allow it the"
                    " operation that AlterPartition needs, ClusterAction"
                )
            return False
        self._is_told = False
        return reply.error is ErrorCode.NONE and all(
            partition.error is ErrorCode.NONE
            for topic in reply.topics
            for partition in topic.partitions
        )


class _Sending:
    """Accumulates wanted changes into requests; each leader has one request in flight."""

    def __init__(
        self,
        group: asyncio.TaskGroup,
        ask: Callable[[AlterPartition], Coroutine[Any, Any, bool]],
        epochs: Mapping[int, int],
    ) -> None:
        self._group = group
        self._ask = ask
        self._epochs = epochs
        self._gathered: dict[int, list[WantedAlteration]] = {}
        self._members: dict[int, int] = {}
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self.count = 0
        self.has_failed = False

    async def add(self, wanted: WantedAlteration) -> None:
        """Add one partition; waits if its leader already has a full request in flight."""
        leader, size = wanted.leader, len(wanted.alteration.new_isr)
        gathered = self._gathered.setdefault(leader, [])
        members = self._members.get(leader, 0)
        if len(gathered) == PARTITIONS_MAX or (gathered and members + size > MEMBERS_MAX):
            await self._send(leader)
            gathered, members = self._gathered.setdefault(leader, []), 0
        gathered.append(wanted)
        self.count += 1
        self._members[leader] = members + size

    async def send_rest(self) -> None:
        """Send the accumulated changes, however few."""
        for leader in tuple(self._gathered):
            await self._send(leader)

    async def _send(self, leader: int) -> None:
        before = self._under_way.get(leader)
        if before is not None:
            await before
        request = AlterPartition(
            broker_id=leader,
            broker_epoch=self._epochs[leader],
            topics=_topics_of(self._gathered.pop(leader)),
        )
        self._under_way[leader] = self._group.create_task(self._see_through(request))

    async def _see_through(self, request: AlterPartition) -> None:
        if not await self._ask(request):
            self.has_failed = True


def _topics_of(gathered: Sequence[WantedAlteration]) -> tuple[TopicAlteration, ...]:
    """Group alterations by topic; they are in the order of their topics."""
    return tuple(
        TopicAlteration(topic_id, tuple(wanted.alteration for wanted in of_topic))
        for topic_id, of_topic in groupby(gathered, attrgetter("topic_id"))
    )


def _is_registered(brokers: Brokers, broker_id: int, epoch: int) -> bool:
    """True if the log has exactly this registration, and no later one."""
    broker = brokers.by_id.get(broker_id)
    return broker is not None and broker.registration.broker_epoch == epoch


def _backoff_s(count: int) -> float:
    wait_ms = backoff_ms(
        count, first_ms=RETRY_FIRST_MS, longest_ms=RETRY_LONGEST_MS, random=_RANDOM
    )
    return wait_ms / 1000
