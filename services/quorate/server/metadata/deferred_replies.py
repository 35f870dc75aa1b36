"""Replies deferred until their records are committed, and waiters for an applied offset."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.api.handlers import ControllerApiError
from quorate.raft.messages import LeaderInfo
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.controller.request_types import WriteReply
    from quorate.records.ids import Offset
    from quorate.server.driver.raft_driver import RaftDriver


def leader_to_ask(driver: RaftDriver) -> LeaderInfo:
    """The leader to name to a rejected client: none if this controller knows it cannot serve."""
    replica = driver.core.replica
    known = replica.leader_info
    is_away = driver.is_stopping or replica.second_quorum.is_met
    return LeaderInfo(None, known.epoch) if is_away else known


def not_controller(info: LeaderInfo, message: str) -> ControllerApiError:
    """Create the error of a request that had no effect; the caller should go to the leader."""
    return ControllerApiError(ErrorCode.NOT_CONTROLLER, message, leader=info)


def outcome_unknown(info: LeaderInfo) -> ControllerApiError:
    """Create the error of a change that may have been committed, or may still be.

    See rule `stream_responses`.
    """
    return ControllerApiError(
        ErrorCode.REQUEST_TIMED_OUT,
        "this controller lost its leadership before the change was known to be committed: "
        "look whether it took effect before you send it again",
        leader=info,
        outcome_unknown=True,
    )


def fail_request(future: asyncio.Future[WriteReply], error: ControllerApiError) -> None:
    """Answer with an error, unless the caller has stopped waiting."""
    if not future.done():
        future.set_exception(error)
        # A caller that hung up never retrieves the exception. Retrieving it here avoids asyncio's
        # warning without a callback per reply.
        future.exception()


# Each refusal makes its caller's task or stream build a response in the next event-loop iteration.
REFUSALS_A_TURN: Final = 256
Refused: TypeAlias = "asyncio.Future[WriteReply]"
# The offset that has to be committed first, the reply, and its future.
_Held: TypeAlias = "tuple[Offset, WriteReply, asyncio.Future[WriteReply]]"


class DeferredReplies:
    """Deferred replies in the order of their decisions, and so of their offsets."""

    def __init__(self) -> None:
        self._held: deque[_Held] = deque()

    def __len__(self) -> int:
        return len(self._held)

    def defer(
        self, end_offset: Offset, reply: WriteReply, future: asyncio.Future[WriteReply]
    ) -> None:
        """Defer a reply until everything below `end_offset` is committed."""
        self._held.append((end_offset, reply, future))

    def release(self, high_watermark: Offset) -> None:
        """Complete the replies whose records are below the high watermark."""
        held = self._held
        while held and held[0][0] <= high_watermark:
            _, reply, future = held.popleft()
            if not future.done():
                future.set_result(reply)

    def clear(self, *, unsent_from: Offset | None) -> tuple[list[Refused], list[Refused]]:
        """Remove all replies after loss of leadership; return the sent and the unsent ones.

        Decisions from `unsent_from` on were never appended.
        """
        held, self._held = self._held, deque()
        sent: list[Refused] = []
        unsent: list[Refused] = []
        for end_offset, _, future in held:
            is_unsent = unsent_from is not None and end_offset > unsent_from
            (unsent if is_unsent else sent).append(future)
        return sent, unsent


class Refusals:
    """The refusals after a leadership has ended, a limited number per event-loop iteration."""

    def __init__(self) -> None:
        # Per leadership: the leader to ask now, the remaining futures, and whether their records
        # were sent.
        self._left: deque[tuple[LeaderInfo, deque[Refused], bool]] = deque()
        self._handle: asyncio.Handle | None = None

    def begin(self, info: LeaderInfo, sent: Iterable[Refused], unsent: Iterable[Refused]) -> None:
        """Refuse both kinds, those with an unknown outcome first."""
        self._left.append((info, deque(sent), True))
        self._left.append((info, deque(unsent), False))
        if self._handle is None:
            self._go_on()

    def _go_on(self) -> None:
        places = REFUSALS_A_TURN
        while self._left and places:
            info, futures, is_sent = self._left[0]
            if not futures:
                self._left.popleft()
                continue
            error = (
                outcome_unknown(info)
                if is_sent
                else not_controller(info, "this controller stopped leading")
            )
            fail_request(futures.popleft(), error)
            places -= 1
        self._handle = asyncio.get_running_loop().call_soon(self._go_on) if self._left else None


class OffsetWaiters:
    """Callers that wait until everything below an offset is part of the image."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], Offset] = {}

    async def wait(self, offset: Offset) -> None:
        """Return once `reached` was called with that offset or a later one."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = offset
        try:
            await future
        finally:
            self._waiting.pop(future, None)

    def reached(self, offset: Offset) -> None:
        """Wake the callers of offsets up to `offset`, which the image now includes."""
        if not self._waiting:
            return
        for future in [f for f, wanted in self._waiting.items() if wanted <= offset]:
            del self._waiting[future]
            if not future.done():
                future.set_result(None)
