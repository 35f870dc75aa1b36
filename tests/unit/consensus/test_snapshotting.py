"""Snapshots are taken by size and loaded at the next start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.consensus.snapshotting import Snapshotter
from tests.unit.consensus.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.consensus.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_a_snapshot_is_taken_when_enough_was_committed(open_stack: Open) -> None:
    stack = await open_stack(snapshot_bytes=1)
    await eventually(lambda: stack.snapshotter.newest is not None)
    image = stack.application.controller.image
    stored = stack.driver.store.snapshots.stored()
    assert [info.snapshot_id for info in stored] == [stack.snapshotter.newest]
    assert await stack.snapshotter.load(stored[0].snapshot_id) == image


async def test_a_restart_begins_at_the_snapshot(open_stack: Open) -> None:
    stack = await open_stack(snapshot_bytes=1)
    await eventually(lambda: stack.snapshotter.newest is not None)
    newest, features = stack.snapshotter.newest, stack.application.controller.image.features
    await stack.close()
    again = await open_stack()
    assert again.snapshotter.newest == newest
    assert again.application.controller.image.features == features


async def test_nothing_is_taken_before_it_is_due(open_stack: Open) -> None:
    stack = await open_stack()
    stack.application.tick()
    await stack.snapshotter.abandon()
    assert stack.driver.store.snapshots.stored() == []


@pytest.mark.parametrize(("drawn", "due_bytes"), [(0.0, 1000), (0.5, 850)])
async def test_members_draw_how_far_below_the_bound_they_begin(
    open_stack: Open, drawn: float, due_bytes: int
) -> None:
    """All of them have replayed the same bytes, and would stop for their snapshots together."""
    stack = await open_stack()
    settings = replace(stack.settings, snapshot_bytes=1000)
    snapshotter = Snapshotter(stack.driver, settings, draw=lambda: drawn)
    snapshotter.note(due_bytes - 1)
    snapshotter.consider(stack.application.controller.image)
    await snapshotter.abandon()
    assert snapshotter.newest is None
    snapshotter.note(1)
    snapshotter.consider(stack.application.controller.image)
    await eventually(lambda: snapshotter.newest is not None)
