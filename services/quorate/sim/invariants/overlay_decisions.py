"""Decisions on the batch overlay equal decisions on images."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.sim.checkers.batch_contents import header_at
from quorate.sim.checkers.overlay_differential import RandomDecisions, Standby, require_equal
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.records.ids import Epoch, NodeId, Offset
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.checkers.overlay_differential import Batch, DifferentialController
    from quorate.sim.views import ClusterView, NodeView

# The fraction of entries with decisions, which cost more than everything else about a batch.
_SHARE: Final = 1 / 32


class _Leading(NamedTuple):
    """The controller of one leader, and its uncommitted batches, each with its entry's end."""

    epoch: Epoch
    ways: DifferentialController
    sent: deque[tuple[Offset, Batch]]


class OverlayDecidesAsImages(Invariant):
    """Decisions on one overlay per batch equal decisions on an image each, also when replayed.

    Some entries of the log represent batches of decisions on random requests, and share their
    outcome: they are committed, lost, or committed by the next leader, which decides on the image
    from a replay of the committed log. Their random streams and offsets are separate, so that a run
    continues as it would without them. Source: steps 2 and 7 of the write path, ARCHITECTURE.md.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._random_source = RandomSource(world.seed, "decisions")
        self._decisions = RandomDecisions(self._random_source)
        self._standby = Standby()
        self._leading: dict[NodeId, _Leading] = {}
        self._sent: dict[tuple[Offset, Epoch], list[Batch]] = {}

    def appended(self, node: NodeView, entry: Entry) -> None:
        progress = node.progress
        if progress is None or not progress.is_leader or progress.epoch != entry.epoch:
            return
        leading = self._leading.get(node.node_id)
        if header_at(entry.data, 0).is_control:
            batches = [] if leading is None else self._controls(leading.ways)
        elif self._random_source.chance(_SHARE):
            leading = leading or self._lead(node.node_id, entry.epoch)
            batches = self._decisions.batches(leading.ways, self.world.now_ms)
        else:
            return
        if leading is not None and batches:
            leading.sent.extend((entry.end, batch) for batch in batches)
            self._sent[entry.end, entry.epoch] = batches

    def _lead(self, node_id: NodeId, epoch: Epoch) -> _Leading:
        """Start on the replayed image: a leader that appends has committed all earlier records."""
        ways = self._decisions.lead(self._standby.image, epoch, self.world.now_ms)
        self._leading[node_id] = leading = _Leading(epoch, ways, deque())
        return leading

    def _controls(self, ways: DifferentialController) -> list[Batch]:
        gathered = ways.cut(self.world.now_ms)
        controls = ways.append_controls(self.world.now_ms)
        return [controls] if gathered is None else [gathered, controls]

    def committed(self, node: NodeView, entry: Entry) -> None:
        for batch in self._sent.pop((entry.end, entry.epoch), ()):
            self._standby.replay(batch)

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        leading = self._leading.get(node.node_id)
        if leading is None:
            return
        if not progress.is_leader or progress.epoch != leading.epoch:
            del self._leading[node.node_id]
        elif progress.high_watermark is not None:
            self._commit(leading, progress.high_watermark)

    def _commit(self, leading: _Leading, high_watermark: Offset) -> None:
        last = None
        while leading.sent and leading.sent[0][0] <= high_watermark:
            _, last = leading.sent.popleft()
        if last is not None:
            leading.ways.commit(last)
            # A superseded leader that does not know it yet may lag.
            if self._standby.end_offset == last.end_offset:
                require_equal(leading.ways.image, self._standby.image, "that are replayed")

    def stopped(self, node: NodeView) -> None:
        self._leading.pop(node.node_id, None)
