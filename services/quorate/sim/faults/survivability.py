"""Rejects faults that no quorum could survive: damage stays within a minority of every voter set.

No membership change is requested that would leave a voter set permanently without a majority of
intact disks. A voter at a new address that the voter set does not know yet counts as damaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.engine.node import SimulatedNode, Status

if TYPE_CHECKING:
    from quorate.records.voters import Voter, VoterSet
    from quorate.sim.cluster import World


class Sparing:
    """Looks at one world before something is done to it."""

    def __init__(self, world: World, *, grows: bool) -> None:
        """In a world that `grows` somebody asks for more voters, beside what joins by itself."""
        self.world = world
        self._grows = grows or world.options.auto_join

    # --- changes ----------------------------------------------------------------------------------

    def may_lose(self, leader: SimulatedNode, node: SimulatedNode) -> bool:
        """Whether the leader's voters without that one could go on."""
        others = [v for v in leader.log.voters if v.key.node_id != node.node_id]
        return self.may_become(others, have_to_run=True)

    def may_become(self, voters: list[Voter], *, have_to_run: bool) -> bool:
        """A majority of the set has whole disks, and runs where it has to."""
        alive = [v for v in voters if self._is_well(v) and (self._runs(v) or not have_to_run)]
        return bool(voters) and len(alive) > len(voters) // 2

    def _runs(self, voter: Voter) -> bool:
        return self.world.nodes[voter.key.node_id].status is Status.RUNNING

    # --- damage -----------------------------------------------------------------------------------

    def can_spare(self, node: SimulatedNode) -> bool:
        """Whether every set that may be in force keeps a majority that is well without this one.

        Well is a voter with its whole disk that the others find: where the set says, or, where
        bootstrap servers are names, anywhere. A set without this node may have it next: the request
        to add it may be on its way, and nobody takes that back when the disk goes.
        """
        for voters in self._possible_sets():
            is_next = self._grows and voters.by_id(node.node_id) is None
            bad = sum(1 for v in voters if v.key.node_id == node.node_id or not self._is_well(v))
            if voters.voters and bad + is_next > (len(voters) + is_next - 1) // 2:
                return False
        return True

    def may_move(self, node: SimulatedNode) -> bool:
        """Addresses change at any time, but not while they stand in everybody's settings.

        Without names a majority has to stay where everybody takes it to be: the movers call it.
        """
        in_log = all(v.key.directory_id is not None for s in self._possible_sets() for v in s)
        return in_log and (self._finds_all or self.can_spare(node))

    def _possible_sets(self) -> list[VoterSet]:
        sets = [node.log.voters for node in self.world.nodes.values()]
        sets += [
            entry.voters
            for node in self.world.nodes.values()
            for entry in node.log.entries
            if entry.voters is not None and entry.end > self.world.oracle.end
        ]
        return sets

    def _is_well(self, voter: Voter) -> bool:
        node = self.world.nodes[voter.key.node_id]
        is_found = self._finds_all or voter.endpoints == node.endpoints
        return node.is_whole and node.is_voter(voter) and is_found

    @property
    def _finds_all(self) -> bool:
        return self.world.options.reach.has_bootstrap_names
