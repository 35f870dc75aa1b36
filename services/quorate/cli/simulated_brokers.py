"""Stand-in brokers: ids that are registered, kept alive, and shut down in order.

All ids of a process follow the log together. A stand-in has no data: its replicas are in sync as
soon as it is active, and the leaders of their partitions request them (cli/isr_requests.py).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from quorate.cli.output import CommandError, item_error
from quorate.client.backoff import Backoff, wait_s
from quorate.client.controller_calls import (
    OutcomeUnknownError,
    QuorumUnavailableError,
    RequestRefusedError,
)
from quorate.controller.brokers.messages import BrokerHeartbeat
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from quorate.cli.isr_requests import IsrRequests
    from quorate.client.controller_client import ControllerClient
    from quorate.client.metadata_follower import MetadataFollower
    from quorate.controller.brokers.messages import BrokerHeartbeatReply, RegisterBroker

# Kafka's broker.heartbeat.interval.ms.
HEARTBEAT_INTERVAL_S: Final = 2.0
SHUTDOWN_S: Final = 10.0
_GONE: Final = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)


@dataclass(slots=True)
class StandIn:
    """One id; `epoch` is what its heartbeats carry, -1 before it is registered."""

    request: RegisterBroker
    epoch: int = -1
    # The contents of the last heartbeat, and its answer.
    offset: int = -1
    is_caught_up: bool = False
    may_stop: bool = False
    # The reason for which it could not stop in order.
    obstacle: str = ""

    @property
    def broker_id(self) -> int:
        return self.request.broker_id


class StandIns:
    """All ids of a process. Without a follower each is caught up with its own registration."""

    def __init__(
        self,
        client: ControllerClient,
        requests: Sequence[RegisterBroker],
        report: Callable[[str], None],
        follower: MetadataFollower | None = None,
    ) -> None:
        """`report` gets a line about a wait."""
        self._client = client
        self._report = report
        self._follower = follower
        self.all = [StandIn(request) for request in requests]

    def epochs(self) -> dict[int, int]:
        """The epochs of the registered ids."""
        return {each.broker_id: each.epoch for each in self.all if each.epoch >= 0}

    # --- register ---------------------------------------------------------------------------------

    async def register(self, on_registered: Callable[[], None], *, patience_s: float = 0.0) -> None:
        """Register all. Raises CommandError and the errors of the client.

        An id whose last process was killed becomes free when its session ends: this waits for that
        for up to `patience_s`.
        """
        deadline = asyncio.get_running_loop().time() + patience_s
        for each in self.all:
            await self._register(each, deadline)
            on_registered()

    async def _register(self, each: StandIn, deadline: float) -> None:
        """Register one id; the same incarnation makes the same registration, so a retry is safe."""
        backoff, unknown, is_told = Backoff(deadline), 0, False
        while True:
            try:
                reply = await self._client.write(each.request)
            except OutcomeUnknownError:
                unknown += 1
                await asyncio.sleep(wait_s(unknown))
                continue
            if reply.error is ErrorCode.NONE:
                each.epoch, each.offset, each.is_caught_up = reply.broker_epoch, -1, False
                return
            said = f"broker {each.broker_id}: {item_error(reply.error, reply.message)}"
            is_taken = reply.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION
            if not is_taken or backoff.left_s <= 0:
                raise CommandError(said)
            if not is_told:
                is_told = True
                self._report(f"{said}; waiting until that session is over")
            await backoff.wait()

    # --- heartbeats -------------------------------------------------------------------------------

    async def beat(self) -> None:
        """Send a heartbeat for each id. Raises CommandError.

        Elections are survived: a failure now is retried at the next beat.
        """
        await asyncio.gather(*map(self._beat_through, self.all))

    async def beat_until_caught_up(self) -> None:
        """Send heartbeats until the quorum takes none for behind; the caller bounds the time."""
        count = 0
        while True:
            await self.beat()
            if self._is_caught_up:
                return
            count += 1
            await asyncio.sleep(wait_s(count))

    @property
    def _is_caught_up(self) -> bool:
        return all(each.is_caught_up for each in self.all)

    async def _beat_through(self, each: StandIn) -> None:
        with suppress(OutcomeUnknownError, QuorumUnavailableError):
            reply = await self._beat(each)
            if reply.error in _GONE:
                # A broker does the same if the quorum lost or replaced its registration.
                await self._register(each, 0.0)
            elif reply.error is not ErrorCode.NONE:
                said = item_error(reply.error, reply.message)
                raise CommandError(f"broker {each.broker_id}: {said}")

    async def _beat(self, each: StandIn, *, want_shut_down: bool = False) -> BrokerHeartbeatReply:
        offset = self._offset_of(each)
        each.offset = offset
        beat = BrokerHeartbeat(
            broker_id=each.broker_id,
            broker_epoch=each.epoch,
            current_metadata_offset=offset,
            want_shut_down=want_shut_down,
        )
        reply = await self._client.write(beat)
        if reply.error is ErrorCode.NONE:
            each.is_caught_up = reply.is_caught_up
        return reply

    def _offset_of(self, each: StandIn) -> Offset:
        """The last offset that was replayed."""
        follower = self._follower
        if follower is None or follower.is_refused:
            # It has nothing to replay then, or may not, and is useful anyway.
            return Offset(each.epoch)
        return Offset(max(0, follower.end_offset - 1))

    async def keep_alive(
        self, follower: MetadataFollower, announce: Callable[[], None], *, patience_s: float
    ) -> None:
        """Send heartbeats until cancelled.

        `announce` is called once: when all brokers have caught up, so that they may get replicas,
        or after `patience_s`, whatever comes first.
        """
        loop = asyncio.get_running_loop()
        deadline, is_announced = loop.time() + patience_s, False
        while True:
            await self.beat()
            if not is_announced and (self._is_caught_up or loop.time() >= deadline):
                is_announced = True
                announce()
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_INTERVAL_S):
                    while not self._is_news():
                        await follower.moved()

    def _is_news(self) -> bool:
        """True if a stand-in has caught up since its last heartbeat."""
        return any(each.offset < each.epoch <= self._offset_of(each) for each in self.all)

    # --- shut down --------------------------------------------------------------------------------

    async def shut_down(self) -> None:
        """Request until each may stop, as brokers do whose partitions need other leaders first."""
        count = 0
        while True:
            staying = [each for each in self.all if each.epoch >= 0 and not each.may_stop]
            if not staying:
                return
            await asyncio.gather(*map(self._ask_to_stop, staying))
            count += 1
            if any(not each.may_stop for each in staying):
                await asyncio.sleep(wait_s(count))

    async def _ask_to_stop(self, each: StandIn) -> None:
        try:
            reply = await self._beat(each, want_shut_down=True)
        except (OutcomeUnknownError, QuorumUnavailableError, RequestRefusedError) as error:
            each.obstacle = str(error)
            return
        each.may_stop = reply.should_shut_down or reply.error in _GONE
        each.obstacle = item_error(reply.error, reply.message)
        if reply.error is ErrorCode.NONE:
            each.obstacle = "others have yet to hear who leads its partitions"


async def run_stand_ins(
    stand_ins: StandIns,
    follower: MetadataFollower,
    requests: IsrRequests,
    stop: StopRequests,
    announce: Callable[[], None],
    *,
    patience_s: float,
) -> None:
    """Register, stay alive until the first stop signal, shut down, and exit at the second signal.

    Raises CommandError, and the errors of the client before the registration.
    """

    async def serve() -> None:
        await stand_ins.register(lambda: None, patience_s=patience_s)
        await stand_ins.keep_alive(follower, announce, patience_s=patience_s)

    # Brokers that shut down wait until the others have replayed, so the log is still followed.
    async with _Beside(follower.run(), requests.run()) as beside:
        await beside.until(stop.first.wait(), serve())
        with suppress(TimeoutError):
            async with asyncio.timeout(SHUTDOWN_S):
                await beside.until(stop.second.wait(), stand_ins.shut_down())


class StopRequests:
    """The first stop signal requests an orderly end, the second an immediate one."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()

    def on_signal(self) -> None:
        """Count one more signal."""
        (self.second if self.first.is_set() else self.first).set()


class _Beside:
    """Endless tasks that run concurrently with others; what they raise ends everything."""

    def __init__(self, *endless: Coroutine[Any, Any, Any]) -> None:
        self._endless = endless
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(each) for each in self._endless]
        return self

    async def __aexit__(self, *_: object) -> None:
        await _cancel(self._tasks)

    async def until(self, *any_of: Coroutine[Any, Any, Any]) -> None:
        """Wait until one of these ends, and cancel the others. Raises the errors of any."""
        tasks = [asyncio.create_task(each) for each in any_of]
        try:
            done, _ = await asyncio.wait(
                (*tasks, *self._tasks), return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                task.result()
        finally:
            await _cancel(tasks)


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
