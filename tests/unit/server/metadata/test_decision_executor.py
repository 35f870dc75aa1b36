from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.authorization.authorizer import Caller
from quorate.controller.topics.create_topics import SLICE_PARTITIONS
from quorate.controller.topics.messages import CreateTopics, CreateTopicsReply, NewTopic
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch
from quorate.server.host import Host
from quorate.server.metadata import decision_executor as deciding
from tests.unit.server.conftest import CALLER, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from quorate.controller.request_types import WriteReply
    from quorate.records.ids import Offset
    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]

LARGE = CreateTopics((NewTopic("large", 10 * SLICE_PARTITIONS, 1),))


def small(count: int) -> list[CreateTopics]:
    """Requests that are decided immediately, if nothing else waits."""
    return [CreateTopics((NewTopic(f"topic-{number}", 3, 1),)) for number in range(count)]


@pytest.fixture
async def stack(open_stack: Open) -> Stack:
    """A controller that leads, with a broker."""
    opened = await open_stack()
    await opened.register()
    return opened


@pytest.fixture
def no_time_at_once(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each decision of that controller continues in the queue's task after its first slice."""
    assert not stack.application.controller.is_deciding
    monkeypatch.setattr(deciding, "INLINE_BUDGET_S", 0)


def ticking(monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    """Each look at the clock of the CPU tells that so much time was used."""
    ticks = itertools.count(1)
    monkeypatch.setattr(Host, "cpu_s", lambda _: next(ticks) * step_s)


async def all_created(futures: Sequence[Awaitable[WriteReply]]) -> None:
    for reply in await asyncio.gather(*futures):
        assert isinstance(reply, CreateTopicsReply)
        assert reply.topics[0].error is ErrorCode.NONE


@pytest.mark.usefixtures("no_time_at_once")
async def test_a_large_request_pauses_and_the_next_waits_for_its_decision(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However fast the machine is, each unit of the work is a slice.
    monkeypatch.setattr(deciding, "SLICE_S", 0.0)
    monkeypatch.setattr(
        "quorate.controller.topics.new_partition_rows._CELLS_SLICE", 8 * SLICE_PARTITIONS
    )
    large = stack.application.write(LARGE, CALLER)
    again = stack.application.write(LARGE, CALLER)
    turns = 0
    while stack.application.controller.is_deciding:
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 10
    first, second = await asyncio.gather(large, again)
    assert isinstance(first, CreateTopicsReply)
    assert isinstance(second, CreateTopicsReply)
    assert first.topics[0].error is ErrorCode.NONE
    assert second.topics[0].error is ErrorCode.TOPIC_ALREADY_EXISTS
    assert stack.application.controller.image.topics.partition_count == 10 * SLICE_PARTITIONS


@pytest.mark.usefixtures("no_time_at_once")
async def test_what_is_not_decided_when_leadership_ends_has_not_happened(stack: Stack) -> None:
    waiting = [stack.application.write(LARGE, CALLER) for _ in range(2)]
    before = stack.driver.progress
    assert before is not None
    stack.application.on_progress(replace(before, epoch=Epoch(before.epoch + 1), is_leader=False))
    for future in waiting:
        with pytest.raises(ControllerApiError) as refused:
            await future
        assert refused.value.error is ErrorCode.NOT_CONTROLLER
        assert not refused.value.outcome_unknown


@pytest.mark.usefixtures("no_time_at_once")
async def test_who_waited_and_how_long_each_decision_took_is_counted(stack: Stack) -> None:
    deciding = stack.application._write_handler.decision_executor
    decided, waited = deciding.durations.count, deciding.waits.count
    writes = [stack.application.write(LARGE, CALLER) for _ in range(3)]
    assert deciding.queue_size == 3
    writes[1].cancel()
    await writes[2]
    # The first found an empty queue, and a caller that has gone is not decided on.
    assert (deciding.durations.count, deciding.waits.count) == (decided + 2, waited + 1)
    assert deciding.queue_size == 0


@pytest.mark.usefixtures("no_time_at_once")
async def test_clients_take_turns_while_large_requests_wait(stack: Stack) -> None:
    bulk, other = (Caller("User:test", client=name) for name in ("ipv4:10.0.0.1", "ipv4:10.0.0.2"))
    answered: list[str] = []

    def ask(name: str, caller: Caller) -> asyncio.Future[WriteReply]:
        request = CreateTopics((NewTopic(name, 10 * SLICE_PARTITIONS, 1),))
        future = stack.application.write(request, caller)
        future.add_done_callback(lambda _: answered.append(name))
        return future

    creations = [ask(f"bulk-{number}", bulk) for number in range(5)]
    await asyncio.gather(*creations, ask("other", other))
    # The first was in progress when the other client came.
    assert answered.index("other") <= 2
    assert [name for name in answered if name != "other"] == [f"bulk-{n}" for n in range(5)]


async def test_decisions_wait_for_commits_when_they_are_far_ahead(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack.application._write_handler.decision_executor, "_ahead_max", 2)
    part = stack.application._write_handler.decision_executor
    ends: list[Offset] = []
    begin = part._begin

    def noting(*asked: Any) -> Any:  # noqa: ANN401 - as it is
        high_watermark = stack.driver.high_watermark
        assert high_watermark is not None
        assert part._end is None or part._end - high_watermark < 2
        ends.append(high_watermark)
        return begin(*asked)

    monkeypatch.setattr(part, "_begin", noting)
    futures = [stack.application.write(each, CALLER) for each in small(5)]
    assert part.queue_size == 4
    await all_created(futures)
    assert len(set(ends)) == 5


async def test_what_comes_together_has_one_turn_and_its_client_is_charged_for_it(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = stack.application._write_handler.decision_executor
    charged: list[float] = []
    ticking(monkeypatch, deciding.INLINE_BUDGET_S / 8)
    monkeypatch.setattr(part.queue, "charge", lambda _, seconds: charged.append(seconds))
    futures = stack.application._write_handler.write(small(20), CALLER)
    assert 10 <= part.queue_size < 20
    assert len(charged) == 1
    assert charged[0] >= deciding.INLINE_BUDGET_S
    await all_created(futures)


async def test_what_comes_together_is_not_decided_far_ahead(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack.application._write_handler.decision_executor, "_ahead_max", 2)
    futures = stack.application._write_handler.write(small(5), CALLER)
    assert stack.application._write_handler.decision_executor.queue_size == 4
    await asyncio.gather(*futures)


@pytest.mark.usefixtures("no_time_at_once")
async def test_a_decision_that_goes_on_is_charged_for_its_first_part(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = stack.application._write_handler.decision_executor
    ticking(monkeypatch, 1)
    future = stack.application.write(LARGE, CALLER)
    assert part._under_way is not None
    assert part._under_way.used_s >= 1
    future.cancel()


async def test_a_new_leader_is_not_far_ahead_of_its_first_commit_either(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = stack.application
    application._activation.step_down(None)
    monkeypatch.setattr(stack.application._write_handler.decision_executor, "_ahead_max", 2)
    commit = application._activation.commit
    monkeypatch.setattr(application._activation, "commit", lambda _: None)
    application.on_log_changed()
    assert application.controller.is_active
    futures = [application.write(each, CALLER) for each in small(5)]
    for _ in range(100):
        await asyncio.sleep(0)
    waiting = application._write_handler.decision_executor.queue_size
    monkeypatch.setattr(application._activation, "commit", commit)
    high_watermark = stack.driver.high_watermark
    assert high_watermark is not None
    commit(high_watermark)
    await asyncio.gather(*futures)
    assert waiting == 4


@pytest.mark.usefixtures("no_time_at_once")
async def test_one_request_too_many_is_refused_for_now(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.server.metadata.decision_queue.CLIENT_WAITING_MAX", 1)
    writes = [stack.application.write(LARGE, CALLER) for _ in range(3)]
    with pytest.raises(ControllerApiError, match="try again") as refused:
        await writes[2]
    assert refused.value.error is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert not refused.value.outcome_unknown
    await asyncio.gather(*writes[:2])


@pytest.mark.usefixtures("no_time_at_once")
async def test_what_is_due_has_its_turn_between_two_decisions(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[int] = []
    part = stack.application._write_handler
    monkeypatch.setattr(
        part.periodic_tasks, "catch_up", lambda: waiting.append(part.decision_executor.queue_size)
    )
    await asyncio.gather(*(stack.application.write(LARGE, CALLER) for _ in range(3)))
    await eventually(lambda: 0 in waiting)
    assert waiting == [2, 1, 0]
