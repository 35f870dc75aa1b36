"""The image of a controller that does not lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.records.ids import Epoch, Millis, Offset, OffsetAndEpoch
from tests.unit.server.conftest import eventually, newest_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_the_metadata_survives_a_restart(open_stack: Open) -> None:
    stack = await open_stack()
    before = stack.application.controller.image.features
    await stack.close()
    again = await open_stack()
    assert again.application.controller.image.features == before


async def test_a_follower_replays_in_the_turn_behind_its_acknowledgement(open_stack: Open) -> None:
    first = await open_stack()
    end = first.driver.store.log.end.offset
    await first.close()
    second = await open_stack(is_active=False)
    told = api.PublishProgress(
        role="follower",
        epoch=Epoch(2),
        leader_id=None,
        is_leader=False,
        epoch_start=None,
        high_watermark=end,
    )
    for _ in range(2):
        second.application.on_progress(told)
        assert second.application.controller.end_offset == 0
    await eventually(lambda: second.application.controller.end_offset > 0)


@pytest.mark.rule("unready_voter_waits")
async def test_who_loads_a_snapshot_is_not_ready_to_lead(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack(snapshot_bytes=1)
    newest = await newest_of(stack)
    told: list[bool] = []
    step = stack.driver.core.step

    def listen(event: api.Event, now_ms: Millis) -> api.Update:
        if isinstance(event, api.StateMachineProgress):
            told.append(event.ready)
        return step(event, now_ms)

    monkeypatch.setattr(stack.driver.core, "step", listen)
    stack.application._standby.load(newest)
    assert not stack.application.is_loaded
    await eventually(lambda: stack.application.is_loaded)
    assert told == [False, True]


async def test_a_refused_snapshot_leaves_what_there_was(open_stack: Open) -> None:
    stack = await open_stack()
    before = stack.application.controller.image
    await stack.application.suspend_storage_access()
    assert not stack.application.is_loaded
    refused = api.SnapshotRefused(OffsetAndEpoch(epoch=Epoch(9), offset=Offset(99)), "crc")
    stack.application.resume_storage_access(refused)
    assert stack.application.is_loaded
    assert stack.application.controller.image.position == before.position
