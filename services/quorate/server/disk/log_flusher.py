"""Flushes the log, one flush at a time, in parallel with everything else.

The flushed end, which each flush writes, is synced within SYNC_AFTER_MS of it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.raft import api
from quorate.server.disk.flush_latency import FlushLatency
from quorate.storage.flushed_end import SYNC_AFTER_MS

if TYPE_CHECKING:
    from quorate.server.disk.executor import DiskCallTracker, DiskExecutor
    from quorate.server.driver.interfaces import DriverHandle
    from quorate.server.host import Host
    from quorate.storage.log.metadata_log import FlushTicket, MetadataLog

# Seconds; a fast disk takes a fraction of this. The loop does not wait for a slower one.
INLINE_WAIT_S: Final = 0.002
# Seconds that the next batch waits for the flush of the last one.
BATCH_WAIT_MAX_S: Final = 0.005
# The only call in the shared queue that no caller waits for.
SYNCING_END: Final = "the flush of flushed-end"


class LogFlusher:
    """The flushes of one log."""

    def __init__(
        self,
        driver_handle: DriverHandle,
        log: MetadataLog,
        host: Host,
        calls: DiskCallTracker,
        disk: DiskExecutor,
    ) -> None:
        """`disk` is the queue for calls that may wait behind other calls."""
        self.times = FlushLatency(host.work_s)
        self._driver_handle = driver_handle
        self._log = log
        self._disk = disk
        self._loop = asyncio.get_running_loop()
        self._thread = host.disk_queue("flush", calls)
        self._flight: asyncio.Future[None] | None = None
        self._is_due = False
        self._began_s = 0.0
        self._syncing: asyncio.TimerHandle | None = None

    @property
    def is_flushing(self) -> bool:
        return self._flight is not None or self._is_due

    @property
    def max_wait_s(self) -> float:
        """Seconds that the next batch should wait for the flush in flight; 0 for no wait."""
        if not self.is_flushing:
            return 0.0
        return max(0.0, self._began_s + BATCH_WAIT_MAX_S - self._loop.time())

    def begin(self, *, leads: bool) -> bool:
        """Begin to flush what was written, unless a flush is in flight; True if completed."""
        if self.is_flushing or not self._log.is_dirty:
            return False
        self._began_s = self._loop.time()
        if not leads and self.times.is_fast:
            ticket = self._log.begin_flush()
            assert ticket is not None, "there is something to flush"
            flight = self._run(ticket, wait_s=INLINE_WAIT_S)
            if flight.done():
                flight.result()
                self._finish(ticket)
                return True
            self._await(flight, ticket)
            return False
        # Handing the flush to the thread takes longer than answering the fetches that wait. Those
        # are answered first, in the tasks that this event-loop iteration has woken.
        self._is_due = True
        self._loop.call_soon(self._fly)
        return False

    async def wait_idle(self) -> None:
        """Wait until the flush in flight has completed."""
        if self._flight is not None:
            await asyncio.wait([self._flight])

    def close(self) -> None:
        """Begin no more flushes."""
        self._thread.close()
        if self._syncing is not None:
            self._syncing.cancel()

    def _run(self, ticket: FlushTicket, *, wait_s: float = 0.0) -> asyncio.Future[None]:
        work = partial(self.times.measure, ticket.run)
        return self._thread.run("the flush of the log", work, wait_s=wait_s)

    def _fly(self) -> None:
        self._is_due = False
        owner = self._driver_handle
        if owner.has_ended or owner.has_exclusive_log:
            # An exclusive change flushes the log too, and the pump returns to what is left.
            return
        try:
            ticket = self._log.begin_flush()
        except Exception as error:
            owner.fail(error)
            return
        if ticket is not None:
            self._await(self._run(ticket), ticket)

    def _await(self, flight: asyncio.Future[None], ticket: FlushTicket) -> None:
        self._flight = flight
        flight.add_done_callback(partial(self._flushed, ticket))

    def _flushed(self, ticket: FlushTicket, flight: asyncio.Future[None]) -> None:
        self._flight = None
        error = flight.exception()
        if isinstance(error, Exception):
            self._driver_handle.fail(error)
        elif not self._driver_handle.has_ended:
            self._finish(ticket)
        self._driver_handle.pump()

    def _finish(self, ticket: FlushTicket) -> None:
        end = self._log.finish_flush(ticket)
        self._driver_handle.flushed(api.LogFlushed(end, ticket.generation))
        if self._syncing is None:
            self._syncing = self._loop.call_later(SYNC_AFTER_MS / 1000, self._sync_flushed_end)

    def _sync_flushed_end(self) -> None:
        """Sync flushed-end concurrently, to bound how far a power failure sets it back."""
        self._syncing = None
        if not self._driver_handle.has_ended:
            sync = self._disk.run(SYNCING_END, self._log.sync_flushed_end)
            sync.add_done_callback(self._synced)

    def _synced(self, sync: asyncio.Future[None]) -> None:
        error = sync.exception()
        if isinstance(error, Exception):
            self._driver_handle.fail(error)
