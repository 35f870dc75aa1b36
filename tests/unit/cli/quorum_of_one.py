"""A controller that commits immediately, and a client and a follower of it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from tests.unit.controller.conftest import Cluster

if TYPE_CHECKING:
    from quorate.client.controller_client import ControllerClient
    from quorate.client.metadata_follower import MetadataFollower
    from quorate.controller.image import MetadataImage
    from quorate.controller.request_types import WriteRequest
    from quorate.records.ids import Offset


class QuorumOfOne:
    """Both of them in one; `failures` are raised by the next writes, after they were decided."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.asked: list[WriteRequest] = []
        self.failures: deque[Exception] = deque()
        self.is_refused = False
        self._moved = asyncio.Event()

    @property
    def client(self) -> ControllerClient:
        return cast("ControllerClient", self)

    @property
    def follower(self) -> MetadataFollower:
        return cast("MetadataFollower", self)

    async def write(self, request: WriteRequest) -> Any:  # noqa: ANN401 - each has its own reply
        self.asked.append(request)
        reply = self.cluster.ask(request)
        self.cluster.settle()
        await asyncio.sleep(0)
        self.move()
        if self.failures:
            raise self.failures.popleft()
        return reply

    def move(self) -> None:
        """Notify all who wait for the image."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    @property
    def image(self) -> MetadataImage:
        return self.cluster.image

    @property
    def end_offset(self) -> Offset:
        return self.image.position.end_offset

    async def moved(self) -> None:
        await self._moved.wait()

    async def catch_up(self) -> None:
        await asyncio.sleep(0)
