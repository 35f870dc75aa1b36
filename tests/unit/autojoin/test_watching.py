"""What wakes the operator, and what does not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import kopf

from quorate.autojoin.watching import digest, registry_of, settings_of, watch

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
