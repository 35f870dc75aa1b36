"""Random membership changes, kraft.version upgrades and leadership transfers.

Operators send requests to the leader, as in production. The leader decides if a change is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.sim.actions.admin_requests import (
    Add,
    RemoveFromVoters,
    ScaleDownVoter,
    TransferLeadership,
    Upgrade,
)
from quorate.sim.actions.network import SplitNetwork
from quorate.sim.engine.network import PartitionShape
from quorate.sim.invariants.voter_sets import holds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.sim.action_runner import ActionRunner
    from quorate.sim.engine.node import SimulatedNode
    from quorate.sim.randomness import RandomSource

# The fraction of upgrades sent to an isolated leader: one succeeds, and later ones change nothing.
LOST_UPGRADES: Final = 0.7


class MembershipChurn:
    """The requests of operators to the quorum of one cluster."""

    def __init__(self, action_runner: ActionRunner) -> None:
        self.action_runner = action_runner
        self.cluster = action_runner.cluster

    def change_voters(self, random_source: RandomSource) -> None:
        """Add or remove one voter; often one whose disk was replaced, if one was."""
        leader = self._leader()
        if leader is None:
            return
        nodes = list(self.cluster.nodes.values())
        voters = leader.log.voters
        replaced = [n for n in nodes if voters.by_id(n.node_id) and not holds(voters, n.key)]
        if replaced and random_source.chance(0.5):
            nodes = replaced
        choices = [deed for node in nodes for deed in self._for(leader, node, random_source)]
        if choices:
            self.action_runner.run(random_source.choice(choices))

    def change_boldly(self, random_source: RandomSource) -> None:
        """The same without force and without a check of the voters; it may have to be rejected."""
        leader = self._leader()
        if leader is None:
            return
        who = leader.node_id
        deeds = [
            deed
            for node in self.cluster.nodes.values()
            for deed in (
                RemoveFromVoters(whom=node.node_id, is_bold=True, who=who),
                Add(whom=node.node_id, is_bold=True, who=who),
            )
            if deed.request(self.action_runner, leader)
        ]
        if deeds:
            self.action_runner.run(random_source.choice(deeds))

    def upgrade(self, random_source: RandomSource) -> None:
        """Request kraft.version 1, mostly from a leader that is isolated first and loses it."""
        leader = self._leader()
        if leader is None:
            return
        is_old = any(voter.key.directory_id is None for voter in leader.log.voters)
        if is_old and random_source.chance(LOST_UPGRADES):
            timeouts = self.cluster.options.timeouts
            for_ms = 2 * (timeouts.fetch_timeout_ms + timeouts.election_timeout_ms)
            those = (leader.node_id,)
            shape = PartitionShape.ISOLATE
            self.action_runner.run(SplitNetwork(shape=shape, those=those, for_us=for_ms * 1000))
        self.action_runner.run(Upgrade(who=leader.node_id))

    def transfer_leadership(self, random_source: RandomSource) -> None:
        """Request a leadership transfer."""
        leader = self._leader()
        if leader is not None:
            ids = [v.key.node_id for v in leader.log.voters if v.key.node_id != leader.node_id]
            if ids:
                self.action_runner.run(
                    TransferLeadership(to=random_source.choice(ids), who=leader.node_id)
                )

    def scale_down(self, random_source: RandomSource) -> None:
        """Remove one voter because its pod is scaled down."""
        leader = self._leader()
        if leader is None:
            return
        voters = leader.log.voters
        there = [n for n in self.cluster.running() if any(n.is_voter(v) for v in voters)]
        there = [
            node for node in there if self.action_runner.survivability.can_remove(leader, node)
        ]
        if there:
            self.action_runner.run(
                ScaleDownVoter(whom=random_source.choice(there).node_id, who=leader.node_id)
            )

    def _leader(self) -> SimulatedNode | None:
        leader = self.cluster.leader()
        if leader is None or leader.is_paused or leader.progress is None:
            return None
        return leader

    def _for(
        self, leader: SimulatedNode, node: SimulatedNode, random_source: RandomSource
    ) -> Iterator[Add | RemoveFromVoters]:
        """The possible requests about one node."""
        who, whom, force = leader.node_id, node.node_id, random_source.chance(0.5)
        add, remove = (
            Add(whom=whom, force=force, who=who),
            RemoveFromVoters(whom=whom, force=force, who=who),
        )
        yield from (deed for deed in (remove, add) if deed.request(self.action_runner, leader))
