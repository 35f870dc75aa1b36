"""Where the time of a change went, for those that are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.topics.messages import CreateTopics, CreateTopicsReply, NewTopic
from quorate.records.errors import ErrorCode
from quorate.telemetry import tracing
from tests.recorded_spans import Recorded, attributes_of, recorded
from tests.unit.consensus.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.unit.consensus.conftest import Stack

    Open: TypeAlias = Callable[..., Awaitable[Stack]]

PARTS = ["kraft.write.decide", "kraft.write.gather", "kraft.write.commit"]


@pytest.fixture(autouse=True)
def found() -> Iterator[Recorded]:
    """What was recorded; tracing is on before the application is made."""
    with recorded() as spans:
        yield spans


def parts(found: Recorded) -> list[str]:
    return [span.name for span in found.spans if span.name in PARTS]


async def test_a_change_is_decided_gathered_and_committed_below_its_call(
    open_stack: Open, found: Recorded
) -> None:
    stack = await open_stack()
    await stack.register()
    assert parts(found) == []
    with tracing.root("call", {}):
        await stack.create("a")
    await eventually(lambda: len(parts(found)) == 3)
    assert parts(found) == PARTS
    decide, gather, commit = (found.one(name) for name in PARTS)
    call = found.one("call").context
    assert {span.parent.span_id for span in (decide, gather, commit) if span.parent} == {
        call.span_id
    }
    # One part begins where the one before it has ended.
    assert decide.end_time == gather.start_time
    assert gather.end_time == commit.start_time
    decided, gathered = attributes_of(decide), attributes_of(gather)
    assert (decided["kraft.request"], decided["kraft.records"]) == ("CreateTopics", 2)
    assert decided["kraft.offset"] == gathered["kraft.batch.base_offset"]
    assert isinstance(decided["kraft.offset"], int)
    assert gathered["kraft.batch.end_offset"] == decided["kraft.offset"] + 2
    assert not stack.application._writing._spans._writes  # type: ignore[union-attr]


async def test_what_changes_nothing_is_only_decided(open_stack: Open, found: Recorded) -> None:
    stack = await open_stack()
    await stack.register()
    await stack.create("a")
    with tracing.root("call", {}):
        reply = await stack.create("a")
    assert isinstance(reply, CreateTopicsReply)
    assert reply.topics[0].error is ErrorCode.TOPIC_ALREADY_EXISTS
    await eventually(lambda: len(parts(found)) == 1)
    assert parts(found) == ["kraft.write.decide"]
    assert attributes_of(found.one("kraft.write.decide"))["kraft.records"] == 0


async def test_what_is_refused_ends_with_the_reason(
    open_stack: Open, found: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    await stack.register()

    def broken(*_: object) -> Iterator[None]:
        yield
        raise RuntimeError("cannot")

    monkeypatch.setattr(stack.application.controller, "decide_in_slices", broken)
    with tracing.root("call", {}), pytest.raises(ControllerApiError):
        await stack.write(CreateTopics((NewTopic("b"),)))
    await eventually(lambda: len(parts(found)) == 1)
    assert "could not decide" in str(attributes_of(found.one(PARTS[0]))["kraft.refusal"])
