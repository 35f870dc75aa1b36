from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from quorate.controller.topics.messages import CreateTopics, NewTopic
from quorate.raft.messages import DescribeQuorumRequest
from quorate.records.columnar.pieces import PIECE_RECORDS
from quorate.server.driver.raft_driver import ExitReason
from quorate.server.metadata.log_replay import LogReplay
from quorate.storage.errors import DamagedLogError
from quorate.storage.log_store import LogStore
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest

    from quorate.raft.messages import LogRange
    from quorate.records.ids import Offset
    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_replay_lets_others_run_in_between(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await open_stack()
    await first.register()
    for name in ("a", "b", "c"):
        await first.create(name)
    await first.close()
    ends: list[Offset] = []
    go_on = LogReplay.replay_slice

    def noting(replay: LogReplay, high_watermark: Offset) -> None:
        go_on(replay, high_watermark)
        ends.append(second.application.controller.end_offset)

    monkeypatch.setattr(LogReplay, "replay_slice", noting)
    monkeypatch.setattr("quorate.server.metadata.log_replay.SLICE_MS", 0)
    second = await open_stack(is_active=False)
    await eventually(lambda: second.application.controller.is_active)
    assert await second.topic_count() == 3
    # One batch at a time.
    assert len(set(ends)) > len(("register", "unfence", "a", "b", "c"))
    assert ends == sorted(ends)


async def test_a_large_batch_is_replayed_in_slices_and_seen_whole(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = 4 * PIECE_RECORDS
    first = await open_stack()
    await first.register()
    await first.write(CreateTopics((NewTopic("large", partitions, 1),)))
    image = first.application.controller.image
    await first.close()
    seen: list[int] = []
    go_on = LogReplay.replay_slice

    def noting(replay: LogReplay, high_watermark: Offset) -> None:
        go_on(replay, high_watermark)
        seen.append(second.application.controller.image.topics.partition_count)

    monkeypatch.setattr(LogReplay, "replay_slice", noting)
    monkeypatch.setattr("quorate.server.metadata.log_replay.SLICE_MS", 0)
    second = await open_stack(is_active=False)
    await eventually(lambda: second.application.controller.is_active)
    assert set(seen) == {0, partitions}
    assert seen.count(0) >= 4
    assert second.application.controller.image.topics == image.topics


async def test_a_batch_that_was_dropped_half_way_is_replayed_anew(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await open_stack()
    await first.register()
    await first.write(CreateTopics((NewTopic("large", 4 * PIECE_RECORDS, 1),)))
    image = first.application.controller.image
    await first.close()
    turns: Counter[Offset] = Counter()
    go_on = LogReplay.replay_slice

    def dropping(replay: LogReplay, high_watermark: Offset) -> None:
        go_on(replay, high_watermark)
        end = second.application.controller.end_offset
        turns[end] += 1
        if turns[end] == 2:
            # As an installed snapshot does.
            replay.discard_partial_batch()

    monkeypatch.setattr(LogReplay, "replay_slice", dropping)
    monkeypatch.setattr("quorate.server.metadata.log_replay.SLICE_MS", 0)
    second = await open_stack(is_active=False)
    await eventually(lambda: second.application.controller.is_active)
    assert max(turns.values()) >= 2 + 4
    assert second.application.controller.image.topics == image.topics


async def test_a_replay_that_the_disk_holds_up_holds_up_nobody_else(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await open_stack()
    await first.register()
    await first.create("a")
    await first.close()
    opens = threading.Event()
    read_range = LogStore.read_range

    def waiting(store: LogStore, span: LogRange) -> bytes:
        opens.wait()
        return read_range(store, span)

    monkeypatch.setattr(LogStore, "read_range", waiting)
    second = await open_stack(is_active=False)

    def waits() -> bool:
        oldest = second.driver.access.calls.oldest()
        return oldest is not None and oldest.what == "a replay"

    try:
        await eventually(waits)
        _, answer = second.driver.submit(DescribeQuorumRequest())
        await answer
        assert not second.application.controller.is_active
    finally:
        opens.set()
    await eventually(lambda: second.application.controller.is_active)
    assert await second.topic_count() == 1


async def test_a_replay_that_the_disk_does_not_give_ends_the_node_and_raises_nothing(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await open_stack()
    await first.register()
    await first.create("a")
    await first.close()

    def damaged(store: LogStore, span: LogRange) -> bytes:
        raise DamagedLogError("a batch does not check")

    raised: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: raised.append(context))
    monkeypatch.setattr(LogStore, "read_range", damaged)
    second = await open_stack(is_active=False)
    assert await asyncio.wait_for(second.ended, 60) is ExitReason.DAMAGED
    assert raised == []
