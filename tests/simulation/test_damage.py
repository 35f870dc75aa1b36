"""A follower whose committed log, or whose snapshot, was damaged is repaired without help.

The damaged byte may be any. Until then the follower requests no vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import SendRequest
from quorate.raft.messages import VoteRequest
from quorate.records.ids import NodeId
from quorate.sim.checkers.liveness import is_caught_up
from quorate.sim.engine.storage import LOG_DIR
from tests.simulation.story import Story

if TYPE_CHECKING:
    from quorate.sim.cluster import Cluster

FOLLOWER = NodeId(3)
PATIENCE_MS = 20_000
# A byte of its records.
FIRST_BATCH = 70


def a_quorum(*, batches: int, snapshot_every: int = 0) -> Cluster:
    """Three voters that all hold and have flushed a few batches; node 1 leads."""
    story = Story()
    snapshots = f" snapshot-every={snapshot_every}" if snapshot_every else ""
    story.tell([f"quorum voters=3{snapshots}"])
    for _ in range(batches):
        story.tell(["propose", "run until=committed"])
    story.tell(["run until=caught-up", "run ms=1000"])
    return story.cluster


def damage_and_heal(cluster: Cluster, name: str, position: int) -> None:
    """Flip one bit of a file of the follower while it is down; wait until it is whole again."""
    node = cluster.nodes[FOLLOWER]
    node.kill()
    node.rot(name, position, 1 << position % 8)
    cluster.transcript.lines.clear()
    node.start()
    assert node.progress is not None, f"byte {position} of {name}: it did not start"
    limit = cluster.now_ms + PATIENCE_MS
    assert cluster.run(limit, stop=lambda: is_caught_up(cluster)), f"byte {position} of {name}"
    for line in cluster.transcript.lines:
        if line.node == FOLLOWER and line.update is not None:
            for effect in line.update.effects:
                is_campaign = isinstance(effect, SendRequest) and isinstance(
                    effect.request, VoteRequest
                )
                assert not is_campaign, f"byte {position} of {name}: {line}"


def files(cluster: Cluster, suffix: str) -> dict[str, int]:
    """The follower's files of that ending, with their sizes."""
    found = cluster.nodes[FOLLOWER].disk.files(LOG_DIR)
    return {name: size for name, size in found.items() if name.endswith(suffix)}


def contents(cluster: Cluster) -> list[bytes]:
    """The log of every node, as its files hold it."""
    logs = []
    for node in cluster.nodes.values():
        names = [name for name in node.disk.files(LOG_DIR) if name.endswith(".log")]
        logs.append(b"".join(node.disk.read(f"{LOG_DIR}/{name}") for name in names))
    return logs


def test_what_rots_while_a_log_heals_is_damage_of_its_own() -> None:
    world = a_quorum(batches=5)
    node = world.nodes[FOLLOWER]
    ((name, size),) = files(world, ".log").items()
    node.kill()
    node.rot(name, size - 1, 1)
    node.start()
    assert node.is_healing
    limit = world.now_ms + PATIENCE_MS
    assert world.run(limit, stop=lambda: node.application.applied > 1)
    # Nothing reads the first batch again before the next start.
    node.rot(name, FIRST_BATCH, 1)
    assert node.is_healing
    assert world.run(limit, stop=lambda: is_caught_up(world) and not node.is_healing)
    node.kill()
    node.start()
    assert node.is_healing
    assert world.run(world.now_ms + PATIENCE_MS, stop=lambda: is_caught_up(world))


def test_every_byte_of_a_log() -> None:
    world = a_quorum(batches=5)
    ((name, size),) = files(world, ".log").items()
    before = contents(world)
    for position in range(size):
        damage_and_heal(world, name, position)
    assert contents(world) == before


def test_every_byte_of_a_snapshot() -> None:
    world = a_quorum(batches=24, snapshot_every=10)
    bootstrap = "0" * 20
    position = 0
    while True:
        # A healed follower may hold a newer snapshot than the one that was damaged.
        stored = files(world, ".checkpoint")
        name = max(name for name in stored if not name.startswith(bootstrap))
        if position >= stored[name]:
            break
        damage_and_heal(world, name, position)
        position += 1
    assert position > 0
