"""Reads snapshots chunk by chunk in the read thread and verifies them (rule `snapshot_pinning`).

Each chunk is a disk call of its own, with a deadline (rule `disk_call_deadline`), and other reads
go in between. A snapshot that a peer wants to fetch is read to its end first.
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


async def read_in_chunks(driver: RaftDriver, what: str, source: Iterator[T]) -> AsyncIterator[T]:
    """Yield the items of `source`, each produced in the thread. Raises what `source` raises."""
    while (
        piece := await driver.access.read_detached(what, partial(next, source, _END))
    ) is not _END:
        yield piece


class SnapshotVerifier:
    """The verifications in progress of one replica."""

    def __init__(self, driver: RaftDriver, found: Callable[[SnapshotChecked], None]) -> None:
        """Call `found` with the result of each verification."""
        self._driver = driver
        self._found = found
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, effect: CheckSnapshot) -> None:
        """Start to read and verify a snapshot."""
        task = asyncio.get_running_loop().create_task(self._check(effect))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, effect: CheckSnapshot) -> None:
        driver = self._driver
        found: SnapshotChecked | None = None
        try:
            async for step in read_in_chunks(driver, _CHECK, driver.store.check_snapshot(effect)):
                found = step
        except Exception as error:
            driver.fail(error)
            return
        assert found is not None, "what was found comes last"
        self._found(found)

    async def end(self) -> None:
        """Cancel the verifications in progress."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
