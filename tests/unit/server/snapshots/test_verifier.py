"""Snapshots that a peer wants to fetch are read in parallel with other work."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from quorate.raft.api import CheckSnapshot
from quorate.server.snapshots.verifier import read_in_chunks
from tests.unit.server.conftest import hanging_call, newest_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_a_check_that_hangs_is_told_of_and_holds_up_nothing(
    open_stack: Open, gate: threading.Event
) -> None:
    others = set(threading.enumerate())
    gate.set()
    stack = await open_stack(snapshot_bytes=1)
    newest = await newest_of(stack)
    gate.clear()
    stack.application.check_snapshot(CheckSnapshot(newest))
    await hanging_call(stack, "the check of a snapshot")
    await stack.register()
    await stack.snapshotter.end_checks()
    # The interpreter waits at its end for every thread that is not a daemon.
    assert [t for t in threading.enumerate() if not t.daemon and t not in others] == []


async def test_each_piece_is_a_call_of_its_own(open_stack: Open) -> None:
    stack = await open_stack()
    threads: list[str] = []

    def source() -> Iterator[int]:
        for number in range(3):
            threads.append(threading.current_thread().name)
            yield number
        raise ValueError("no more")

    items = read_in_chunks(stack.driver, "a test", source())
    assert [await anext(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="no more"):
        await anext(items)
    assert threads == ["read"] * 3
