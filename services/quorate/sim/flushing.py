"""The flush of appended batches: under way beside everything else, one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from quorate.storage.flushed_end import SYNC_AFTER_MS

if TYPE_CHECKING:
    from quorate.sim.node import SimulatedNode
    from quorate.storage.log import FlushTicket


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
            node.world.schedule(node.world.draw_fsync_us(), partial(self._over, self._flight))

    def resumed(self) -> None:
        """A paused process goes on, and learns that its flush has ended meanwhile."""
        if self._flight is not None and self._flight.is_over:
            self._over(self._flight)

    def _over(self, flight: Flight) -> None:
        node = self._node
        if self._incarnation != node.incarnation or not node.is_listening:
            return
        if node.is_paused:
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
        if self._incarnation == node.incarnation and node.is_listening:
            node.guarded(node.store.log.sync_flushed_end)
