"""What a process waits for the disk for: the flush of appended batches, beside everything else and
one at a time, and the barriers. A disk that hangs lets none of them end until it is released.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.sim.oracle import Violation
from quorate.storage.flushed_end import SYNC_AFTER_MS

if TYPE_CHECKING:
    from quorate.sim.node import SimulatedNode
    from quorate.storage.log import FlushTicket


SLOWEST_CLOCK: Final = 1.06
SLACK_MS: Final = 100


@dataclass(slots=True)
class Flight:
    """A flush under way: it promises the writes up to `written`, no later ones."""

    ticket: FlushTicket
    written: int
    is_over: bool = False


class Flushing:
    """The flushes of one process."""

    def __init__(self, node: SimulatedNode) -> None:
        self._node = node
        self._flight: Flight | None = None
        self._will_sync = False
        self._incarnation = node.incarnation
        self.is_hanging = self._has_waited = False

    @property
    def is_under_way(self) -> bool:
        return self._flight is not None

    def begin(self) -> None:
        """Flush what has been written, unless a flush is under way: its end begins the next."""
        node = self._node
        if self._flight is not None:
            return
        ticket = node.store.log.begin_flush()
        if ticket is not None:
            self._flight = Flight(ticket, node.disk.sequence)
            self._time_deadline()
            node.world.schedule(node.world.draw_fsync_us(), partial(self._over, self._flight))

    def resumed(self) -> None:
        """A paused process or a disk that hung goes on: the flush has ended meanwhile."""
        if self._flight is not None and self._flight.is_over:
            self._over(self._flight)

    # --- a disk that hangs ------------------------------------------------------------------------

    def hang(self) -> None:
        """No call that waits for the disk returns until `release`; nothing else stops."""
        self.is_hanging = True
        self._time_deadline()

    def release(self) -> None:
        """What waited for the disk goes on."""
        self.is_hanging = False
        self.resumed()
        if self._has_waited:
            self._has_waited = False
            self._waited()

    def _time_deadline(self) -> None:
        node = self._node
        if self.is_hanging and self._flight is not None:
            options = node.world.options
            # The slowest clock, and the barrier behind which the core heard of the last flush.
            limit_ms = options.fetch_timeout_ms * 1.5 * SLOWEST_CLOCK + SLACK_MS
            limit_us = int(limit_ms * 1000) + options.slow_fsync_us
            node.world.schedule(limit_us, partial(self._is_late, self._flight))

    def _is_late(self, flight: Flight) -> None:
        """Rule 24: nobody leads whose disk hangs, unless there is nobody else."""
        node = self._node
        if self._incarnation != node.incarnation or flight is not self._flight:
            return
        progress = node.progress
        if not self.is_hanging or node.is_paused or node.is_busy or progress is None:
            return
        if progress.is_leader and len(node.log.voters) > 1:
            raise Violation(f"node {node.node_id} leads although its flush does not return")

    # --- barriers ---------------------------------------------------------------------------------

    def wait(self) -> None:
        """Let a barrier take as long as a flush does."""
        node = self._node
        node.world.schedule(node.world.draw_fsync_us(), self._waited)

    def _waited(self) -> None:
        node = self._node
        if self._incarnation != node.incarnation or not node.is_listening:
            return
        if self.is_hanging:
            self._has_waited = True
        else:
            node.waited()

    # --- flushes ----------------------------------------------------------------------------------

    def _over(self, flight: Flight) -> None:
        node = self._node
        if self._incarnation != node.incarnation or not node.is_listening:
            return
        if node.is_paused or self.is_hanging:
            flight.is_over = True
            return
        node.guarded(partial(self._finish, flight))
        node.pump()

    def _finish(self, flight: Flight) -> None:
        node = self._node
        node.disk.unpromised = (flight.written, node.disk.sequence)
        try:
            flight.ticket.run()
        finally:
            node.disk.unpromised = (0, 0)
        end = node.store.log.finish_flush(flight.ticket)
        self._flight = None
        if not self._will_sync:
            self._will_sync = True
            node.world.schedule(SYNC_AFTER_MS * 1000, self._sync)
        node.flush_ended(end, flight.ticket.generation)
        self.begin()

    def _sync(self) -> None:
        """Carry the flushed end to the platter, in a thread of its own."""
        self._will_sync = False
        node = self._node
        if self._incarnation == node.incarnation and node.is_listening and not self.is_hanging:
            node.guarded(node.store.log.sync_flushed_end)
