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
    from quorate.sim.action_runner import Deed, Stage
    from quorate.sim.engine.node import SimulatedNode

CHANGE_MS: Final = Millis(3000)


@keyword_value_type
class Question(ABC):
    """`who` is asked, if it runs."""

    who: int = LEADER

    @abstractmethod
    def request(self, stage: Stage, leader: SimulatedNode) -> MembershipRequest | None:
        """The request; None if it may not be sent now."""

    def do(self, stage: Stage) -> ReplyToken | None:
        leader = stage.find_running(self.who)
        request = None if leader is None else self.request(stage, leader)
        if leader is None or request is None:
            return None
        stage.world.remark(f"node {leader.node_id} is asked for {format_change(request)}")
        return leader.ask(request)


@keyword_value_type
class Add(Question):
    """Add a node, with the disk that it has, to the voters.

    Where the set has it with another disk, the operator forgot that this must go first. One that
    `is_bold` has not looked whether the voters run.
    """

    whom: int
    force: bool = False
    is_bold: bool = False

    def request(self, stage: Stage, leader: SimulatedNode) -> MembershipRequest | None:
        node, voters = stage.find(self.whom), leader.log.voters
        if node is None:
            return None
        voter = voters.by_id(node.node_id)
        larger = [*voters, Voter(node.key, node.endpoints)]
        looks = not (self.force or self.is_bold)
        if voter is None and not stage.sparing.may_become(larger, have_to_run=looks):
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
class RemoveFromVoters(Question):
    """Remove the voter of that node id; who `is_bold` has not looked whether the others run."""

    whom: int
    force: bool = False
    is_bold: bool = False

    def request(self, stage: Stage, leader: SimulatedNode) -> MembershipRequest | None:
        node, voters = stage.find(self.whom), leader.log.voters
        voter = None if node is None else voters.by_id(node.node_id)
        others = [v for v in voters if v is not voter]
        looks = not (self.force or self.is_bold)
        if voter is None or not stage.sparing.may_become(others, have_to_run=looks):
            return None
        return RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter=voter.key, timeout_ms=CHANGE_MS, force=self.force
        )


@keyword_value_type
class ScaleAway(Question):
    """Remove a voter because its pod goes."""

    whom: int

    def request(self, stage: Stage, leader: SimulatedNode) -> MembershipRequest | None:
        node = stage.find(self.whom)
        if node is None or not stage.sparing.may_lose(leader, node):
            return None
        stage.pods.look_out()
        return RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter=node.key, timeout_ms=CHANGE_MS, scaled_away=True
        )


@keyword_value_type
class HandOverLeadership(Question):
    """Let another voter lead."""

    to: int

    def request(self, stage: Stage, leader: SimulatedNode) -> MembershipRequest | None:
        node = stage.find(self.to)
        voter = None if node is None else leader.log.voters.by_id(node.node_id)
        return None if voter is None else TransferLeadershipRequest(CLUSTER_ID, voter.key)


@keyword_value_type
class GiveLeave(Question):
    """Give a voter leave to stop, when its turn has come."""

    whom: int

    def request(self, stage: Stage, leader: SimulatedNode) -> MembershipRequest | None:
        node = stage.find(self.whom)
        return None if node is None else TakeLeaveRequest(CLUSTER_ID, node.key)


@keyword_value_type
class Upgrade(Question):
    """Go to kraft.version 1; where it is in force already, that is the answer."""

    def request(self, stage: Stage, leader: SimulatedNode) -> MembershipRequest | None:
        return UpdateFeaturesRequest(1, validate_only=False)


KINDS: Final[dict[str, type[Deed]]] = {
    "add": Add,
    "remove": RemoveFromVoters,
    "scale-away": ScaleAway,
    "hand-over": HandOverLeadership,
    "take-leave": GiveLeave,
    "upgrade": Upgrade,
}
