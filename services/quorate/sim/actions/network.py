"""Partitions, foreign clusters at a node's address, forged epochs, address changes.

A node's address answers for a while as a controller of another cluster
(rule `no_state_from_rejections`). A peer with a certificate of this cluster names epochs that no
election has reached (rule `input_bounds`).
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
    from quorate.sim.action_runner import Action, ActionRunner
    from quorate.sim.engine.node import SimulatedNode


@keyword_value_type
class SplitNetwork:
    """A partition that replaces the previous one; `those` are the nodes for `Network.split`."""

    shape: PartitionShape
    those: tuple[int, ...]
    for_us: int

    def run(self, action_runner: ActionRunner) -> None:
        world = action_runner.cluster
        nodes = sorted(world.nodes)
        those = [NodeId(node_id) for node_id in self.those if node_id in world.nodes]
        is_whole = len(those) == len(self.those) < len(nodes)
        if is_whole or (len(those) == len(nodes) == 2 and self.shape in _LINKS):
            world.log(f"partition: {world.network.split(self.shape, those, nodes)}")
            world.schedule(self.for_us, lambda: _heal(action_runner))


_LINKS: Final = (PartitionShape.LINK, PartitionShape.ONE_WAY_LINK)


def _heal(action_runner: ActionRunner) -> None:
    if action_runner.cluster.network.blocked and not action_runner.is_over:
        action_runner.cluster.log("the network heals")
        action_runner.cluster.network.heal()


@keyword_value_type
class HijackAddress:
    """For a while, callers of this node reach a controller of another cluster."""

    who: int
    for_us: int

    def run(self, action_runner: ActionRunner) -> None:
        node, world = action_runner.resolve(self.who), action_runner.cluster
        if node is not None:
            world.log(f"another cluster answers at the address of node {node.node_id}")
            world.taken_over[node.node_id] = world.now_us + self.for_us


class ForgedClaim(Enum):
    """The claim of a Byzantine peer."""

    LEADS = "it leads"
    RESIGNS = "it resigns"
    ASKS = "it may be elected"
    STANDS = "it wants a vote"


@keyword_value_type
class ForgeEpoch:
    """A Byzantine peer, node `liar`, sends this node an epoch that no election has reached."""

    who: int
    liar: int
    claim: ForgedClaim
    is_last: bool

    def run(self, action_runner: ActionRunner) -> None:
        node, world = action_runner.find_running(self.who), action_runner.cluster
        liar = world.nodes.get(NodeId(self.liar))
        if node is None or liar is None:
            return
        known = node.progress.epoch if node.progress is not None else Epoch(0)
        epoch = Epoch(EPOCH_MAX if self.is_last else known + 2 * EPOCH_JUMP_MAX)
        request = _claim(node, liar, epoch, self.claim)
        name = type(request).__name__
        world.log(f"node {node.node_id} is told of epoch {epoch} by {name}")
        node.deliver(RequestReceived(world.next_token(), request))


def _claim(
    node: SimulatedNode, liar: SimulatedNode, epoch: Epoch, forged_claim: ForgedClaim
) -> Request:
    endpoints, liar_id = liar.endpoints, liar.node_id
    match forged_claim:
        case ForgedClaim.LEADS:
            return BeginQuorumEpochRequest(CLUSTER_ID, node.key, liar_id, epoch, endpoints)
        case ForgedClaim.RESIGNS:
            return EndQuorumEpochRequest(CLUSTER_ID, liar_id, epoch, (), endpoints)
    key = ReplicaKey(liar_id, liar.key.directory_id)
    last = OffsetAndEpoch(epoch=Epoch(epoch - 1), offset=node.log.end.offset)
    pre_vote = forged_claim is ForgedClaim.ASKS
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
    """A process ends and restarts at another address, which only the bootstrap names resolve to."""

    who: int
    down_us: int

    def run(self, action_runner: ActionRunner) -> None:
        node, world = action_runner.resolve(self.who), action_runner.cluster
        if node is None or not action_runner.survivability.may_move(node):
            return
        node.kill()
        world.addresses.move(node)
        world.log(f"node {node.node_id} moves to {node.endpoints[0]}")
        action_runner.start_later(node, self.down_us)


KINDS: Final[dict[str, type[Action]]] = {
    "split": SplitNetwork,
    "take-over": HijackAddress,
    "lie": ForgeEpoch,
    "move": Move,
}
