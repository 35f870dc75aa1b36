"""Snapshots that end next to a voters record, and only there if no others fall due."""

from __future__ import annotations

from quorate.sim.action_runner import ActionRunner
from quorate.sim.actions.client_requests import WriteRecords
from quorate.sim.cases.field_codec import with_fields
from quorate.sim.checkers.liveness import is_caught_up
from quorate.sim.cluster import Cluster
from quorate.sim.engine.quorum_setup import build
from quorate.sim.sim_options import WorldOptions

LIMIT_MS = 60_000


def test_a_snapshot_ends_with_the_record_right_behind_a_voters_record() -> None:
    world = Cluster(1, with_fields(WorldOptions(), voters=1, aimed_snapshot_rate=1.0))
    build(world)
    stage = ActionRunner(world)
    (node,) = world.nodes.values()
    for _ in range(4):
        assert world.run(world.now_ms + LIMIT_MS, stop=lambda: is_caught_up(world))
        stage.run(WriteRecords(count=1))
        world.run(world.now_ms + 1000)
    place = node.core.replica.log.voters_offset
    ends = {info.snapshot_id.offset for info in node.core.replica.log.snapshots}
    assert place + 2 in ends
    assert ends <= {place, place + 1, place + 2}
    assert node.log.end.offset > place + 3
