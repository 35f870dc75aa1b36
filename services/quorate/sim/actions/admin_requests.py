"""Requests of operators to the leader: voters, upgrade, leadership, shutdown permits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from quorate.raft.messages import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    TakeLeaveRequest,
    TransferLeadershipRequest,
    UpdateFeaturesRequest,
)
from quorate.records.ids import Millis
from quorate.records.value_types import keyword_value_type
from quorate.records.voters import Voter
from quorate.sim.action_runner import LEADER
from quorate.sim.engine.node_config import CLUSTER_ID
from quorate.sim.transcript import format_change

if TYPE_CHECKING:
    from quorate.raft.messages import MembershipRequest
    from quorate.records.ids import ReplyToken
    from quorate.sim.action_runner import Action, ActionRunner
    from quorate.sim.engine.node import SimulatedNode

CHANGE_MS: Final = Millis(3000)


@keyword_value_type
class OperatorRequest(ABC):
    """A request of an operator to node `who`, sent if its process runs."""

    who: int = LEADER

    @abstractmethod
    def request(
        self, action_runner: ActionRunner, leader: SimulatedNode
    ) -> MembershipRequest | None:
        """The request; None if it may not be sent now."""

    def run(self, action_runner: ActionRunner) -> ReplyToken | None:
        leader = action_runner.find_running(self.who)
        request = None if leader is None else self.request(action_runner, leader)
        if leader is None or request is None:
            return None
        action_runner.cluster.log(f"node {leader.node_id} is asked for {format_change(request)}")
        return leader.ask(request)


@keyword_value_type
class Add(OperatorRequest):
    """Add a node, with its current directory id, to the voters.

    If the voter set has the node with another directory id, the operator forgot to remove that
    voter first. With `is_bold` the operator has not checked that the voters run.
    """

    whom: int
    force: bool = False
    is_bold: bool = False

    def request(
        self, action_runner: ActionRunner, leader: SimulatedNode
    ) -> MembershipRequest | None:
        node, voters = action_runner.resolve(self.whom), leader.log.voters
        if node is None:
            return None
        voter = voters.by_id(node.node_id)
        larger = [*voters, Voter(node.key, node.endpoints)]
        looks = not (self.force or self.is_bold)
        if voter is None and not action_runner.survivability.is_viable_set(
            larger, have_to_run=looks
        ):
            return None
        if voter is not None and node.is_voter(voter):
            return None
        return AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            voter=node.key,
            listeners=node.endpoints,
            timeout_ms=CHANGE_MS,
            force=self.force,
        )


@keyword_value_type
class RemoveFromVoters(OperatorRequest):
    """Remove the voter `whom`; with `is_bold` without a check that the other voters run."""

    whom: int
    force: bool = False
    is_bold: bool = False

    def request(
        self, action_runner: ActionRunner, leader: SimulatedNode
    ) -> MembershipRequest | None:
        node, voters = action_runner.resolve(self.whom), leader.log.voters
        voter = None if node is None else voters.by_id(node.node_id)
        others = [v for v in voters if v is not voter]
        looks = not (self.force or self.is_bold)
        if voter is None or not action_runner.survivability.is_viable_set(
            others, have_to_run=looks
        ):
            return None
        return RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter=voter.key, timeout_ms=CHANGE_MS, force=self.force
        )


@keyword_value_type
class ScaleDownVoter(OperatorRequest):
    """Remove a voter because its pod is scaled down."""

    whom: int

    def request(
        self, action_runner: ActionRunner, leader: SimulatedNode
    ) -> MembershipRequest | None:
        node = action_runner.resolve(self.whom)
        if node is None or not action_runner.survivability.can_remove(leader, node):
            return None
        action_runner.pod_scaling.start_watching()
        return RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter=node.key, timeout_ms=CHANGE_MS, scaled_away=True
        )


@keyword_value_type
class TransferLeadership(OperatorRequest):
    """Transfer leadership to another voter."""

    to: int

    def request(
        self, action_runner: ActionRunner, leader: SimulatedNode
    ) -> MembershipRequest | None:
        node = action_runner.resolve(self.to)
        voter = None if node is None else leader.log.voters.by_id(node.node_id)
        return None if voter is None else TransferLeadershipRequest(CLUSTER_ID, voter.key)


@keyword_value_type
class RequestShutdownPermit(OperatorRequest):
    """Request a shutdown permit for a voter."""

    whom: int

    def request(
        self, action_runner: ActionRunner, leader: SimulatedNode
    ) -> MembershipRequest | None:
        node = action_runner.resolve(self.whom)
        return None if node is None else TakeLeaveRequest(CLUSTER_ID, node.key)


@keyword_value_type
class Upgrade(OperatorRequest):
    """Upgrade to kraft.version 1; the leader rejects it if that version is in effect already."""

    def request(
        self, action_runner: ActionRunner, leader: SimulatedNode
    ) -> MembershipRequest | None:
        return UpdateFeaturesRequest(1, validate_only=False)


KINDS: Final[dict[str, type[Action]]] = {
    "add": Add,
    "remove": RemoveFromVoters,
    "scale-away": ScaleDownVoter,
    "hand-over": TransferLeadership,
    "take-leave": RequestShutdownPermit,
    "upgrade": Upgrade,
}
