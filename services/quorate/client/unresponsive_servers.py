"""Remembers servers that do not answer, and looks for another leader while a call waits.

A process that hangs keeps its connections, and its voters name it as leader until they time out. So
a call without an answer after a second asks the other servers for the leader, one per second, and
is abandoned once one names a leader of a later epoch. An unresponsive server is not accepted as the
leader of that epoch, whatever others say, until it has had time to come back.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from quorate.client.controller_calls import RequestRefusedError, address_of
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from quorate.client.controller_calls import Address, ControllerCalls
    from quorate.raft.messages import DescribeQuorumResponse
    from quorate.records.ids import Epoch

T = TypeVar("T")
# Seconds without an answer after which others are asked, each with the same limit.
HEDGE_AFTER_S: Final = 1.0
# Seconds after which a leader that was merely slow is asked again.
SILENCE_S: Final = 5.0


class LeaderReplacedError(Exception):
    """A server has not answered, and another leads."""

    def __init__(self, node_id: int, leader: Address, epoch: Epoch) -> None:
        super().__init__(f"no answer, and node {node_id} leads epoch {epoch} meanwhile")
        self.leader = leader
        self.epoch = epoch


@dataclass(slots=True)
class _Silence:
    """Valid until a time of the loop's clock; `epoch` is the last one in which it may lead."""

    until: float
    epoch: Epoch | None


class UnresponsiveServers:
    """The servers that did not answer recently."""

    def __init__(self) -> None:
        self._silences: dict[Address, _Silence] = {}

    def add(self, server: Address, epoch: Epoch | None) -> None:
        """Record a missing answer; `epoch` is that in which the server was taken for the leader."""
        now = asyncio.get_running_loop().time()
        self._silences = {one: s for one, s in self._silences.items() if s.until > now}
        self._silences[server] = _Silence(now + SILENCE_S, epoch)

    def discard(self, server: Address) -> None:
        """The server has answered."""
        self._silences.pop(server, None)

    def has(self, server: Address) -> bool:
        """True if the server did not answer recently."""
        silence = self._silences.get(server)
        return silence is not None and silence.until > asyncio.get_running_loop().time()

    def is_known_stale(self, server: Address, epoch: Epoch) -> bool:
        """True if the server was already unresponsive as leader of that epoch."""
        if not self.has(server):
            return False
        silence = self._silences[server]
        if silence.epoch is None:
            # The first redirect to the server tells the epoch in which it was unresponsive.
            silence.epoch = epoch
        return epoch <= silence.epoch


class FailoverWatch:
    """Looks for another leader while a call has no answer.

    `epoch` is that in which the server leads, if known.
    """

    def __init__(
        self,
        calls: ControllerCalls,
        server: Address,
        others: Sequence[Address],
        epoch: Epoch | None,
        *,
        is_repeatable: bool,
    ) -> None:
        self._calls = calls
        self._server = server
        self._others = others
        self.epoch = epoch
        self._is_repeatable = is_repeatable

    async def run(self, calling: Coroutine[Any, Any, T]) -> T:
        """The outcome of the call. Raises LeaderReplacedError, and the errors of the call."""
        call = asyncio.ensure_future(calling)
        looking: asyncio.Future[LeaderReplacedError | None] | None = None
        try:
            await asyncio.wait((call,), timeout=HEDGE_AFTER_S)
            if not call.done() and self._others:
                looking = asyncio.ensure_future(self._look())
                await asyncio.wait((call, looking), return_when=asyncio.FIRST_COMPLETED)
            if not call.done() and looking is not None:
                replaced = looking.result()
                if replaced is not None:
                    raise replaced
            return await call
        finally:
            tasks = [task for task in (call, looking) if task is not None]
            unfinished = [task for task in tasks if not task.done()]
            for task in unfinished:
                task.cancel()
            if unfinished:
                await asyncio.gather(*unfinished, return_exceptions=True)
            for task in tasks:
                # If the caller is cancelled in the iteration of a failure, no other code retrieves
                # it.
                _ = task.cancelled() or task.exception()

    async def _look(self) -> LeaderReplacedError | None:
        """Ask the others in turn while the call lasts; None if the caller is not authorized."""
        while True:
            for other in self._others:
                try:
                    answer = await self._calls.try_describe_at(other, HEDGE_AFTER_S)
                except RequestRefusedError:
                    return None
                except ValueError:
                    # An undecodable answer proves nothing, and must not end the call.
                    answer = "unreadable"
                replaced = None if isinstance(answer, str) else self._judged(other, answer)
                if replaced is not None:
                    return replaced
                # Jitter, so that all callers of one server do not ask at the same time.
                await asyncio.sleep(HEDGE_AFTER_S * random.uniform(0.5, 1.0))  # noqa: S311

    def _judged(self, other: Address, answer: DescribeQuorumResponse) -> LeaderReplacedError | None:
        """The error if this answer names another leader, else None.

        Without an epoch the named address may be the same server by another name. A repeatable call
        goes there; any other call waits until a later epoch is named.
        """
        leader = answer.leader
        at = other if answer.error is ErrorCode.NONE else address_of(leader.endpoints)
        if leader.leader_id is None or at is None:
            return None
        if at != self._server:
            is_later = self._is_repeatable if self.epoch is None else leader.epoch > self.epoch
            if is_later:
                return LeaderReplacedError(leader.leader_id, at, leader.epoch)
        if self.epoch is None or (at == self._server and leader.epoch > self.epoch):
            self.epoch = leader.epoch
        return None
