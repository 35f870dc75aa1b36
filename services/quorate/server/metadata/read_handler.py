"""Serves reads from the committed image; linearizable ones confirm leadership first.

See rule `linearizable_reads`. A rejection that may rest on an old image waits for the same
confirmation by a majority. A controller that has just started rejects plain reads until it has
applied all that was reported committed: before that its "no such topic" would mean nothing. Replies
are built in time slices.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from quorate.api.handlers import ControllerApiError
from quorate.controller.errors import RefusedError
from quorate.raft import api
from quorate.raft.messages import ReadResponse
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset
from quorate.rpc.time_slicer import serving_pace
from quorate.server.metadata.deferred_replies import OffsetWaiters, not_controller

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.authorization.authorizer import Caller
    from quorate.controller.controller import Controller
    from quorate.controller.image import MetadataImage
    from quorate.controller.request_types import ReadReply, ReadRequest
    from quorate.raft.messages import LeaderInfo
    from quorate.records.ids import ReplyToken
    from quorate.server.driver.raft_driver import RaftDriver

READ_TIMEOUT_MS: Final = 30_000
_BEHIND: Final = (
    "this controller has not caught up since its start, and cannot tell what is missing: ask "
    "another one, or wait; --even-if-behind (even_if_behind) has what it has"
)


class ReadHandler:
    """Reads that wait for an image or for the confirmation of a majority; all on the event loop."""

    def __init__(
        self,
        driver: RaftDriver,
        controller: Controller,
        *,
        is_loaded: Callable[[], bool],
        leader: Callable[[], LeaderInfo],
        let_go: Callable[[MetadataImage], None] = lambda _image: None,
    ) -> None:
        """`leader` gives the leader that a rejected client should ask.

        `let_go` gets the image when a read of it has completed, to free what only it references.
        """
        self._let_go = let_go
        self._driver = driver
        self._leader = leader
        self._controller = controller
        self._is_loaded = is_loaded
        self._arrivals = OffsetWaiters()
        self._confirmations: dict[ReplyToken, asyncio.Future[ReadResponse]] = {}
        self._has_been_up_to_date = False

    async def read(
        self,
        request: ReadRequest,
        caller: Caller,
        *,
        min_offset: int,
        current: bool,
        timeout_ms: int,
        even_if_behind: bool,
    ) -> ReadReply:
        """Answer from the committed image, once it covers the offset that is asked for.

        Raises ControllerApiError: timeout; a linearizable read of a controller that does not lead;
        a plain read of a controller that has not caught up since its start; or a caller without
        permission.
        """
        offset = Offset(min_offset)
        if not (offset or current or even_if_behind or self._is_up_to_date()):
            raise not_controller(self._leader(), _BEHIND)
        try:
            async with asyncio.timeout((timeout_ms or READ_TIMEOUT_MS) / 1000):
                if current:
                    offset = max(offset, await self._current_offset())
                if not self._is_loaded() or self._controller.image.position.end_offset < offset:
                    await self._arrivals.wait(offset)
        except TimeoutError:
            reached = self._controller.image.position.end_offset
            raise ControllerApiError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"offset {offset} was not reached in time, this controller stands at {reached}: "
                "ask for a smaller offset, wait longer, or ask another controller",
            ) from None
        return await self._answer(request, caller)

    async def _answer(self, request: ReadRequest, caller: Caller) -> ReadReply:
        image = self._controller.image
        try:
            pace = serving_pace(self._driver.host.cpu_s)
            return await pace.run(self._controller.answer_in_slices(request, caller))
        except RefusedError as refused:
            raise ControllerApiError(refused.error, refused.message) from refused
        finally:
            self._let_go(image)

    def _is_up_to_date(self) -> bool:
        """True if it has ever applied all that was reported committed since the process started.

        Later it may lag again; clients see by how much from the offset in each reply.
        """
        if not self._has_been_up_to_date:
            told = self._driver.core.known_high_watermark
            self._has_been_up_to_date = (
                told is not None and self._is_loaded() and self._controller.end_offset >= told
            )
        return self._has_been_up_to_date

    def on_image_advanced(self) -> None:
        """Complete the waits that the new image satisfies."""
        self._arrivals.reached(self._controller.image.position.end_offset)

    # --- confirmation of leadership ---------------------------------------------------------------

    async def _current_offset(self) -> Offset:
        token, future = self.begin()
        try:
            response = await future
        finally:
            if self._confirmations.pop(token, None) is not None:
                self._driver.deliver(api.CallerDisconnected(token))
        if response.offset is None:
            raise not_controller(response.leader, "only the leader answers a current read")
        return response.offset

    def begin(self) -> tuple[ReplyToken, asyncio.Future[ReadResponse]]:
        """Ask whether this controller leads, and for the offset of a linearizable read."""
        token = self._driver.next_token()
        future: asyncio.Future[ReadResponse] = asyncio.get_running_loop().create_future()
        if self._driver.is_disk_stalled:
            future.set_result(self._refusal())
            return token, future
        self._confirmations[token] = future
        self._driver.deliver(api.ReadRequested(token))
        return token, future

    def cancel(self, token: ReplyToken) -> None:
        """Drop a confirmation whose caller has stopped waiting."""
        self._confirmations.pop(token, None)

    def answered(self, token: ReplyToken, response: ReadResponse) -> None:
        """Take the core's response to `begin`."""
        future = self._confirmations.pop(token, None)
        if future is not None and not future.done():
            future.set_result(response)

    def reject_all(self) -> None:
        """Reject all pending confirmations: the core is blocked and cannot report the leader."""
        for future in tuple(self._confirmations.values()):
            if not future.done():
                future.set_result(self._refusal())

    def _refusal(self) -> ReadResponse:
        return ReadResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, self._leader())

    def close(self) -> None:
        """Cancel the confirmations that will not come."""
        for future in tuple(self._confirmations.values()):
            future.cancel()
