"""A listener ends once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from quorate.h2.name_resolver import RESOLVER, NameLookupError
from quorate.rpc import listener as module
from quorate.rpc.listener import _QUIET_S as QUIET_S
from quorate.rpc.listener import GrpcListener, bound_addresses
from quorate.rpc.security.authorization import ALLOW_ALL, CallerInterceptor
from quorate.settings.properties import ConfigError

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


def listener_of(server: ServerByHand, guard: CallerInterceptor | None = None) -> GrpcListener:
    return GrpcListener(cast("grpc.aio.Server", server), guard or CallerInterceptor(ALLOW_ALL, {}))


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


class Clock:
    """A clock that advances while the listener sleeps, during which these calls come."""

    def __init__(self, guard: CallerInterceptor, calls_s: list[float]) -> None:
        self.now_s = 0.0
        self._guard, self._calls_s = guard, calls_s

    def monotonic(self) -> float:
        return self.now_s

    async def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s
        came_s = [at_s for at_s in self._calls_s if at_s <= self.now_s]
        self._guard.last_call_at = max(came_s, default=0.0)


@pytest.mark.parametrize(
    ("grace_s", "last_call_s", "stopped_s"),
    [(None, 60.0, 0.0), (20.0, 60.0, 20.0), (20.0, 5.0, 5.0 + QUIET_S)],
    ids=["without a grace at once", "at its end", "when they cease"],
)
async def test_calls_are_taken_until_they_cease_or_the_grace_is_over(
    grace_s: float | None, last_call_s: float, stopped_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls move when they are answered; the grace is for those that continue."""
    guard, server = CallerInterceptor(ALLOW_ALL, {}), ServerByHand()
    every_s = QUIET_S / 2
    calls_s = [last_call_s - every_s * number for number in range(int(last_call_s / every_s))]
    clock = Clock(guard, calls_s)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(asyncio, "sleep", clock.sleep)
    server.may_end.set()
    await listener_of(server, guard).stop(grace_s)
    assert server.graces == [grace_s]
    assert clock.now_s == pytest.approx(stopped_s)


async def test_a_host_to_listen_on_becomes_all_its_addresses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def resolve(host: str, *, limit_s: float) -> tuple[str, ...]:
        assert limit_s > 0
        if host not in found:
            raise NameLookupError(f"{host} cannot be resolved: no address")
        return found[host]

    # 192.0.2.0/24 belongs to no machine.
    found = {
        "own.example": ("127.0.0.2", "127.0.0.1"),
        "half.example": ("192.0.2.1", "127.0.0.1"),
        "other.example": ("192.0.2.1",),
    }

    monkeypatch.setattr(RESOLVER, "resolve", resolve)
    assert await bound_addresses("listeners", "", 9094) == ("",)
    assert await bound_addresses("listeners", "own.example", 9094) == ("127.0.0.2", "127.0.0.1")
    # Taking the port says what is wrong with it.
    assert await bound_addresses("listeners", "other.example", 9094) == ("192.0.2.1",)
    assert not caplog.records
    assert await bound_addresses("listeners", "half.example", 9094) == ("127.0.0.1",)
    assert "listeners: half.example does not listen on 192.0.2.1" in caplog.text
    with pytest.raises(ConfigError, match=r"listeners: gone:9094 .*gone cannot be resolved"):
        await bound_addresses("listeners", "gone", 9094)
