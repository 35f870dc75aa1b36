"""The phases of a change's time, for changes that are recorded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.topics.messages import CreateTopics, CreateTopicsReply, NewTopic
from quorate.raft.api import RequestReceived
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Millis, ReplyToken
from quorate.server.tracing.write_spans import WriteSpans
from quorate.telemetry import tracing
from tests.recorded_spans import Recorded, attributes_of, operation_of, recorded
from tests.unit.raft import cores
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from quorate.controller.request_types import WriteReply
    from quorate.raft.messages import FetchRequest
    from tests.unit.server.conftest import Stack

    Open: TypeAlias = Callable[..., Awaitable[Stack]]

PARTS = ["kraft.write.decide", "kraft.write.gather", "kraft.write.commit"]


@pytest.fixture(autouse=True)
def found() -> Iterator[Recorded]:
    """The recorded spans; tracing is on before the application is made."""
    with recorded() as spans:
        yield spans


def parts(found: Recorded) -> list[str]:
    return [name for span in found.spans if (name := operation_of(span)) in PARTS]


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
    call = found.one("CreateTopics").context
    assert {span.parent.span_id for span in (decide, gather, commit) if span.parent} == {
        call.span_id
    }
    # The only voter is the majority.
    flush = found.one("kraft.write.flush")
    assert flush.name == "flush by 1"
    assert flush.parent is not None
    assert flush.parent.span_id == commit.context.span_id
    assert flush.start_time == commit.start_time
    assert (flush.end_time or 0) <= (commit.end_time or 0)
    # One part begins where the one before it has ended.
    assert decide.end_time == gather.start_time
    assert gather.end_time == commit.start_time
    decided, gathered = attributes_of(decide), attributes_of(gather)
    assert (decided["kraft.request"], decided["kraft.records"]) == ("CreateTopics", 2)
    assert decided["kraft.offset"] == gathered["kraft.batch.base_offset"]
    assert isinstance(decided["kraft.offset"], int)
    assert gathered["kraft.batch.end_offset"] == decided["kraft.offset"] + 2
    assert not stack.application._write_handler._spans._writes  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("fetch", "flushed"),
    [
        (cores.fetch(2, 3, 1), [2]),
        (cores.fetch(2, 2, 1), []),
        # The leader refuses what is of another epoch, log or cluster, and believes none of it.
        (cores.fetch(2, 3, 1, epoch=0), []),
        (cores.fetch(2, 100, 0), []),
        (replace(cores.fetch(2, 3, 1), cluster_id=ClusterId("another")), []),
        # An observer has it, too, and that commits nothing.
        (cores.fetch(9, 3, 1), []),
        (replace(cores.fetch(2, 3, 1), replica=None), []),
    ],
)
def test_a_fetch_of_a_voter_says_what_it_has_flushed(
    found: Recorded, fetch: FetchRequest, flushed: list[int]
) -> None:
    core = cores.leader(1, 1, 2, 3)
    active = tracing.active()
    assert active is not None
    spans = WriteSpans(active, core.replica)
    loop = asyncio.new_event_loop()
    futures: list[asyncio.Future[WriteReply]] = [loop.create_future() for _ in range(2)]
    with tracing.root("call", {}):
        for future in futures:
            spans.asked(future)
    on_its_way, gathered = (spans._writes[future] for future in futures)
    on_its_way.part, on_its_way.end_offset = "kraft.write.commit", 3
    gathered.part, gathered.end_offset = "kraft.write.gather", 3
    event = RequestReceived(ReplyToken(1), fetch)
    spans.stepped(event, core.step(event, Millis(2100)))
    first = dict(on_its_way.flushed)
    # The first that says it counts.
    again = RequestReceived(ReplyToken(2), fetch)
    spans.stepped(again, core.step(again, Millis(2200)))
    assert on_its_way.flushed == first
    for future in futures:
        future.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    told = [attributes_of(span)["kraft.voter.id"] for span in found.named("kraft.write.flush")]
    assert told == list(first) == flushed
    assert not spans._writes


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
