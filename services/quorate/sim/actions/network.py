"""Partitions, foreign clusters at a node's address, forged epochs, address changes.

A node's address answers for a while as a controller of another cluster (rule 27). A peer with a
certificate of this cluster names epochs that no election has reached (rule 28).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from quorate.raft.api import RequestReceived
from quorate.raft.election.epoch_guard import EPOCH_JUMP_MAX, EPOCH_MAX
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from quorate.records.ids import Epoch, NodeId, OffsetAndEpoch, ReplicaKey
from quorate.records.value_types import keyword_value_type
from quorate.sim.engine.network import PartitionShape
from quorate.sim.engine.node_config import CLUSTER_ID

if TYPE_CHECKING:
    from quorate.raft.messages import Request
    from quorate.sim.action_runner import Deed, Stage
    from quorate.sim.engine.node import SimulatedNode


@keyword_value_type
class SplitNetwork:
    """A partition in the place of the one before: `those` as `Network.split` has it."""

    shape: PartitionShape
    those: tuple[int, ...]
    for_us: int

    def do(self, stage: Stage) -> None:
        world = stage.world
        nodes = sorted(world.nodes)
        those = [NodeId(node_id) for node_id in self.those if node_id in world.nodes]
        is_whole = len(those) == len(self.those) < len(nodes)
        if is_whole or (len(those) == len(nodes) == 2 and self.shape in _LINKS):
            world.remark(f"partition: {world.network.split(self.shape, those, nodes)}")
            world.schedule(self.for_us, lambda: _heal(stage))


_LINKS: Final = (PartitionShape.LINK, PartitionShape.ONE_WAY_LINK)


def _heal(stage: Stage) -> None:
    if stage.world.network.blocked and not stage.is_over:
        stage.world.remark("the network heals")
        stage.world.network.heal()


@keyword_value_type
class TakeOver:
    """Callers of this node reach a controller of another cluster for a while."""

    who: int
    for_us: int

    def do(self, stage: Stage) -> None:
        node, world = stage.find(self.who), stage.world
        if node is not None:
            world.remark(f"another cluster answers at the address of node {node.node_id}")
            world.taken_over[node.node_id] = world.now_us + self.for_us


class Claim(Enum):
    """The claim of a Byzantine peer."""

    LEADS = "it leads"
    RESIGNS = "it resigns"
    ASKS = "it may be elected"
    STANDS = "it wants a vote"


@keyword_value_type
class Lie:
    """Somebody who says that it is `liar` names an epoch to this node that cannot be."""

    who: int
    liar: int
    claim: Claim
    is_last: bool

    def do(self, stage: Stage) -> None:
        node, world = stage.find_running(self.who), stage.world
        liar = world.nodes.get(NodeId(self.liar))
        if node is None or liar is None:
            return
        known = node.progress.epoch if node.progress is not None else Epoch(0)
        epoch = Epoch(EPOCH_MAX if self.is_last else known + 2 * EPOCH_JUMP_MAX)
        request = _claim(node, liar, epoch, self.claim)
        name = type(request).__name__
        world.remark(f"node {node.node_id} is told of epoch {epoch} by {name}")
        node.deliver(RequestReceived(world.next_token(), request))


def _claim(node: SimulatedNode, liar: SimulatedNode, epoch: Epoch, claim: Claim) -> Request:
    endpoints, liar_id = liar.endpoints, liar.node_id
    match claim:
        case Claim.LEADS:
            return BeginQuorumEpochRequest(CLUSTER_ID, node.key, liar_id, epoch, endpoints)
        case Claim.RESIGNS:
            return EndQuorumEpochRequest(CLUSTER_ID, liar_id, epoch, (), endpoints)
    key = ReplicaKey(liar_id, liar.key.directory_id)
    last = OffsetAndEpoch(epoch=Epoch(epoch - 1), offset=node.log.end.offset)
    pre_vote = claim is Claim.ASKS
    return VoteRequest(
        cluster_id=CLUSTER_ID,
        voter=node.key,
        replica=key,
        replica_epoch=epoch,
        last=last,
        pre_vote=pre_vote,
    )


@keyword_value_type
class Move:
    """A process ends and starts again at another address, which only bootstrap names know."""

    who: int
    down_us: int

    def do(self, stage: Stage) -> None:
        node, world = stage.find(self.who), stage.world
        if node is None or not stage.sparing.may_move(node):
            return
        node.kill()
        world.addresses.move(node)
        world.remark(f"node {node.node_id} moves to {node.endpoints[0]}")
        stage.start_later(node, self.down_us)


KINDS: Final[dict[str, type[Deed]]] = {
    "split": SplitNetwork,
    "take-over": TakeOver,
    "lie": Lie,
    "move": Move,
}
