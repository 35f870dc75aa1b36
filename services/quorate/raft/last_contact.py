"""Last contact with each peer, and the voters that are currently unreachable.

Without a leader a replica has no other information about the voters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.last_message import Heard
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.request_manager import ROTATES_ADDRESSES
from quorate.raft.roles import Initializing, Leader
from quorate.raft.voter_addresses import WRONG_NODE_ERRORS
from quorate.records.ids import Millis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.messages import PeerResponse, Request
    from quorate.raft.replica import Replica
    from quorate.raft.request_manager import InFlightRequest
    from quorate.records.ids import Epoch, NodeId

# Fraction of the election timeout: the time for a voter that announces another address to answer at
# its previous one.
MOVED_SHARE: Final = 8


class LastContact:
    """Contacts of one replica with the others since the process started."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self._heard_ms: dict[NodeId, Millis] = {}
        # Voters to whose processes the last attempt to connect failed.
        self._unreachable: set[NodeId] = set()
        # The newest epoch whose leader answered as leader, and the time of its last answer.
        self._leader_heard: tuple[Epoch, Millis] | None = None
        # The time of this replica's start, or of the end of its last leadership.
        self._needs_leader_since = Millis(0)

    def on_request(self, request: Request) -> None:
        """Handle a request: record the voter that sent it, and its announced address."""
        replica = self.replica
        # Rule `no_state_from_rejections`: another cluster's controller of the same id is not a peer
        # here.
        if getattr(request, "cluster_id", replica.config.cluster_id) != replica.config.cluster_id:
            return
        there = replica.voter_addresses.learn_from_request(
            request, replica.commit_state.possible_voter_sets
        )
        if there is not None and not isinstance(replica.role, Leader):
            # A peer that is at the previous address answers long before that.
            asked_by = replica.timers.after(-(replica.config.election_timeout_ms // MOVED_SHARE))
            if replica.request_manager.abandon_if_sent_before(there, ROTATES_ADDRESSES, asked_by):
                replica.voter_addresses.prefer(there)
        match request:
            case FetchRequest(replica=sender) | FetchSnapshotRequest(replica=sender):
                node_id = None if sender is None else sender.node_id
            case VoteRequest(replica=sender):
                node_id = sender.node_id
            case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
                node_id = request.leader_id
            case _:
                return
        if node_id is not None and replica.voters.by_id(node_id) is not None:
            self._was_heard(node_id)

    def on_response(self, in_flight_request: InFlightRequest, response: PeerResponse) -> None:
        """Handle a response of a voter at that address, unless another replica sent it."""
        replica = self.replica
        self._was_heard(in_flight_request.to)
        if in_flight_request.kind in ROTATES_ADDRESSES and in_flight_request.at is not None:
            match response:
                case VoteResponse(error=error) | BeginQuorumEpochResponse(error=error):
                    is_meant = error not in WRONG_NODE_ERRORS
                case _:
                    is_meant = True
            if is_meant:
                replica.voter_addresses.confirm(in_flight_request.at, replica.timers.now)
            else:
                replica.voter_addresses.reject(in_flight_request.at)

    def on_unreachable(self, node_id: NodeId) -> None:
        """Record that no process accepted a connection."""
        self._unreachable.add(node_id)

    def on_leader_response(self) -> None:
        """Record that the leader of this epoch has answered as leader."""
        self._leader_heard = (self.replica.epoch, self.replica.timers.now)

    def needs_leader(self) -> None:
        """Record that another replica has to lead from now on: this one starts, or has led."""
        self._needs_leader_since = self.replica.timers.now

    def silence_ms(self, now_ms: Millis) -> Millis:
        """Time without an answer of a leader; 0 up to the fetch timeout, and at a leader.

        It is measured from the last such answer, from the end of its own leadership, or from its
        start. A metrics scrape reads it from another thread.
        """
        if isinstance(self.replica.role, Initializing | Leader):
            return Millis(0)
        since_ms, heard = self._needs_leader_since, self._leader_heard
        silence_ms = Millis(now_ms - (since_ms if heard is None else max(since_ms, heard[1])))
        return silence_ms if silence_ms > self.replica.config.fetch_timeout_ms else Millis(0)

    def _was_heard(self, node_id: NodeId) -> None:
        self._heard_ms[node_id] = self.replica.timers.now
        self._unreachable.discard(node_id)

    def is_isolated(self) -> bool:
        """True if the last attempt to reach each other voter failed."""
        others = {voter.key.node_id for voter in self.replica.voters} - {self.replica.node_id}
        return self._unreachable.issuperset(others)

    def last_heard(self) -> Iterator[Heard]:
        """Last contact of each peer; of a leader only its answers as leader.

        Its other answers do not count: recovery from loss of quorum uses this to decide if the
        quorum is alive.
        """
        leader_id, leader_heard = self.replica.election.leader_id, self._leader_heard
        for node_id, at in self._heard_ms.items():
            if node_id >= 0 and node_id != leader_id:
                yield Heard(node_id, at)
        if (
            leader_id is not None
            and leader_heard is not None
            and leader_heard[0] == self.replica.epoch
        ):
            yield Heard(leader_id, leader_heard[1])
