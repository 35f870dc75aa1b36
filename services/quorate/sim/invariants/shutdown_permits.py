"""Shutdown permits never take a majority away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import TakeLeaveRequest
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import holds, ids

if TYPE_CHECKING:
    from quorate.raft.messages import MembershipRequest, MembershipResponse
    from quorate.records.ids import NodeId, ReplicaKey, ReplyToken
    from quorate.sim.views import ClusterView, NodeView


@value_type
class IssuedPermit:
    """A shutdown permit: its voter and the voter's process, and the leader that issued it."""

    key: ReplicaKey
    incarnation: int
    by: tuple[NodeId, int]


class PermitsKeepAMajority(Invariant):
    """Without other faults, shutdown permits never make a majority of the voters unavailable.

    A voter with a permit counts as unavailable until it is started again. Source: decision 0005.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._asked: dict[tuple[NodeId, ReplyToken], ReplicaKey] = {}
        self._given: list[IssuedPermit] = []

    def asked(self, node: NodeView, token: ReplyToken, request: MembershipRequest) -> None:
        if isinstance(request, TakeLeaveRequest):
            self._asked[node.node_id, token] = request.voter

    def answering(self, node: NodeView, token: ReplyToken, response: MembershipResponse) -> None:
        key = self._asked.pop((node.node_id, token), None)
        if key is None or response.error is not ErrorCode.NONE:
            return
        asker = self.world.nodes[key.node_id]
        given = IssuedPermit(key, asker.incarnation, (node.node_id, node.incarnation))
        self._given = [one for one in self._given if self._is_away(one) and one.key != key]
        self._given.append(given)
        voters = node.log.voters
        away = [one.key for one in self._given if holds(voters, one.key)]
        if len(voters) - len(away) < voters.majority:
            raise Violation(
                f"node {node.node_id} gives leave to {key}: with it {ids_of(away)} of the voters "
                f"{ids(voters)} are away"
            )

    def _is_away(self, issued_permit: IssuedPermit) -> bool:
        return self.world.nodes[issued_permit.key.node_id].incarnation == issued_permit.incarnation


def ids_of(keys: list[ReplicaKey]) -> list[int]:
    return [int(key.node_id) for key in keys]
