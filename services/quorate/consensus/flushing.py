"""The flush of the log, one at a time and beside everything else, and the flushed end after it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from quorate.consensus.flush_times import FlushTimes
from quorate.raft import api
from quorate.storage.flushed_end import SYNC_AFTER_MS

if TYPE_CHECKING:
    from concurrent.futures import Future

    from quorate.consensus.driver import RaftDriver
    from quorate.storage.log import FlushTicket


class LogFlushing:
    """The flushes of one driver's log."""

    def __init__(self, driver: RaftDriver, disk: ThreadPoolExecutor) -> None:
        """`disk` is the thread for what may wait behind other calls."""
        self.times = FlushTimes()
        self._driver = driver
        self._log = driver.store.log
        self._disk = disk
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "flush")
        self._flight: asyncio.Future[None] | None = None
        self._is_due = False
        self._syncing: asyncio.TimerHandle | None = None

    @property
    def is_under_way(self) -> bool:
        return self._flight is not None or self._is_due

    def begin(self, *, leads: bool) -> bool:
        """Begin to flush what was written, unless a flush is under way; True when it is over."""
        if self.is_under_way or not self._log.is_dirty:
            return False
        if not leads and self.times.is_fast:
            ticket = self._log.begin_flush()
            assert ticket is not None, "there is something to flush"
            self.times.measure(ticket.run)
            self._finish(ticket)
            return True
        # To hand it to the thread takes longer than to answer the fetches that wait for it: those
        # go first, in the tasks that this turn of the loop has woken.
        self._is_due = True
        self._loop.call_soon(self._fly)
        return False

    async def over(self) -> None:
        """Wait until the flush under way is over."""
        if self._flight is not None:
            await asyncio.wait([self._flight])

    def shut_down(self) -> None:
        """The flush under way is over, and no other begins."""
        self._thread.shutdown()

    def _fly(self) -> None:
        self._is_due = False
        driver = self._driver
        if driver.ending is not None:
            return
        try:
            ticket = self._log.begin_flush()
        except Exception as error:
            driver.fail(error)
            return
        if ticket is None:
            return
        self._flight = self._loop.create_future()
        flight = self._thread.submit(self.times.measure, ticket.run)
        flight.add_done_callback(partial(self._landed, ticket))

    def _landed(self, ticket: FlushTicket, flight: Future[None]) -> None:
        """In the flushing thread."""
        self._loop.call_soon_threadsafe(self._flushed, ticket, flight)

    def _flushed(self, ticket: FlushTicket, flight: Future[None]) -> None:
        waiting, self._flight = self._flight, None
        error = flight.exception()
        driver = self._driver
        try:
            if isinstance(error, Exception):
                driver.fail(error)
            elif driver.ending is None:
                self._finish(ticket)
        except OSError as failure:
            driver.fail(failure)
        finally:
            if waiting is not None:
                waiting.set_result(None)
        driver.pump()

    def _finish(self, ticket: FlushTicket) -> None:
        end = self._log.finish_flush(ticket)
        self._driver.flushed(api.LogFlushed(end, ticket.generation))
        if self._syncing is None:
            self._syncing = self._loop.call_later(SYNC_AFTER_MS / 1000, self._sync_flushed_end)

    def _sync_flushed_end(self) -> None:
        """Bound what a power cut takes from the flushed end, beside everything else."""
        self._syncing = None
        if self._driver.ending is None:
            sync = self._loop.run_in_executor(self._disk, self._log.sync_flushed_end)
            sync.add_done_callback(self._synced)

    def _synced(self, sync: asyncio.Future[None]) -> None:
        error = sync.exception()
        if isinstance(error, Exception):
            self._driver.fail(error)
