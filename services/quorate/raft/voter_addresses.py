"""Known addresses of each voter: from the voter set and from the voter's own requests.

See rule `leader_discovery`. A voter that moved while the log grew cannot be elected. The voters
that could be elected may need its vote, while their voter set still has its old address. But the
moved voter contacts them, with its endpoints in the request; from then on both addresses are tried
alternately until one answers.

An address is learned only from the voter's own request, and the address in the voter set is always
kept: a wrong announced address only costs one attempt each time that it is tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from quorate.raft.api import Peer
from quorate.raft.messages import FetchRequest, UpdateRaftVoterRequest, VoteRequest
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.messages import Request
    from quorate.records.ids import ClusterId, NodeId, ReplicaKey
    from quorate.records.voters import Endpoint, Voter, VoterSet

ADDRESSES_MAX: Final = 2
# Errors returned if another voter, or another cluster, now has the address.
WRONG_NODE_ERRORS: Final = (ErrorCode.INVALID_VOTER_KEY, ErrorCode.INCONSISTENT_CLUSTER_ID)
NEVER: Final = Millis(-1 << 62)


@dataclass(slots=True)
class _Stated:
    """Endpoints that one voter announced, now and before, and the peer to try next.

    `answered_ms` is the time of its last answer at `confirm`.
    """

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    peers: tuple[Peer, ...]
    turn: Peer | None = None
    confirm: Peer | None = None
    answered_ms: Millis = NEVER


class VoterAddresses:
    """The known addresses of each voter, for one replica."""

    def __init__(self, cluster_id: ClusterId, listener_name: str) -> None:
        self._cluster_id = cluster_id
        self._listener_name = listener_name
        self._stated: dict[NodeId, _Stated] = {}

    # --- learning ---------------------------------------------------------------------------------

    def learn_from_request(
        self, request: Request, sets: Callable[[], list[VoterSet]]
    ) -> Peer | None:
        """Learn the endpoints that a voter of one of these sets announces, if the request has any.

        Returns the announced address.
        """
        match request:
            case FetchRequest(replica=key, replica_endpoints=endpoints) if key is not None:
                pass
            case VoteRequest(replica=key, replica_endpoints=endpoints):
                pass
            case UpdateRaftVoterRequest(voter=key, listeners=endpoints):
                pass
            case _:
                return None
        before = self._stated.get(key.node_id)
        if before is not None and before.endpoints == endpoints and before.key == key:
            return before.peers[0] if before.peers else None
        if not endpoints or request.cluster_id != self._cluster_id:
            return None
        return self._learn(key, endpoints, sets())

    def _learn(
        self, key: ReplicaKey, endpoints: tuple[Endpoint, ...], sets: list[VoterSet]
    ) -> Peer | None:
        for node_id, old in list(self._stated.items()):
            if not any(old.key in voters for voters in sets):
                del self._stated[node_id]
        if not any(key in voters for voters in sets):
            return None
        peers = [
            Peer(key.node_id, e.host, e.port) for e in endpoints if e.name == self._listener_name
        ][:1]
        before = self._stated.get(key.node_id)
        if before is not None and before.key == key:
            peers += [peer for peer in before.peers if peer not in peers]
        ways = tuple(peers[:ADDRESSES_MAX])
        if before is None or before.key != key:
            self._stated[key.node_id] = _Stated(key, endpoints, ways)
        else:
            # Earlier answers do not confirm its present address.
            turn = ways[0] if ways != before.peers else before.turn
            self._stated[key.node_id] = replace(
                before, endpoints=endpoints, peers=ways, turn=turn, confirm=None
            )
        return peers[0] if peers else None

    def prefer(self, peer: Peer) -> None:
        """Try this address next."""
        stated = self._stated.get(peer.node_id)
        if stated is not None:
            stated.turn = peer

    # --- addresses to try -------------------------------------------------------------------------

    def all_known(self, voter: Voter) -> list[Peer]:
        """Every address of a voter: first the voter set's, then announced ones, latest first."""
        endpoint = voter.endpoint(self._listener_name)
        node_id = voter.key.node_id
        peers = [] if endpoint is None else [Peer(node_id, endpoint.host, endpoint.port)]
        stated = self._stated.get(node_id)
        if stated is not None and voter.key.directory_id in (None, stated.key.directory_id):
            peers += [peer for peer in stated.peers if peer not in peers]
        return peers

    def current(self, voter: Voter) -> Peer | None:
        """The next address to try; None without one."""
        peers = self.all_known(voter)
        stated = self._stated.get(voter.key.node_id)
        if stated is not None and stated.turn in peers:
            return stated.turn
        return peers[0] if peers else None

    def on_sent(self, to: Peer, voters: VoterSet, answered_since: Millis) -> None:
        """Make the next request use another address, unless this one answers.

        An address that answered since `answered_since` is kept: the response to this request may
        still be in flight at the next one.
        """
        stated = self._stated.get(to.node_id)
        voter = None if stated is None else voters.by_id(to.node_id)
        if stated is None or voter is None:
            return
        if stated.confirm == to and stated.answered_ms >= answered_since:
            return
        peers = self.all_known(voter)
        if to in peers:
            stated.turn = peers[(peers.index(to) + 1) % len(peers)]

    def confirm(self, by: Peer, now: Millis) -> None:
        """Record that the addressed voter has answered at this address."""
        stated = self._stated.get(by.node_id)
        if stated is not None:
            stated.turn = stated.confirm = by
            stated.answered_ms = now

    def reject(self, by: Peer) -> None:
        """Record that another replica has this address now."""
        stated = self._stated.get(by.node_id)
        if stated is not None and stated.confirm == by:
            stated.confirm = None
