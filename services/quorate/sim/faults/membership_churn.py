"""Random membership changes, kraft.version upgrades and leadership transfers.

Operators send requests to the leader, as in production. The leader decides if a change is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.sim.actions.admin_requests import (
    Add,
    HandOverLeadership,
    RemoveFromVoters,
    ScaleAway,
    Upgrade,
)
from quorate.sim.actions.network import SplitNetwork
from quorate.sim.engine.network import PartitionShape
from quorate.sim.invariants.voter_sets import holds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.sim.action_runner import Stage
    from quorate.sim.engine.node import SimulatedNode
    from quorate.sim.randomness import Draws

# The fraction of upgrades sent to an isolated leader: one succeeds, and later ones change nothing.
LOST_UPGRADES: Final = 0.7


class Churn:
    """The requests of operators to the quorum of one cluster."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.world = stage.world

    def change_voters(self, draws: Draws) -> None:
        """Add or remove one voter; often one whose disk was replaced, if one was."""
        leader = self._leader()
        if leader is None:
            return
        nodes = list(self.world.nodes.values())
        voters = leader.log.voters
        replaced = [n for n in nodes if voters.by_id(n.node_id) and not holds(voters, n.key)]
        if replaced and draws.chance(0.5):
            nodes = replaced
        choices = [deed for node in nodes for deed in self._for(leader, node, draws)]
        if choices:
            self.stage.do(draws.one(choices))

    def change_boldly(self, draws: Draws) -> None:
        """The same without force and without a check of the voters; it may have to be rejected."""
        leader = self._leader()
        if leader is None:
            return
        who = leader.node_id
        deeds = [
            deed
            for node in self.world.nodes.values()
            for deed in (
                RemoveFromVoters(whom=node.node_id, is_bold=True, who=who),
                Add(whom=node.node_id, is_bold=True, who=who),
            )
            if deed.request(self.stage, leader)
        ]
        if deeds:
            self.stage.do(draws.one(deeds))

    def upgrade(self, draws: Draws) -> None:
        """Request kraft.version 1, mostly from a leader that is isolated first and loses it."""
        leader = self._leader()
        if leader is None:
            return
        is_old = any(voter.key.directory_id is None for voter in leader.log.voters)
        if is_old and draws.chance(LOST_UPGRADES):
            timeouts = self.world.options.timeouts
            for_ms = 2 * (timeouts.fetch_timeout_ms + timeouts.election_timeout_ms)
            those = (leader.node_id,)
            shape = PartitionShape.ISOLATE
            self.stage.do(SplitNetwork(shape=shape, those=those, for_us=for_ms * 1000))
        self.stage.do(Upgrade(who=leader.node_id))

    def hand_over(self, draws: Draws) -> None:
        """Request a leadership transfer."""
        leader = self._leader()
        if leader is not None:
            ids = [v.key.node_id for v in leader.log.voters if v.key.node_id != leader.node_id]
            if ids:
                self.stage.do(HandOverLeadership(to=draws.one(ids), who=leader.node_id))

    def scale_away(self, draws: Draws) -> None:
        """Remove one voter because its pod is scaled down."""
        leader = self._leader()
        if leader is None:
            return
        voters = leader.log.voters
        there = [n for n in self.world.running() if any(n.is_voter(v) for v in voters)]
        there = [node for node in there if self.stage.sparing.may_lose(leader, node)]
        if there:
            self.stage.do(ScaleAway(whom=draws.one(there).node_id, who=leader.node_id))

    def _leader(self) -> SimulatedNode | None:
        leader = self.world.leader()
        if leader is None or leader.is_paused or leader.progress is None:
            return None
        return leader

    def _for(
        self, leader: SimulatedNode, node: SimulatedNode, draws: Draws
    ) -> Iterator[Add | RemoveFromVoters]:
        """The possible requests about one node."""
        who, whom, force = leader.node_id, node.node_id, draws.chance(0.5)
        add, remove = (
            Add(whom=whom, force=force, who=who),
            RemoveFromVoters(whom=whom, force=force, who=who),
        )
        yield from (deed for deed in (remove, add) if deed.request(self.stage, leader))
