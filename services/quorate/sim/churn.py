"""Changes of the quorum while everything else happens: voters, addresses, kraft.version, leaders.

Operators ask the leader, as they would in production, and look first: no change is asked for that
would leave a set without a majority of whole disks for ever. Whether it may be now is for the
leader to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    TransferLeadershipRequest,
    UpdateFeaturesRequest,
)
from quorate.records.ids import Millis
from quorate.records.voters import Voter
from quorate.sim.configuring import CLUSTER_ID
from quorate.sim.invariants.voter_sets import holds
from quorate.sim.node import SimulatedNode, Status
from quorate.sim.transcript import format_change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.messages import MembershipRequest
    from quorate.records.voters import VoterSet
    from quorate.sim.world import World

CHANGE_MS = Millis(3000)


class Churn:
    """What operators do to the quorum of one world."""

    def __init__(self, world: World) -> None:
        self.world = world

    # --- what the leader is asked for -------------------------------------------------------------

    def change_voters(self) -> None:
        """Add or remove one voter; often one whose disk was replaced, if there is any."""
        leader = self._leader()
        if leader is None:
            return
        nodes = self._nodes()
        voters = leader.log.voters
        replaced = [n for n in nodes if voters.by_id(n.node_id) and not holds(voters, n.key)]
        if replaced and self.world.random.random() < 0.5:
            nodes = replaced
        self._ask(leader, [request for node in nodes for request in self._for(leader, node)])

    def upgrade(self) -> None:
        """Ask for kraft.version 1; where it is in force already, that is the answer."""
        leader = self._leader()
        if leader is not None:
            self._ask(leader, [UpdateFeaturesRequest(1, validate_only=False)])

    def hand_over(self) -> None:
        """Ask for another leader."""
        leader = self._leader()
        if leader is not None:
            others = [v.key for v in leader.log.voters if v.key.node_id != leader.node_id]
            self._ask(leader, [TransferLeadershipRequest(CLUSTER_ID, key) for key in others])

    def _leader(self) -> SimulatedNode | None:
        leader = self.world.leader()
        if leader is None or leader.is_paused or leader.progress is None:
            return None
        return leader

    def _nodes(self) -> list[SimulatedNode]:
        return list(self.world.nodes.values())

    def _ask(self, leader: SimulatedNode, choices: list[MembershipRequest]) -> None:
        if not choices:
            return
        request = choices[int(self.world.random.random() * len(choices))]
        self.world.remark(f"node {leader.node_id} is asked for {format_change(request)}")
        leader.ask(request)

    def _for(self, leader: SimulatedNode, node: SimulatedNode) -> Iterator[MembershipRequest]:
        """What could be asked for about one node."""
        current = leader.log.voters
        voter = current.by_id(node.node_id)
        force = self.world.random.random() < 0.5
        joined = AddRaftVoterRequest(CLUSTER_ID, node.key, node.endpoints, CHANGE_MS, force=force)
        if voter is not None:
            others = [v for v in current if v is not voter]
            if self._may_become(others, force=force):
                yield RemoveRaftVoterRequest(CLUSTER_ID, voter.key, CHANGE_MS, force=force)
            if not node.is_voter(voter):
                # Somebody forgot that the disk of before must go first: this is refused.
                yield joined
        elif self._may_become([*current, Voter(node.key, node.endpoints)], force=force):
            yield joined

    def may_lose(self, leader: SimulatedNode, node: SimulatedNode) -> bool:
        """Whether its voters without that one could go on."""
        others = [v for v in leader.log.voters if v.key.node_id != node.node_id]
        return self._may_become(others, force=False)

    def _may_become(self, voters: list[Voter], *, force: bool) -> bool:
        """A majority of the set has whole disks, and runs unless the change is forced."""
        alive = [v for v in voters if self._is_well(v) and (force or self._runs(v))]
        return bool(voters) and len(alive) > len(voters) // 2

    def _runs(self, voter: Voter) -> bool:
        return self.world.nodes[voter.key.node_id].status is Status.RUNNING

    # --- what may break ---------------------------------------------------------------------------

    def can_spare(self, node: SimulatedNode) -> bool:
        """Whether every set that may be in force keeps a majority that is well without this one.

        Well is a voter with its whole disk that the others find: where the set says, or, where
        bootstrap servers are names, anywhere. A set without this node may have it next: the request
        to add it may be on its way, and nobody takes that back when the disk goes.
        """
        for voters in self._possible_sets():
            is_next = self._is_growing and voters.by_id(node.node_id) is None
            bad = sum(1 for v in voters if v.key.node_id == node.node_id or not self._is_well(v))
            if voters.voters and bad + is_next > (len(voters) + is_next - 1) // 2:
                return False
        return True

    @property
    def _is_growing(self) -> bool:
        options = self.world.options
        return options.auto_join or options.voters_every_ms > 0

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
        is_whole = not node.is_healing and not node.is_rotten
        is_found = self._finds_all or voter.endpoints == node.endpoints
        return is_whole and node.is_voter(voter) and is_found

    @property
    def _finds_all(self) -> bool:
        return self.world.options.has_bootstrap_names

    def may_move(self, node: SimulatedNode) -> bool:
        """Addresses change at any time, but not while they stand in everybody's settings.

        Without names a majority has to stay where everybody takes it to be: the movers call it.
        """
        in_log = all(v.key.directory_id is not None for s in self._possible_sets() for v in s)
        return in_log and (self._finds_all or self.can_spare(node))
