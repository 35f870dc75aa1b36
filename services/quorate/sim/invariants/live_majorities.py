"""Changes of the voters without force."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quorate.raft.messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import changed, holds, ids
from quorate.sim.oracle import Violation

if TYPE_CHECKING:
    from quorate.raft.messages import (
        FetchRequest,
        FetchSnapshotRequest,
        MembershipRequest,
        MembershipResponse,
    )
    from quorate.records.ids import Millis, NodeId, ReplicaKey, ReplyToken
    from quorate.sim.logview import Entry
    from quorate.sim.seen import SeenNode, SeenWorld


class _Decided(NamedTuple):
    """A leader's knowledge when it decided on another set, and those who may have forced it."""

    incarnation: int
    at_ms: Millis
    heard_ms: dict[ReplicaKey, Millis]
    forced: tuple[ReplicaKey, ...]


class ChangesKeepALiveMajority(Invariant):
    """An unforced change is appended only if a majority of the new set fetched of late.

    That is, within the fetch timeout before the leader decided on it. A set that most voters are
    silent in commits nothing. Source: rule 5 (strict reconfiguration).
    """

    def __init__(self, world: SeenWorld) -> None:
        super().__init__(world)
        self._heard_ms: dict[NodeId, tuple[int, dict[ReplicaKey, Millis]]] = {}
        self._forced: dict[tuple[NodeId, ReplyToken], ReplicaKey] = {}
        self._decided: dict[NodeId, _Decided] = {}

    def fetching(self, node: SeenNode, request: FetchRequest | FetchSnapshotRequest) -> None:
        if request.replica is not None:
            self._heard(node)[request.replica] = node.local_ms

    def asked(self, node: SeenNode, token: ReplyToken, request: MembershipRequest) -> None:
        if isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest) and request.force:
            self._forced[node.node_id, token] = request.voter

    def answering(self, node: SeenNode, token: ReplyToken, response: MembershipResponse) -> None:
        self._forced.pop((node.node_id, token), None)

    def changing(self, node: SeenNode) -> None:
        forced = tuple(key for (by, _), key in self._forced.items() if by == node.node_id)
        heard = dict(self._heard(node))
        self._decided[node.node_id] = _Decided(node.incarnation, node.local_ms, heard, forced)

    def appended(self, node: SeenNode, entry: Entry) -> None:
        decided, progress = self._decided.get(node.node_id), node.progress
        if entry.voters is None or decided is None or decided.incarnation != node.incarnation:
            return
        if progress is None or not progress.is_leader:
            return
        before, after = node.log.voters_below(entry.base), entry.voters
        is_forced = any(holds(before, key) != holds(after, key) for key in decided.forced)
        if is_forced or not before.voters or not changed(before, after):
            return
        oldest_ms = decided.at_ms - self.world.options.timeouts.fetch_timeout_ms
        alive = [
            int(voter.key.node_id)
            for voter in after
            if node.is_voter(voter)
            or any(
                at_ms >= oldest_ms and after.voter(key) is voter
                for key, at_ms in decided.heard_ms.items()
            )
        ]
        if len(alive) < after.majority:
            raise Violation(
                f"node {node.node_id} goes to voters {ids(after)} at {entry.base} unforced, and "
                f"only {alive} have fetched within a fetch timeout"
            )

    def _heard(self, node: SeenNode) -> dict[ReplicaKey, Millis]:
        known = self._heard_ms.get(node.node_id)
        if known is None or known[0] != node.incarnation:
            known = self._heard_ms[node.node_id] = node.incarnation, {}
        return known[1]
