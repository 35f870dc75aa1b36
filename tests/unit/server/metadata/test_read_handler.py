"""Answers about the metadata that a controller may give just after its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.topics.messages import ListTopics, ListTopicsReply
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset
from tests.unit.server.conftest import CALLER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from quorate.raft.core import RaftCore
    from quorate.server.metadata.application import MetadataApplication
    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def names(application: MetadataApplication, *, even_if_behind: bool = False) -> list[str]:
    reply = await application.read(
        ListTopics(),
        CALLER,
        min_offset=0,
        current=False,
        timeout_ms=60_000,
        even_if_behind=even_if_behind,
    )
    assert isinstance(reply, ListTopicsReply)
    return [topic.name for topic in reply.topics]


async def test_what_was_not_caught_up_since_the_start_is_refused_and_told_where_it_is_asked_for(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty list of such a controller would pass for the truth."""
    told: list[Offset | None] = [None]
    monkeypatch.setattr(
        "quorate.raft.core.RaftCore.known_high_watermark", property(lambda _: told[0])
    )
    stack = await open_stack()
    await stack.register()
    await stack.create("a")
    with pytest.raises(ControllerApiError, match="has not caught up since its start") as refused:
        await names(stack.application)
    assert refused.value.error is ErrorCode.NOT_CONTROLLER
    assert await names(stack.application, even_if_behind=True) == ["a"]
    end = stack.application.controller.end_offset
    told[0] = Offset(end + 1)
    with pytest.raises(ControllerApiError, match="ask another one"):
        await names(stack.application)
    told[0] = end
    assert await names(stack.application) == ["a"]
    # From then on it may lag, and says by its offset how far.
    told[0] = Offset(end + 1000)
    assert await names(stack.application) == ["a"]


async def test_whoever_names_an_offset_or_wants_the_current_state_needs_no_such_care(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.raft.core.RaftCore.known_high_watermark", property(_nothing))
    stack = await open_stack()
    for min_offset, current in ((1, False), (0, True)):
        reply = await stack.application.read(
            ListTopics(), CALLER, min_offset=min_offset, current=current, timeout_ms=60_000
        )
        assert isinstance(reply, ListTopicsReply)


def _nothing(_: RaftCore) -> None:
    return None
