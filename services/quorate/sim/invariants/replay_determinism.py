"""All controllers have the image that a replay of the log produces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.controller import Controller
from quorate.controller.decision import ControllerSettings
from quorate.records.batch import read_header
from quorate.records.metadata import decode_record
from quorate.sim.checkers.batch_contents import records_of
from quorate.sim.checkers.oracle import Violation
from quorate.sim.checkers.overlay_differential import unequal_fields
from quorate.sim.engine.node_config import CLUSTER_ID
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.records.ids import Offset, TopicId
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import ClusterView, NodeView


class ReplayIsDeterministic(Invariant):
    """All controllers have the image that a replay of the committed log gives.

    This holds for controllers that decided on the records, replayed them, or started from a
    snapshot. It is checked in clusters with brokers: in others, the reference model of sixteen
    configs checks the same. Source: ARCHITECTURE.md: `replay` alone changes the metadata.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        settings = ControllerSettings(cluster_id=CLUSTER_ID, new_topic_id=_no_topic)
        self._reader = Controller(settings)
        self._compared: dict[int, Offset] = {}

    def committed(self, node: NodeView, entry: Entry) -> None:
        if not self.world.options.fleet.brokers:
            return
        self._reader.replay(
            [decode_record(record.value or b"")[0] for record in records_of(entry.data)],
            base_offset=entry.base,
            end_offset=entry.end,
            epoch=entry.epoch,
            timestamp_ms=read_header(entry.data).max_timestamp_ms,
        )

    def on_tick(self) -> None:
        if not self.world.options.fleet.brokers:
            return
        end = self._reader.end_offset
        for node in self.world.running():
            image = node.image
            is_new = self._compared.get(node.node_id) != end
            if is_new and image.position.end_offset == end:
                self._compared[node.node_id] = end
                differing = unequal_fields(image, self._reader.image)
                if differing:
                    raise Violation(
                        f"{', '.join(differing)} below {end} on node {node.node_id} differ from "
                        "those of a replay"
                    )
                return


def _no_topic() -> TopicId:
    raise AssertionError("a replay makes no topics")
