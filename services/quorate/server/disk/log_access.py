"""Serializes log reads, flushes and exclusive changes such as truncation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from quorate.server.disk.executor import DiskCallTracker
from quorate.server.disk.log_flusher import LogFlusher
from quorate.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.server.driver.interfaces import DriverHandle
    from quorate.server.host import Host
    from quorate.storage.log.metadata_log import MetadataLog

T = TypeVar("T")


class LogAccess:
    """The calls to one disk: exclusive changes of the log wait for reads and flushes."""

    def __init__(self, driver_handle: DriverHandle, log: MetadataLog, host: Host) -> None:
        self._driver_handle = driver_handle
        self._loop = asyncio.get_running_loop()
        self.calls = DiskCallTracker(self._loop.time)
        self.disk = host.disk_queue("disk", self.calls)
        self._reader = host.disk_queue("read", self.calls)
        self._reads: dict[asyncio.Future[Any], asyncio.Future[Any]] = {}
        self.flushing = LogFlusher(driver_handle, log, host, self.calls, self.disk)
        self.is_exclusive = False

    def read_detached(self, what: str, work: Callable[[], T]) -> asyncio.Future[T]:
        """Read something from the disk, concurrently with everything else."""
        return self._reader.run(what, work)

    def read(
        self, what: str, work: Callable[[], T], answer: asyncio.Future[T] | None = None
    ) -> asyncio.Future[T]:
        """Read from the log's directory; exclusive changes of the log wait for it.

        The future is cancelled if the read fails: then this node ends.
        """
        answer = self._loop.create_future() if answer is None else answer
        read = self._reader.run(what, work)
        self._reads[read] = answer
        read.add_done_callback(self._was_read)
        return answer

    def _was_read(self, read: asyncio.Future[Any]) -> None:
        answer = self._reads.pop(read)
        error = read.exception()
        if error is None:
            if not answer.done():
                answer.set_result(read.result())
            return
        answer.cancel()
        if isinstance(error, StorageError):
            self._driver_handle.on_damage(str(error))
        elif isinstance(error, Exception):
            self._driver_handle.fail(error)

    async def run_exclusive(self, what: str, work: Callable[[], T]) -> T:
        """Change the log while no flush or read is in flight."""
        self.is_exclusive = True
        try:
            await self._over()
            return await self.disk.run(what, work)
        finally:
            self.is_exclusive = False

    async def _over(self) -> None:
        await self.flushing.wait_idle()
        if self._reads:
            await asyncio.wait(self._reads)

    # --- the end ----------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Cancel the futures of all reads."""
        for answer in self._reads.values():
            answer.cancel()

    async def wait_idle(self) -> None:
        """Wait until the disk has completed all outstanding calls."""
        await self._over()
        await self.disk.run("the last call", lambda: None)

    def close(self) -> None:
        """Accept no more calls."""
        for thread in (self.flushing, self.disk, self._reader):
            thread.close()
