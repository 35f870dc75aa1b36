"""Voters that were removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import AddRaftVoterRequest
from quorate.records.errors import ErrorCode
from quorate.records.voters import DECOMMISSIONED_MAX
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import holds
from quorate.sim.oracle import Violation

if TYPE_CHECKING:
    from quorate.raft.messages import MembershipRequest, MembershipResponse
    from quorate.records.ids import NodeId, ReplicaKey, ReplyToken
    from quorate.records.voters import VoterSet
    from quorate.sim.logview import Entry
    from quorate.sim.node import SimulatedNode
    from quorate.sim.world import World


class DecommissionedStayAway(Invariant):
    """Each set lists who was removed, the latest 64, and they are back only if asked for by hand.

    Source: rule 7; KIP-1186 leaves out who was removed on purpose.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._by_hand: dict[tuple[NodeId, ReplyToken], ReplicaKey] = {}

    def asked(self, node: SimulatedNode, token: ReplyToken, request: MembershipRequest) -> None:
        if isinstance(request, AddRaftVoterRequest) and not request.auto_join:
            self._by_hand[node.node_id, token] = request.voter

    def answering(
        self, node: SimulatedNode, token: ReplyToken, response: MembershipResponse
    ) -> None:
        # One that is answered before it is committed has not been appended yet.
        if response.error is not ErrorCode.NONE:
            self._by_hand.pop((node.node_id, token), None)

    def appended(self, node: SimulatedNode, entry: Entry) -> None:
        if entry.voters is None:
            return
        before = node.log.voters_below(entry.base)
        listed = entry.voters.decommissioned
        if listed != expected_list(before, entry.voters):
            raise Violation(
                f"node {node.node_id} lists {_names(listed)} as decommissioned at {entry.base}, "
                f"not {_names(expected_list(before, entry.voters))}"
            )
        progress = node.progress
        if progress is None or not progress.is_leader:
            return
        for key in before.decommissioned:
            is_back = holds(entry.voters, key) and not holds(before, key)
            if is_back and key not in self._by_hand.values():
                raise Violation(f"{key} was removed, and is back at {entry.base} unasked")


def expected_list(before: VoterSet, after: VoterSet) -> tuple[ReplicaKey, ...]:
    """What a set must list, given the one before it."""
    kept = [key for key in before.decommissioned if not holds(after, key)]
    removed = [
        voter.key
        for voter in before
        if voter.key.directory_id is not None and not holds(after, voter.key)
    ]
    return tuple((kept + removed)[-DECOMMISSIONED_MAX:])


def _names(keys: tuple[ReplicaKey, ...]) -> str:
    return ", ".join(map(str, keys)) or "nobody"
