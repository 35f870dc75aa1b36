"""Events that wake the operator, and events that do not."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import kopf

from quorate.autojoin.watches import digest, registry_of, settings_of, watch

if TYPE_CHECKING:
    import pytest


def body(**changes: object) -> dict[str, object]:
    return {
        "metadata": {"uid": "u", "generation": 1, "annotations": {"quorate/memory": "x"}} | changes,
        "status": {"updateRevision": "r", "replicas": 3},
    }


def test_what_the_operator_notes_is_no_news() -> None:
    assert digest(body()) == digest(body(annotations={"quorate/memory": "y"}))
    assert digest(body()) != digest(body(generation=2))
    assert digest(body()) != digest(body(annotations={"quorate/paused": "true"}))
    assert digest(body()) != digest(body(deletionTimestamp="now"))


def test_nothing_of_it_writes_into_an_object() -> None:
    registry = registry_of("q", lambda: None)
    assert isinstance(registry, kopf.OperatorRegistry)
    assert not list(registry._spawning.get_all_handlers())
    assert not list(registry._changing.get_all_handlers())
    assert len(list(registry._watching.get_all_handlers())) == 2


def test_it_asks_for_nothing_beyond_its_namespace() -> None:
    settings = settings_of()
    assert settings.scanning.disabled
    assert settings.peering.standalone
    assert not settings.posting.enabled


async def test_a_user_without_a_name_may_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    async def operator(**how: object) -> None:
        asked.update(how)

    monkeypatch.setattr(kopf, "operator", operator)
    await watch("q", "ns", lambda: None, asyncio.Event())
    # Left out, kopf asks for the user's name, which a number in an image does not have.
    assert asked["identity"] == "q"
    assert asked["namespaces"] == ["ns"]
    assert asked["standalone"] is True


async def test_a_signal_is_a_stop_although_kopf_takes_the_signals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[int] = []

    async def operator(*, ready_flag: asyncio.Event, stop_flag: asyncio.Event, **_: object) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, taken.append, signal.SIGTERM)
        ready_flag.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)
        while not (taken or stop_flag.is_set()):  # noqa: ASYNC110 - kopf knows no event of both
            await asyncio.sleep(0)

    monkeypatch.setattr(kopf, "operator", operator)
    stop = asyncio.Event()
    await watch("q", "ns", lambda: None, stop)
    assert stop.is_set()
    assert not taken
