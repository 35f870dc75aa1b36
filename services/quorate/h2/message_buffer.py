"""Receive buffer of a call: messages and the flow-control window given to the sender."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import grpc

from quorate.h2 import grpc_framing

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.h2.protocol.connection import Connection


# Messages that one call may receive or send without yielding: a window holds thousands of small
# ones.
MESSAGES_PER_ITERATION: Final = 64


class IncompleteError(grpc_framing.OversizedError):
    """The sender has ended in the middle of a message."""


class MessageBuffer:
    """The receive buffer of a call.

    Its sender gets a window, and for a message that a reader waits for as much as the message
    needs.
    """

    __slots__ = (
        "_connection",
        "_flush",
        "_granted",
        "_has_all",
        "_in_turn",
        "_news_of",
        "_reader",
        "_stream_id",
        "_unsettled",
        "_waiter",
    )

    def __init__(
        self,
        connection: Connection,
        stream_id: int,
        *,
        bytes_max: int,
        flush_soon: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._stream_id = stream_id
        self._reader = grpc_framing.MessageReader(bytes_max)
        self._flush = flush_soon
        # Bytes of the incomplete message that were already granted to the sender again.
        self._granted = 0
        self._has_all = False
        self._in_turn = 0
        # Bytes read, but not yet reported to the connection.
        self._unsettled = 0
        self._waiter: asyncio.Future[None] | None = None
        self._news_of: Callable[[], None] | None = None

    def set_listener(self, news: Callable[[], None] | None) -> None:
        """Call `news` whenever data has arrived, for readers that do not wait in `next`."""
        self._news_of = news

    @property
    def has_ended(self) -> bool:
        """True if all has arrived; a message not returned by `take` is never completed."""
        return self._has_all

    @property
    def is_empty(self) -> bool:
        """True if the buffer is empty, while more may arrive."""
        return not self._has_all and not len(self._reader)

    @property
    def has_message(self) -> bool:
        """True if a complete message is in the buffer."""
        return self._reader.is_whole

    def feed(self, data: bytes, *, is_last: bool) -> None:
        """Add received bytes."""
        if data:
            self._reader.feed(data)
        self._has_all = self._has_all or is_last
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._news_of is not None:
            self._news_of()

    def take(self) -> bytes | None:
        """Return the next message; None if it is incomplete.

        Raises OversizedError, IncompleteError. The sender's window grows only when `update_window`
        is called.
        """
        reader = self._reader
        message = reader.take()
        if message is not None:
            size = len(message) + grpc_framing.PREFIX_BYTES
            known = min(size, self._granted)
            self._granted -= known
            self._unsettled += size - known
            return message
        if not self._has_all:
            # A reader that waits for a message accepts all of it.
            self._unsettled += len(reader) - self._granted
            self._granted = len(reader)
        elif len(reader):
            raise IncompleteError(grpc.StatusCode.INTERNAL, "the last message is incomplete")
        return None

    def update_window(self) -> None:
        """Grant the sender a window for what was taken."""
        size = self._unsettled
        if size:
            self._unsettled = 0
            self._connection.consumed(self._stream_id, size)
            self._flush()

    async def next(self) -> bytes | None:
        """Wait for the next message; None after the last.

        Raises OversizedError, IncompleteError.
        """
        if self._in_turn == MESSAGES_PER_ITERATION:
            self._in_turn = 0
            await asyncio.sleep(0)
        self._in_turn += 1
        while (message := self.take()) is None:
            if self._has_all:
                return None
            self.update_window()
            await self._news()
        self.update_window()
        return message

    async def _news(self) -> None:
        self._in_turn = 0
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
