"""A listener ends once."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, cast

import pytest

from quorate.rpc import listener as module
from quorate.rpc.authorization import CallerInterceptor
from quorate.rpc.listener import Listener

if TYPE_CHECKING:
    import grpc.aio


class ServerByHand:
    """Counts its stops, and ends when it is let."""

    def __init__(self) -> None:
        self.graces: list[float | None] = []
        self.is_stopping = asyncio.Event()
        self.may_end = asyncio.Event()

    async def stop(self, grace: float | None) -> None:
        self.graces.append(grace)
        self.is_stopping.set()
        await self.may_end.wait()


def listener_of(server: ServerByHand, guard: CallerInterceptor | None = None) -> Listener:
    return Listener(cast("grpc.aio.Server", server), guard or CallerInterceptor(None))


async def test_who_stops_it_twice_at_once_waits_for_the_first() -> None:
    server = ServerByHand()
    listener = listener_of(server)
    first = asyncio.ensure_future(listener.stop(5.0))
    second = asyncio.ensure_future(listener.stop(1.0))
    await server.is_stopping.wait()
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
    listener = listener_of(server)
    first = asyncio.ensure_future(listener.stop(5.0))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    second = asyncio.ensure_future(listener.stop(None))
    server.may_end.set()
    await second
    assert server.graces == [5.0]


@pytest.mark.parametrize("grace_s", [None, 0.2])
async def test_calls_are_taken_until_they_cease_or_the_grace_is_over(
    grace_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a grace at once; with one at its end, where calls do not cease."""
    monkeypatch.setattr(module, "_QUIET_S", 60.0)
    server = ServerByHand()
    server.may_end.set()
    begun = time.monotonic()
    await listener_of(server).stop(grace_s)
    assert time.monotonic() - begun >= (grace_s or 0.0)
    assert server.graces == [grace_s]


async def test_whoever_falls_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls move when they are answered; the grace is for those that go on."""
    monkeypatch.setattr(module, "_QUIET_S", 0.02)
    guard, server = CallerInterceptor(None), ServerByHand()
    server.may_end.set()
    stopping = asyncio.ensure_future(listener_of(server, guard).stop(60.0))
    for _ in range(5):
        await asyncio.sleep(0.005)
        guard.last_call_at = time.monotonic()
    last_call_at = guard.last_call_at
    await stopping
    assert time.monotonic() - last_call_at >= 0.02
