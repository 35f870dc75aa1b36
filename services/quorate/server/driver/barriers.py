"""Effects that must complete before any later effect, and a disk that exceeds its deadline.

A barrier that exceeds the deadline blocks the core. Until the disk is back the driver takes no new
requests and gives up those that wait (rule `disk_call_deadline`).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextvars import Context

    from quorate.raft import api
    from quorate.server.disk.log_access import LogAccess
    from quorate.server.driver.interfaces import DriverHandle, StateMachineCallbacks
    from quorate.server.driver.observers import Observers
    from quorate.storage.log_store import LogStore

# The only call of its thread that flushes nothing.
WRITING_CHUNK: Final = "writing a fetched snapshot"


class Barriers:
    """The barriers of one driver."""

    def __init__(
        self,
        driver_handle: DriverHandle,
        store: LogStore,
        access: LogAccess,
        observers: Observers,
        context: Context,
    ) -> None:
        """Run what is done behind a barrier in `context`."""
        self._driver_handle = driver_handle
        self._store = store
        self._access = access
        self._observers = observers
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._patience: asyncio.TimerHandle | None = None
        self.is_standing = False

    @property
    def is_active(self) -> bool:
        """True if a barrier is in progress, so that everything else has to wait."""
        return self._task is not None

    async def wait_completed(self) -> None:
        """Wait until the barrier in progress, if any, has completed."""
        if self._task is not None:
            await asyncio.wait([self._task])

    # --- the barriers -----------------------------------------------------------------------------

    def save(self, effect: api.SaveElection) -> None:
        """Make the election state durable."""
        self._begin(self._save(effect))

    def _save(self, effect: api.SaveElection) -> asyncio.Future[None]:
        save = partial(self._store.save_election, effect)
        saving = self._access.disk.run("saving quorum-state", save)
        self._observers.saving(effect)
        saving.add_done_callback(self._observers.saved)
        return saving

    def truncate(self, effect: api.TruncateLog) -> None:
        """Truncate the log."""
        self._begin(self._change("cutting the log", partial(self._store.truncate, effect)))

    def clean(self, work: Callable[[], api.Event | None]) -> None:
        """Remove what lies below the log's start."""
        self._begin(self._change("cleaning the log", work))

    async def _change(self, what: str, work: Callable[[], api.Event | None]) -> None:
        event = await self._access.run_exclusive(what, work)
        if event is not None:
            self._driver_handle.deliver_first(event)

    def install(self, effect: api.InstallSnapshot, application: StateMachineCallbacks) -> None:
        """Replace the log by a fetched snapshot."""
        self._begin(self._install(effect, application))

    async def _install(
        self, effect: api.InstallSnapshot, application: StateMachineCallbacks
    ) -> None:
        await application.suspend_storage_access()
        install = partial(self._store.install, effect)
        event = await self._access.run_exclusive("installing a snapshot", install)
        self._driver_handle.deliver_first(event)
        application.resume_storage_access(event)

    def write_chunk(self, effect: api.WriteSnapshotChunk) -> None:
        """Write a chunk of a snapshot that is being fetched."""
        write = partial(self._store.write_chunk, effect)
        self._begin(self._access.disk.run(WRITING_CHUNK, write))

    def end_healing(self) -> None:
        """Remove the healing target: healing is complete."""
        forget = self._store.end_healing
        self._begin(self._access.disk.run("forgetting the remembered end", forget))

    def end_abstention(self) -> None:
        """End the abstention durably."""
        self._begin(self._access.disk.run("ending the abstention", self._store.end_abstention))

    def save_rival(self, effect: api.SaveRival) -> None:
        """Make it durable that another quorum of this cluster was found."""
        save = partial(self._store.save_rival, effect)
        self._begin(self._access.disk.run("saving the rival", save))

    # --- start and completion ---------------------------------------------------------------------

    def _begin(self, work: Awaitable[None]) -> None:
        async def wait() -> None:
            await work

        self._patience = self._loop.call_later(self._driver_handle.deadline_ms / 1000, self._stand)
        self._task = self._loop.create_task(wait(), context=self._context)
        self._task.add_done_callback(self._end, context=self._context)

    def _stand(self) -> None:
        """Report that the disk exceeded its deadline; waiting callers of the core are refused."""
        if not self._driver_handle.has_ended:
            self.is_standing = True
            self._driver_handle.on_disk_stalled()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if self._patience is not None:
            self._patience.cancel()
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Exception):
            self._driver_handle.fail(error)
            return
        self.is_standing = False
        self._driver_handle.pump()
        if not self._driver_handle.has_ended and self._task is None:
            self._driver_handle.on_disk_resumed()
