"""Messages that should not be: of another cluster's controllers, and of somebody who lies.

The address of a node answers for a while as a controller of another cluster (rule 27); and somebody
with a certificate of this one names epochs that no election came to (rule 28).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import RequestReceived
from quorate.raft.believing import EPOCH_MAX, JUMP_MAX
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from quorate.records.ids import Epoch, NodeId, OffsetAndEpoch, ReplicaKey
from quorate.sim.configuring import CLUSTER_ID

if TYPE_CHECKING:
    from quorate.raft.messages import Request
    from quorate.sim.node import SimulatedNode
    from quorate.sim.world import World

TAKEN_OVER_US: Final = 3_000_000


def take_over(world: World, node: SimulatedNode) -> None:
    """Whoever calls this node for a while reaches a controller of another cluster."""
    world.remark(f"another cluster answers at the address of node {node.node_id}")
    world.taken_over[node.node_id] = world.now_us + int(world.random.random() * TAKEN_OVER_US)


def lie_to(world: World, node: SimulatedNode) -> None:
    """Name an epoch to this node that cannot be."""
    draw = world.random.random
    known = node.progress.epoch if node.progress is not None else Epoch(0)
    epoch = Epoch(EPOCH_MAX if draw() < 0.5 else known + 2 * JUMP_MAX)
    liar = NodeId(1 + int(draw() * len(world.nodes)))
    request = _claim(world, node, liar, epoch, int(draw() * 4))
    world.remark(f"node {node.node_id} is told of epoch {epoch} by {type(request).__name__}")
    node.deliver(RequestReceived(world.next_token(), request))


def _claim(world: World, node: SimulatedNode, liar: NodeId, epoch: Epoch, kind: int) -> Request:
    endpoints = world.nodes[liar].endpoints
    if kind == 0:
        return BeginQuorumEpochRequest(CLUSTER_ID, node.key, liar, epoch, endpoints)
    if kind == 1:
        return EndQuorumEpochRequest(CLUSTER_ID, liar, epoch, (), endpoints)
    key = ReplicaKey(liar, world.nodes[liar].key.directory_id)
    last = OffsetAndEpoch(epoch=Epoch(epoch - 1), offset=node.log.end.offset)
    return VoteRequest(CLUSTER_ID, node.key, key, epoch, last, pre_vote=kind == 2)
