"""Triggers snapshots at offsets where they are most likely to expose bugs.

These are the start of an epoch and a voters record. Other snapshots are triggered by bytes or time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.server.snapshots.snapshotter import Snapshotter

if TYPE_CHECKING:
    from quorate.controller.image import MetadataImage
    from quorate.records.ids import Offset
    from quorate.server.config import LogSettings
    from quorate.sim.interfaces import MachineInterface


class TargetedSnapshotter(Snapshotter):
    """The production snapshotter, which also takes snapshots at chosen offsets."""

    def __init__(self, node: MachineInterface, settings: LogSettings) -> None:
        super().__init__(node.driver, settings, node.random.random)
        self._node = node
        self._world = node.world
        self._state = node.store.log.state
        self._looked_at: Offset | None = None
        self._is_aimed = False

    def maybe_snapshot(self, image: MetadataImage) -> None:
        if self._world.options.log.aimed_snapshot_rate:
            self._aim(image.position.end_offset)
        super().maybe_snapshot(image)

    def _aim(self, end: Offset) -> None:
        """Decide at random, once per eligible offset, if a snapshot is taken there."""
        if end == self._looked_at or not self._is_place(end):
            return
        self._looked_at = end
        self._is_aimed = self._world.is_targeted(
            self._node, self._world.options.log.aimed_snapshot_rate
        )

    def _is_place(self, end: Offset) -> bool:
        """True at the start of an epoch, and up to two records after the offset of voters."""
        state = self._state
        is_start = any(start.start_offset == end for start in state.epochs)
        return is_start or any(end - 2 <= voters.offset <= end for voters in state.voters)

    def _is_due(self) -> bool:
        is_aimed, self._is_aimed = self._is_aimed, False
        return is_aimed or super()._is_due()
