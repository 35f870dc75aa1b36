"""Detects files of the log that another program removes or replaces, and saves their content.

The disk then counts as failed (rule `disk_fail_stop`): the replica no longer votes or acknowledges.
What the process still holds is put back for the next start: the segments by their descriptors, the
vote, and a snapshot of the image in memory.

The checks run in the thread that saves quorum-state, truncates and cleans, so that none runs
between two steps of those. A new segment is in its directory before it is among the segments.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Final

from quorate.server.driver.raft_driver import ExitReason
from quorate.storage.errors import FORMAT_EMPTY_HINT, QUORUM_RECOVERY_HINT, LostFilesError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.server.state_machine import StateMachine
    from quorate.storage.log.files_in_use import LostFile, PutBack

log = logging.getLogger(__name__)
_LOOK: Final = "the look at the files"
_NAMED_MAX: Final = 4
# After these endings files are put back only if a missing name is the cause.
_NOT_TO_BE_TRUSTED: Final = (ExitReason.DISK_FAILED, ExitReason.CRASHED)


class FileWatch:
    """The files of one node. Everything runs on the event loop."""

    def __init__(self, driver: RaftDriver, machine: StateMachine) -> None:
        self._driver = driver
        self._machine = machine
        self._looking: asyncio.Future[tuple[LostFile, ...]] | None = None
        self._saving: asyncio.Task[None] | None = None

    # --- detection --------------------------------------------------------------------------------

    def look(self) -> None:
        """Compare the files with their names, unless the previous check has not returned."""
        if self._looking is None and not self._driver.has_ended:
            self._looking = self._look()
            self._looking.add_done_callback(self._has_looked)

    def _look(self) -> asyncio.Future[tuple[LostFile, ...]]:
        return self._driver.access.disk.run(_LOOK, self._driver.store.files.lost)

    def _has_looked(self, looking: asyncio.Future[tuple[LostFile, ...]]) -> None:
        self._looking = None
        error = looking.exception()
        if isinstance(error, Exception):
            self._driver.fail(error)
        elif lost := looking.result():
            self._driver.fail(LostFilesError(f"{_listed(lost)}, and not by this process"))

    # --- saving -----------------------------------------------------------------------------------

    def ended(self) -> None:
        """Save lost files if a lost name may be why the core has ended."""
        # Any call that needs a name may fail before the check does.
        if isinstance(self._driver.store.log.failure, FileNotFoundError):
            self._begin_saving()

    def _begin_saving(self) -> None:
        if self._saving is None:
            self._saving = asyncio.get_running_loop().create_task(self._save())

    async def close(self) -> None:
        """Check once more, for a process that stops soon after the loss; wait for the saving.

        The descriptors are closed next, and data that only they hold is lost then.
        """
        if self._driver.exit_reason not in (None, *_NOT_TO_BE_TRUSTED):
            self._begin_saving()
        if self._saving is not None:
            await asyncio.wait([self._saving])

    async def _save(self) -> None:
        try:
            await self._driver.quiesce()
            lost = await self._look()
            if lost:
                await self._save_what_is_lost(lost)
        except Exception as error:
            log.exception("files that were lost are not put back", exc_info=error)

    async def _save_what_is_lost(self, lost: tuple[LostFile, ...]) -> None:
        driver = self._driver
        files = driver.store.files
        back = await driver.access.disk.run("putting files back", lambda: files.put_back(lost))
        try:
            snapshot = None if back.is_refused else await self._machine.save()
        except Exception as error:
            saved = f"no snapshot was written ({error})"
        else:
            saved = (
                "no snapshot was written"
                if snapshot is None
                else (
                    f"snapshot {snapshot.snapshot_id} of what is committed was written from memory"
                )
            )
        log.error(
            "%s, and not by this process. %s; %s. %s",
            _listed(lost),
            _words(lost, back),
            saved,
            _remedy(back),
        )


def _words(lost: Sequence[LostFile], back: PutBack) -> str:
    if not back.problem:
        return "Put back from memory and open files: all of it, nothing is lost"
    if not back.paths:
        return f"Nothing was put back: {back.problem}"
    return f"Put back: {len(back.paths)} of {len(lost)}, then: {back.problem}"


def _remedy(back: PutBack) -> str:
    if not back.problem:
        return "Stop what removes the files, such as a cleaner, then start this controller again"
    return (
        "Stop what removes the files, such as a cleaner. Before this process is stopped, move them "
        f"back, or copy the segments out of /proc/{os.getpid()}/fd; or, {FORMAT_EMPTY_HINT}; or, "
        f"{QUORUM_RECOVERY_HINT}"
    )


def _listed(lost: Sequence[LostFile]) -> str:
    more = len(lost) - _NAMED_MAX
    named = ", ".join(map(str, lost[:_NAMED_MAX]))
    return f"{named} and {more} more" if more > 0 else named
