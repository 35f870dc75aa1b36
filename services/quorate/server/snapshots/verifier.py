"""Snapshots read piece by piece in the thread for reads, and checked (rule 30).

Each piece is a call to the disk of its own, with a deadline (rule 24), and what else there is to
read goes in between. Those that others want to fetch are read to their end first.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from quorate.raft.api import CheckSnapshot, SnapshotChecked
    from quorate.server.driver.raft_driver import RaftDriver

T = TypeVar("T")
_CHECK: Final = "the check of a snapshot"
_END: Final = object()


async def pieces(driver: RaftDriver, what: str, source: Iterator[T]) -> AsyncIterator[T]:
    """What `source` gives, each item made in the thread. Raises what it raises."""
    while (piece := await driver.access.look(what, partial(next, source, _END))) is not _END:
        yield piece


class SnapshotChecks:
    """The checks under way of one replica."""

    def __init__(self, driver: RaftDriver, found: Callable[[SnapshotChecked], None]) -> None:
        """`found` is told what a snapshot is like."""
        self._driver = driver
        self._found = found
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, effect: CheckSnapshot) -> None:
        """Read a snapshot from now on."""
        task = asyncio.get_running_loop().create_task(self._check(effect))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, effect: CheckSnapshot) -> None:
        driver = self._driver
        found: SnapshotChecked | None = None
        try:
            async for step in pieces(driver, _CHECK, driver.store.check_snapshot(effect)):
                found = step
        except Exception as error:
            driver.fail(error)
            return
        assert found is not None, "what was found comes last"
        self._found(found)

    async def end(self) -> None:
        """Nobody waits for them any more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
