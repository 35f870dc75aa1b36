"""An unforced voter change needs a live majority of the new voter set."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quorate.raft.messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import changed, holds, ids

if TYPE_CHECKING:
    from quorate.raft.messages import (
        FetchRequest,
        FetchSnapshotRequest,
        MembershipRequest,
        MembershipResponse,
    )
    from quorate.records.ids import Millis, NodeId, ReplicaKey, ReplyToken
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import ClusterView, NodeView


class _Asked(NamedTuple):
    """A voter change requested from a leader, which has not responded yet."""

    voter: ReplicaKey
    at_ms: Millis
    is_forced: bool


class _Decided(NamedTuple):
    """The fetches and the pending requests at the time of a leader's voter change."""

    incarnation: int
    at_ms: Millis
    heard_ms: dict[ReplicaKey, Millis]
    asked: tuple[_Asked, ...]


class ChangesKeepALiveMajority(Invariant):
    """An unforced change is appended only if a majority of the new set fetched after the request.

    For the added voter, a Fetch within the last fetch timeout is enough. A voter set in which most
    voters are silent commits nothing. Source: rule `check_quorum_restart` (strict reconfiguration).
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._heard_ms: dict[NodeId, tuple[int, dict[ReplicaKey, Millis]]] = {}
        self._asked: dict[tuple[NodeId, ReplyToken], _Asked] = {}
        self._decided: dict[NodeId, _Decided] = {}

    def fetching(self, node: NodeView, request: FetchRequest | FetchSnapshotRequest) -> None:
        if request.replica is not None:
            self._heard(node)[request.replica] = node.local_ms

    def asked(self, node: NodeView, token: ReplyToken, request: MembershipRequest) -> None:
        if isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest):
            asked = _Asked(request.voter, node.local_ms, request.force)
            self._asked[node.node_id, token] = asked

    def answering(self, node: NodeView, token: ReplyToken, response: MembershipResponse) -> None:
        self._asked.pop((node.node_id, token), None)

    def changing(self, node: NodeView) -> None:
        asked = tuple(asked for (of, _), asked in self._asked.items() if of == node.node_id)
        heard = dict(self._heard(node))
        self._decided[node.node_id] = _Decided(node.incarnation, node.local_ms, heard, asked)

    def appended(self, node: NodeView, entry: Entry) -> None:
        decided, progress = self._decided.get(node.node_id), node.progress
        if entry.voters is None or decided is None or decided.incarnation != node.incarnation:
            return
        if progress is None or not progress.is_leader:
            return
        before, after = node.log.voters_below(entry.base), entry.voters
        asked = [
            each for each in decided.asked if holds(before, each.voter) != holds(after, each.voter)
        ]
        is_forced = any(each.is_forced for each in asked)
        if is_forced or not before.voters or not changed(before, after):
            return
        oldest_ms = decided.at_ms - self.world.options.timeouts.fetch_timeout_ms
        asked_ms = min((each.at_ms for each in asked), default=oldest_ms)
        alive = [
            int(voter.key.node_id)
            for voter in after
            if node.is_voter(voter)
            or any(
                at_ms >= (asked_ms if holds(before, key) else oldest_ms)
                and after.voter(key) is voter
                for key, at_ms in decided.heard_ms.items()
            )
        ]
        if len(alive) < after.majority:
            raise Violation(
                f"node {node.node_id} goes to voters {ids(after)} at {entry.base} unforced, and "
                f"only {alive} have fetched since that was asked for"
            )

    def _heard(self, node: NodeView) -> dict[ReplicaKey, Millis]:
        known = self._heard_ms.get(node.node_id)
        if known is None or known[0] != node.incarnation:
            known = self._heard_ms[node.node_id] = node.incarnation, {}
        return known[1]
