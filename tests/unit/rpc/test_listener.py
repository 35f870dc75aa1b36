"""A listener ends once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from quorate.rpc.listener import Listener

if TYPE_CHECKING:
    import grpc.aio


class ServerByHand:
    """Counts its stops, and ends when it is let."""

    def __init__(self) -> None:
        self.graces: list[float | None] = []
        self.may_end = asyncio.Event()

    async def stop(self, grace: float | None) -> None:
        self.graces.append(grace)
        await self.may_end.wait()


async def test_who_stops_it_twice_at_once_waits_for_the_first() -> None:
    server = ServerByHand()
    listener = Listener(cast("grpc.aio.Server", server))
    first = asyncio.ensure_future(listener.stop(5.0))
    second = asyncio.ensure_future(listener.stop(1.0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert server.graces == [5.0]
    assert not first.done()
    assert not second.done()
    server.may_end.set()
    await first
    await second
    await listener.stop()
    assert server.graces == [5.0]


async def test_whoever_gives_up_waiting_does_not_undo_the_stop() -> None:
    server = ServerByHand()
    listener = Listener(cast("grpc.aio.Server", server))
    first = asyncio.ensure_future(listener.stop(5.0))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    second = asyncio.ensure_future(listener.stop(None))
    server.may_end.set()
    await second
    assert server.graces == [5.0]
