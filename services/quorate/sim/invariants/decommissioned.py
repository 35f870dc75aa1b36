"""Removed voters are listed as decommissioned and do not rejoin on their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from quorate.records.errors import ErrorCode
from quorate.records.voters import DECOMMISSIONED_MAX
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import holds

if TYPE_CHECKING:
    from quorate.raft.messages import MembershipRequest, MembershipResponse
    from quorate.records.ids import NodeId, ReplicaKey, ReplyToken
    from quorate.records.voters import VoterSet
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import ClusterView, NodeView


class DecommissionedStayAway(Invariant):
    """Each voter set lists the latest 64 removed voters, and only an operator adds them again.

    Voters whose pods were scaled down are not listed. Source: rule `decommissioned_voters`;
    KIP-1186 does not cover voters that were removed on purpose.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._by_hand: dict[tuple[NodeId, ReplyToken], ReplicaKey] = {}
        # Voters whose removal was requested because their pods are scaled down, and voters that a
        # leader has removed for that.
        self._scaled_away: dict[tuple[NodeId, ReplyToken], ReplicaKey] = {}
        self._unlisted: set[ReplicaKey] = set()

    def asked(self, node: NodeView, token: ReplyToken, request: MembershipRequest) -> None:
        if isinstance(request, AddRaftVoterRequest) and not request.auto_join:
            self._by_hand[node.node_id, token] = request.voter
        if isinstance(request, RemoveRaftVoterRequest) and not request.decommissions:
            self._scaled_away[node.node_id, token] = request.voter

    def stopped(self, node: NodeView) -> None:
        """Drop the requests to this process, which will not be answered."""
        asked = self._scaled_away
        self._scaled_away = {at: key for at, key in asked.items() if at[0] != node.node_id}

    def answering(self, node: NodeView, token: ReplyToken, response: MembershipResponse) -> None:
        self._scaled_away.pop((node.node_id, token), None)
        # A request that is rejected has not been appended.
        if response.error is not ErrorCode.NONE:
            self._by_hand.pop((node.node_id, token), None)

    def appended(self, node: NodeView, entry: Entry) -> None:
        if entry.voters is None:
            return
        before = node.log.voters_below(entry.base)
        listed = entry.voters.decommissioned
        progress = node.progress
        is_leader = progress is not None and progress.is_leader
        unlisted = self._expect_unlisted(node, before, entry.voters, is_leader=is_leader)
        expected = expected_list(before, entry.voters, unlisted)
        if listed != expected:
            raise Violation(
                f"node {node.node_id} lists {_names(listed)} as decommissioned at {entry.base}, "
                f"not {_names(expected)}"
            )
        if not is_leader:
            return
        for key in before.decommissioned:
            is_back = holds(entry.voters, key) and not holds(before, key)
            if is_back and key not in self._by_hand.values():
                raise Violation(f"{key} was removed, and is back at {entry.base} unasked")

    def _expect_unlisted(
        self, node: NodeView, before: VoterSet, after: VoterSet, *, is_leader: bool
    ) -> frozenset[ReplicaKey]:
        """The removed voters that need not be listed.

        On a leader these are the requested ones; on other replicas, those that a leader removed.
        """
        removed = frozenset(removed_keys(before, after))
        if not is_leader:
            return removed & self._unlisted - frozenset(after.decommissioned)
        asked = {key for (at, _), key in self._scaled_away.items() if at == node.node_id}
        self._unlisted |= removed & asked
        return removed & asked


def expected_list(
    before: VoterSet, after: VoterSet, unlisted: frozenset[ReplicaKey] = frozenset()
) -> tuple[ReplicaKey, ...]:
    """The list that voter set `after` must have; removals in `unlisted` are left out."""
    kept = [key for key in before.decommissioned if not holds(after, key)]
    removed = [key for key in removed_keys(before, after) if key not in unlisted]
    return tuple((kept + removed)[-DECOMMISSIONED_MAX:])


def removed_keys(before: VoterSet, after: VoterSet) -> list[ReplicaKey]:
    """The voters in the first set but not in the second, if their directory ids are known."""
    known = [voter.key for voter in before if voter.key.directory_id is not None]
    return [key for key in known if not holds(after, key)]


def _names(keys: tuple[ReplicaKey, ...]) -> str:
    return ", ".join(map(str, keys)) or "nobody"
