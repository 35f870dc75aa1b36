"""Answers that wait: replies for the high watermark, reads for the image to come so far."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.api.handlers import ControllerApiError
from quorate.raft.messages import LeaderInfo
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.controller.replies import WriteReply
    from quorate.records.ids import Offset
    from quorate.server.driver.raft_driver import RaftDriver


def leader_to_ask(driver: RaftDriver) -> LeaderInfo:
    """Whom a client that is refused should ask: not this controller, where it cannot answer."""
    replica = driver.core.replica
    known = replica.leader_info
    is_away = driver.is_stopping or replica.second_quorum.is_met
    return LeaderInfo(None, known.epoch) if is_away else known


def not_controller(info: LeaderInfo, message: str) -> ControllerApiError:
    """Nothing has happened; the caller should go to the leader."""
    return ControllerApiError(ErrorCode.NOT_CONTROLLER, message, leader=info)


def outcome_unknown(info: LeaderInfo) -> ControllerApiError:
    """It may have been committed or may still be (rule 20)."""
    return ControllerApiError(
        ErrorCode.REQUEST_TIMED_OUT,
        "this controller lost its leadership before the change was known to be committed: "
        "look whether it took effect before you send it again",
        leader=info,
        outcome_unknown=True,
    )


def refuse(future: asyncio.Future[WriteReply], error: ControllerApiError) -> None:
    """Answer with an error, unless nobody waits any more."""
    if not future.done():
        future.set_exception(error)
        # A caller that hung up leaves its future behind; its exception is nobody's fault. A
        # callback to look at it would be one for each reply.
        future.exception()


# Each has an answer that its caller's task or stream makes, in the next turn of the loop.
REFUSALS_A_TURN: Final = 256
Refused: TypeAlias = "asyncio.Future[WriteReply]"
# What has to be committed before, and who waits for the reply.
_Held: TypeAlias = "tuple[Offset, WriteReply, asyncio.Future[WriteReply]]"


class HeldReplies:
    """Replies in the order of their decisions, so of their offsets too."""

    def __init__(self) -> None:
        self._held: deque[_Held] = deque()

    def __len__(self) -> int:
        return len(self._held)

    def hold(
        self, end_offset: Offset, reply: WriteReply, future: asyncio.Future[WriteReply]
    ) -> None:
        """Keep a reply until everything below `end_offset` is committed."""
        self._held.append((end_offset, reply, future))

    def release(self, high_watermark: Offset) -> None:
        """Everything below is committed."""
        held = self._held
        while held and held[0][0] <= high_watermark:
            _, reply, future = held.popleft()
            if not future.done():
                future.set_result(reply)

    def clear(self, *, unsent_from: Offset | None) -> tuple[list[Refused], list[Refused]]:
        """Leadership is lost: who waits for what was sent, and for what never was.

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
    """The refusals of a leadership that is over, some in each turn of the loop."""

    def __init__(self) -> None:
        # Of each leadership: whom to ask now, who is left, and whether theirs was sent.
        self._left: deque[tuple[LeaderInfo, deque[Refused], bool]] = deque()
        self._handle: asyncio.Handle | None = None

    def begin(self, info: LeaderInfo, sent: Iterable[Refused], unsent: Iterable[Refused]) -> None:
        """Refuse both, those with an outcome that is not known first."""
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
            refuse(futures.popleft(), error)
            places -= 1
        self._handle = asyncio.get_running_loop().call_soon(self._go_on) if self._left else None


class OffsetWaits:
    """Callers that wait until everything below an offset is part of the image."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], Offset] = {}

    async def wait(self, offset: Offset) -> None:
        """Return once `reached` was told of that offset."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = offset
        try:
            await future
        finally:
            self._waiting.pop(future, None)

    def reached(self, offset: Offset) -> None:
        """The image includes everything below `offset`."""
        if not self._waiting:
            return
        for future in [f for f, wanted in self._waiting.items() if wanted <= offset]:
            del self._waiting[future]
            if not future.done():
                future.set_result(None)
