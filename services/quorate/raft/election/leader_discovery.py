"""Asks voters and bootstrap servers for the leader while no leader responds.

See rule `leader_discovery`. It asks the voters at all of their known addresses, and the bootstrap
servers, one after the other. Knowing the id of a leader is not sufficient: that leader may be dead,
removed from the voters, or at another address. The same applies to all voters that this replica
knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import RequestFailure
from quorate.raft.election.abstention import voters_not_heard
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Follower, Prospective, Resigned, Unattached
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis

if TYPE_CHECKING:
    from quorate.raft.api import Peer
    from quorate.raft.election.leader_updates import LeaderUpdates
    from quorate.raft.messages import FetchResponse
    from quorate.raft.replica import Replica
    from quorate.raft.replication.follower import FollowerReplication
    from quorate.raft.request_manager import InFlightRequest
    from quorate.records.ids import Epoch

# The interval between two requests is five retry backoffs, doubled after each round of all
# targets, up to this fraction of the election timeout.
BACKOFF_FACTOR: Final = 5
LONGEST_SHARE: Final = 2
# Limit of requests in flight.
IN_FLIGHT_MAX: Final = 16


class LeaderDiscovery:
    """Leader discovery of one replica."""

    def __init__(
        self,
        replica: Replica,
        leader_updates: LeaderUpdates,
        follower_replication: FollowerReplication,
    ) -> None:
        self.replica = replica
        self.leader_updates = leader_updates
        self.follower_replication = follower_replication
        self.next_ms = Millis(0)
        self.turn = 0
        self._asked = 0
        self._asked_in: Epoch | None = None

    def drive(self) -> None:
        """Ask the next target, if it is due."""
        replica = self.replica
        if not self._is_asking() or self.next_ms > replica.timers.now or self._is_waiting():
            return
        if not self.follower_replication.may_fetch():
            return
        targets = self._to_ask()
        if not targets:
            return
        peer = targets[self.turn % len(targets)]
        self.turn += 1
        self._asked += 1
        replica.send(
            RequestKind.DISCOVERY, peer, self.follower_replication.fetch_request(Millis(0))
        )

    def _is_asking(self) -> bool:
        """True without a leader; an abstaining voter also asks all voters for epochs.

        See rule `empty_log_abstains`.
        """
        return self.has_no_leader() or bool(voters_not_heard(self.replica))

    def _to_ask(self) -> list[Peer]:
        targets = self.discovery_targets()
        if self.has_no_leader():
            return targets
        missing = voters_not_heard(self.replica)
        return [peer for peer in targets if peer.node_id in missing]

    def _is_waiting(self) -> bool:
        """True if the previous target may still answer before the next one is asked."""
        asked_by = self.replica.timers.after(-self._patience_ms())
        return self.replica.request_manager.in_flight_since(RequestKind.DISCOVERY, asked_by)

    def _patience_ms(self) -> int:
        """Time in ms by which one request delays the next.

        An address that drops requests does not fail before the request timeout, which may be many
        election timeouts. A response that arrives after this time still counts.
        """
        config = self.replica.config
        return max(config.election_timeout_ms, config.request_timeout_ms // IN_FLIGHT_MAX)

    def has_no_leader(self) -> bool:
        """True if this replica has no leader that responds.

        An election comes first: a voter that has just lost its leader requests pre-votes, and asks
        for the leader only if that fails. A resigned leader that is no longer a voter asks once it
        has notified all voters, because no successor announces itself to it.
        """
        match self.replica.role:
            case Unattached():
                return True
            case Follower(has_fetched=False, leader_resigned=False) as role:
                return role.is_fetch_failing or self.replica.failed_rounds > 0
            case Prospective():
                return self.replica.failed_rounds > 0
            case Resigned(unacknowledged=untold):
                return not (self.replica.may_campaign or self.replica.is_voter or untold)
        return False

    def discovery_targets(self) -> list[Peer]:
        """All peers that could know the leader, in the order in which they are asked."""
        replica = self.replica
        own = {(e.host, e.port) for e in replica.config.endpoints}
        targets = [
            peer
            for voter in replica.voters
            if voter.key.node_id != replica.node_id
            for peer in replica.voter_addresses.all_known(voter)
            if (peer.host, peer.port) not in own
        ]
        return targets + replica.bootstrap_peers()

    def handle_response(
        self, in_flight_request: InFlightRequest, response: FetchResponse | RequestFailure
    ) -> None:
        """Use only the leader that the response names; records are fetched from that leader."""
        replica = self.replica
        self._wait()
        if isinstance(response, RequestFailure):
            return
        if response.error is ErrorCode.INCONSISTENT_CLUSTER_ID:
            where = (
                ""
                if in_flight_request.at is None
                else f" {in_flight_request.at.host}:{in_flight_request.at.port}"
            )
            text = f"server{where} belongs to another cluster than {replica.config.cluster_id}"
            replica.out.tell(
                TraceEventKind.REFUSED_BY_PEER, f"discovery {in_flight_request.to}", text
            )
            return
        if self._is_news(response):
            self.leader_updates.apply(response.leader, "discovery")
        elif self.has_no_leader() and response.leader.endpoints and self._is_that_leader(response):
            # The leader that does not respond; it may have moved.
            self.leader_updates.update_leader_endpoints(response.leader.endpoints)

    def _is_that_leader(self, response: FetchResponse) -> bool:
        named = response.leader
        if named.leader_id == self.replica.node_id:
            return False
        return (named.epoch, named.leader_id) == (
            self.replica.epoch,
            self.replica.election.leader_id,
        )

    def _is_news(self, response: FetchResponse) -> bool:
        """True if a response is new: reports of the lost leader must not end this election."""
        replica = self.replica
        is_own_word = response.error is ErrorCode.NONE
        is_other = replica.election.leader_id is None or response.leader.epoch > replica.epoch
        return is_own_word or is_other or isinstance(replica.role, Unattached)

    def _wait(self) -> None:
        """Set the time of the next request; the delay grows after the first round of targets."""
        replica, timers = self.replica, self.replica.timers
        if self._asked_in != replica.epoch:
            self._asked_in, self._asked = replica.epoch, 0
        rounds = self._asked // max(1, len(self.discovery_targets()))
        longest = replica.config.election_timeout_ms // LONGEST_SHARE
        delay = min(replica.config.retry_backoff_ms * BACKOFF_FACTOR << min(rounds, 16), longest)
        self.next_ms = timers.after(delay - timers.draw(delay // 2) if rounds else delay)

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadline of the next discovery request."""
        # Before the log is flushed, or without a peer to ask, no deadline permits a request.
        if not self._is_asking() or not self.follower_replication.may_fetch():
            return
        calls, now_ms = self.replica.request_manager, self.replica.timers.now
        if self._is_waiting():
            due += calls.resend_deadlines(RequestKind.DISCOVERY, self._patience_ms(), now_ms)
        elif self._to_ask():
            due.append(self.next_ms)
