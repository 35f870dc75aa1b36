"""Monitors free disk space and resigns leadership once when it runs low."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from quorate.raft import api
from quorate.raft.trace_events import RoleChangeCause

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.server.resource_limits import DiskSpace
    from quorate.server.state_machine import StateMachine

log = logging.getLogger(__name__)
# A warning is repeated each minute: a node checks every five seconds.
_LOOKS_A_WARNING: Final = 12


class FreeSpaceMonitor:
    """Monitors the free space of one node, and reports it to its core and its state machine."""

    def __init__(
        self,
        space: DiskSpace,
        driver: RaftDriver,
        machine: StateMachine,
        has_ended: Callable[[], bool],
    ) -> None:
        """`has_ended` returns whether the core has ended and takes no more reports."""
        self.space = space
        self._driver = driver
        self._machine = machine
        self._has_ended = has_ended
        self._is_enough = True
        self._looks = 0
        self._looking: asyncio.Future[str | None] | None = None

    def check(self) -> None:
        """Measure the free space, unless the previous measurement has not returned."""
        if self._looking is None:
            self._looking = self._driver.access.read_detached(
                "the look at free space", self.space.measure
            )
            self._looking.add_done_callback(self._has_looked)

    def _has_looked(self, looking: asyncio.Future[str | None]) -> None:
        self._looking = None
        error = looking.exception()
        if self._has_ended():
            return
        if isinstance(error, Exception):
            self._driver.fail(error)
            return
        warning = looking.result()
        if warning is not None and self._looks % _LOOKS_A_WARNING == 0:
            log.warning(warning)
        self._looks += 1
        # Once only: if all disks are full, or no other voter may lead, repeated resignations would
        # each write a LeaderChange.
        has_run_out = self.space.is_exhausted and self._is_enough
        self._is_enough = not self.space.is_exhausted
        self._machine.set_space(is_enough=self._is_enough)
        if has_run_out and not self._driver.core.replica.is_only_voter:
            reason = warning or "the disk is full"
            self._driver.deliver(api.ResignRequested(reason, RoleChangeCause.DISK_FULL))
