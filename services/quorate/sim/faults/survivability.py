"""Rejects faults that no quorum could survive: damage stays within a minority of every voter set.

No membership change is requested that would leave a voter set permanently without a majority of
intact disks. A voter at a new address that the voter set does not know yet counts as damaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.engine.node import SimulatedNode, Status

if TYPE_CHECKING:
    from quorate.records.voters import Voter, VoterSet
    from quorate.sim.cluster import Cluster


class Survivability:
    """Checks if the quorum of a cluster could survive an action."""

    def __init__(self, cluster: Cluster, *, grows: bool) -> None:
        """With `grows`, voters are added by request, in addition to auto-join."""
        self.cluster = cluster
        self._grows = grows or cluster.options.auto_join

    # --- changes ----------------------------------------------------------------------------------

    def can_remove(self, leader: SimulatedNode, node: SimulatedNode) -> bool:
        """True if the leader's voters could continue without this node."""
        others = [v for v in leader.log.voters if v.key.node_id != node.node_id]
        return self.is_viable_set(others, have_to_run=True)

    def is_viable_set(self, voters: list[Voter], *, have_to_run: bool) -> bool:
        """True if a majority of `voters` has intact disks, and runs if it has to."""
        alive = [v for v in voters if self._is_well(v) and (self._runs(v) or not have_to_run)]
        return bool(voters) and len(alive) > len(voters) // 2

    def _runs(self, voter: Voter) -> bool:
        return self.cluster.nodes[voter.key.node_id].status is Status.RUNNING

    # --- damage -----------------------------------------------------------------------------------

    def can_lose_disk(self, node: SimulatedNode) -> bool:
        """True if every voter set that may be in effect keeps a healthy majority without this node.

        A voter is healthy if its disk is intact and the others can find it: at its endpoint in the
        voter set, or anywhere if bootstrap servers are names. A voter set without this node may
        have it next: a request to add it may be in flight and is not withdrawn if the disk is lost.
        """
        for voters in self._possible_sets():
            is_next = self._grows and voters.by_id(node.node_id) is None
            bad = sum(1 for v in voters if v.key.node_id == node.node_id or not self._is_well(v))
            if voters.voters and bad + is_next > (len(voters) + is_next - 1) // 2:
                return False
        return True

    def may_move(self, node: SimulatedNode) -> bool:
        """True if the address may change: not while it is a static voter's, in the settings.

        Without bootstrap names, a majority must stay at known addresses, so that moved nodes can
        call it.
        """
        in_log = all(v.key.directory_id is not None for s in self._possible_sets() for v in s)
        return in_log and (self._finds_all or self.can_lose_disk(node))

    def _possible_sets(self) -> list[VoterSet]:
        sets = [node.log.voters for node in self.cluster.nodes.values()]
        sets += [
            entry.voters
            for node in self.cluster.nodes.values()
            for entry in node.log.entries
            if entry.voters is not None and entry.end > self.cluster.oracle.end
        ]
        return sets

    def _is_well(self, voter: Voter) -> bool:
        node = self.cluster.nodes[voter.key.node_id]
        is_found = self._finds_all or voter.endpoints == node.endpoints
        return node.is_intact and node.is_voter(voter) and is_found

    @property
    def _finds_all(self) -> bool:
        return self.cluster.options.reach.has_bootstrap_names
