"""The flushed end that a power loss leaves on disk is recent."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.time_bounds import clock_factor, slowest_call_us
from quorate.storage.flushed_end import SYNC_AFTER_MS

if TYPE_CHECKING:
    from quorate.records.ids import Millis, NodeId, Offset, OffsetAndEpoch
    from quorate.sim.views import ClusterView, NodeView

SLACK_MS: Final = 100
# The number of checks per record of the flushed offsets.
LOOKS: Final = 3
# The write of the flushed end comes after the disk calls that are queued already.
CALLS: Final = 4


@dataclass(slots=True)
class _Flushed:
    """The flushed ends of one process, each with the time when it was observed."""

    troubles: int
    ends: deque[tuple[Millis, Offset]] = field(default_factory=deque)


class FlushedEndsAreRecent(Invariant):
    """A power loss leaves a flushed end that is at most about a second old.

    Bit rot below it is damage; above it, it is a torn tail, which is truncated. The invariant
    checks the platter of the disk when a process ends. Source: rule `flushed_end_file`.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._flushed: dict[NodeId, _Flushed] = {}
        self._looks = 0
        calls_ms = CALLS * slowest_call_us(world.options) // 1000
        self._age_ms = int((SYNC_AFTER_MS + calls_ms) * clock_factor(world.options)) + SLACK_MS

    def truncating(self, node: NodeView, to: OffsetAndEpoch) -> None:
        self._flushed.pop(node.node_id, None)

    def installing(self, node: NodeView, snapshot_id: OffsetAndEpoch) -> None:
        # The snapshot replaces a log that may have reached further.
        self._flushed.pop(node.node_id, None)

    def on_tick(self) -> None:
        self._looks += 1
        if self._looks % LOOKS:
            return
        for node in self.world.running():
            known = self._flushed.get(node.node_id)
            if known is None or known.troubles != node.troubles:
                known = self._flushed[node.node_id] = _Flushed(node.troubles)
            if node.is_hanging or not node.is_stepped:
                known.ends.clear()
                continue
            known.ends.append((node.local_ms, node.core.replica.log.flushed))
            while len(known.ends) > 1 and known.ends[1][0] <= node.local_ms - self._age_ms:
                known.ends.popleft()

    def stopped(self, node: NodeView) -> None:
        known = self._flushed.pop(node.node_id, None)
        if known is None or known.troubles != node.troubles or not known.ends:
            return
        at_ms, flushed = known.ends[0]
        left = node.flushed_end_on_platter
        if at_ms > node.local_ms - self._age_ms or left is None or left >= flushed:
            return
        raise Violation(
            f"a power cut leaves {left} for the flushed end of node {node.node_id}, which had "
            f"flushed all below {flushed} {node.local_ms - at_ms} ms ago"
        )
