"""A sidecar that never could read its StatefulSet has not started, and is not ready in the end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from quorate.admin.service import UNREAD_S, _watch_statefulset
from quorate.admin.statefulset import StopIntentReader
from quorate.rpc.health import READINESS, STARTUP
from tests.unit.admin.api_servers import StandIn, api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

__all__ = ["api"]
FOUND = {"metadata": {"name": "q"}, "spec": {"replicas": 3}}


class Health:
    """Keeps the last health status of each service."""

    def __init__(self) -> None:
        self.serving: dict[str, bool] = {STARTUP: False, READINESS: False}
        self._changed = asyncio.Condition()

    async def set(self, service: str, *, serving: bool) -> None:
        async with self._changed:
            self.serving[service] = serving
            self._changed.notify_all()

    async def becomes(self, *, started: bool, ready: bool) -> None:
        wanted = {STARTUP: started, READINESS: ready}
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: self.serving == wanted)


@asynccontextmanager
async def watched(pod: StopIntentReader | None) -> AsyncIterator[Health]:
    health = Health()
    watching = asyncio.create_task(_watch_statefulset(pod, health))  # type: ignore[arg-type]
    try:
        yield health
    finally:
        watching.cancel()


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.admin.service.LOOK_S", 0.01)
    monkeypatch.setattr("quorate.admin.service.LOOK_UNREAD_S", 0.01)


async def test_outside_of_a_pod_it_is_ready_at_once() -> None:
    async with watched(None) as health:
        await health.becomes(started=True, ready=True)


async def test_it_starts_once_it_has_read_and_stays_started(api: StandIn, tmp_path: Path) -> None:
    now_s = 100.0
    api.status = 403
    pod = StopIntentReader(api.at(tmp_path), 2, clock=lambda: now_s)
    async with watched(pod) as health:
        # A short failure is not a reason: the API server may be slow.
        await health.becomes(started=False, ready=True)
        now_s += UNREAD_S
        await health.becomes(started=False, ready=False)
        api.status, api.answer = 200, FOUND
        await health.becomes(started=True, ready=True)
        api.status = 503
        while pod.unread_s == 0.0:
            now_s += 1.0
            await asyncio.sleep(0)
        now_s += UNREAD_S
        await health.becomes(started=True, ready=False)
