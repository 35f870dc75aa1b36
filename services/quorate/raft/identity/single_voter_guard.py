"""The single voter of a quorum that finds another quorum of the same cluster.

See rule `sole_voter_conflict`. A quorum grows and shrinks by one voter at a time, so every leader
of this quorum needs the vote of its single voter. A leader without it leads another quorum: one of
the two directories was formatted by mistake, and their logs may agree in offsets and epochs but not
in content. The single voter then neither leads nor follows, and reports it, until an operator
decides.

Reports of such a leader by other replicas are not sufficient to give up: the single voter asks that
leader itself, at its reported address. No replica contacts a voter that is only in its own voter
set, so a single voter that leads regularly asks its bootstrap servers for the leader.

A leader of an earlier epoch may be a former leader of this quorum. Such a leader notices within two
check-quorum intervals that no majority follows it any more. If it leads for longer, it leads
another quorum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import Peer, RequestFailure, SaveRival
from quorate.raft.identity.rival_leader import Rival
from quorate.raft.messages import (
    NOTHING_KNOWN,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    VoteRefusal,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Leader, Resigned
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, Offset
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.raft.election.transitions import RoleTransitions
    from quorate.raft.messages import LeaderInfo, Request, Response
    from quorate.raft.replica import Replica
    from quorate.raft.request_manager import InFlightRequest
    from quorate.records.ids import NodeId

# The interval between two bootstrap servers is five retry backoffs, between two rounds of them five
# fetch timeouts.
BACKOFF_FACTOR: Final = 5
ROUND_FACTOR: Final = 5
# In fetch timeouts, with a request in each: the time for which a leader of an earlier epoch has to
# lead to be of another quorum. A former leader of this quorum may have one voter change in
# progress, and so leads for at most two check-quorum intervals, which are three fetch timeouts.
LEADS_ON_FACTOR: Final = 5


@value_type
class _Row:
    """A leader of an earlier epoch, and the times of its first and last consecutive answer."""

    rival: Rival
    since_ms: Millis
    last_ms: Millis


class SingleVoterGuard:
    """The search of a single voter for another quorum, and its resignation if it finds one."""

    def __init__(self, replica: Replica, role_transitions: RoleTransitions) -> None:
        self.replica = replica
        self.role_transitions = role_transitions
        # The leader that others reported and that this replica has yet to ask.
        self._alleged: Rival | None = None
        # The leader of an earlier epoch that has led in every answer so far.
        self._earlier: _Row | None = None
        self._asked_in: Epoch | None = None
        self._turn = 0
        self._next_ms = Millis(0)

    # --- reports ----------------------------------------------------------------------------------

    def is_alone(self) -> bool:
        """True if every leader of this quorum needs the vote of this replica.

        A replica that heals may have had more voters at its remembered end.
        """
        replica = self.replica
        return replica.is_only_voter and not (replica.log.is_healing or replica.abstains)

    def doubts(self, named: LeaderInfo) -> bool:
        """True if a reported leader may be of another quorum: then it has to be asked."""
        leader_id = named.leader_id
        if leader_id is None or not self._is_strange(leader_id, named.epoch):
            return False
        name = self.replica.config.listener_name
        for endpoint in named.endpoints:
            if endpoint.name == name and self._alleged is None:
                self._alleged = Rival(
                    leader_id=leader_id, epoch=named.epoch, host=endpoint.host, port=endpoint.port
                )
        return True

    def _is_strange(self, leader_id: NodeId, epoch: Epoch) -> bool:
        """True if it leads without the vote of this single voter, or did so before this epoch.

        A leader that it followed before all other voters were removed did not need its vote.
        """
        replica = self.replica
        if replica.rival is not None or not self.is_alone() or leader_id == replica.node_id:
            return False
        voted = replica.election.voted
        has_vote = voted is not None and voted.node_id == leader_id
        return not (
            epoch == replica.epoch and (has_vote or replica.election.leader_id == leader_id)
        )

    # --- asking -----------------------------------------------------------------------------------

    def drive(self) -> None:
        """Ask the reported leader; a single voter that leads asks its bootstrap servers."""
        replica = self.replica
        is_alone = replica.rival is None and self.is_alone()
        is_leading = isinstance(replica.role, Leader) and not replica.is_stopping
        if not (is_alone and is_leading):
            self._earlier = None
        alleged = self._alleged
        if not is_alone:
            self._alleged = None
        elif alleged is not None:
            if replica.request_manager.may_send(
                RequestKind.LOOK_AROUND, alleged.leader_id, replica.timers.now
            ):
                self._ask_whether_it_leads(alleged)
        elif is_leading:
            self._look_around()

    def _look_around(self) -> None:
        replica = self.replica
        servers = replica.bootstrap_peers()
        if self._asked_in != replica.epoch:
            self._asked_in, self._turn, self._next_ms = replica.epoch, 0, replica.timers.now
        if (
            not servers
            or self._next_ms > replica.timers.now
            or replica.request_manager.in_flight(RequestKind.LOOK_AROUND)
        ):
            return
        if self._earlier is not None:
            self._next_ms = replica.timers.after(replica.config.fetch_timeout_ms)
            self._ask_whether_it_leads(self._earlier.rival)
            return
        self._turn += 1
        is_round = self._turn % len(servers) == 0
        wait_ms = (
            replica.config.fetch_timeout_ms * ROUND_FACTOR
            if is_round
            else replica.config.retry_backoff_ms * BACKOFF_FACTOR
        )
        self._next_ms = replica.timers.after(wait_ms)
        self._ask(servers[(self._turn - 1) % len(servers)], Epoch(0))

    def _ask_whether_it_leads(self, named: Rival) -> None:
        """Send a Fetch of its epoch, which only a leader answers without an error."""
        self._ask(Peer(named.leader_id, named.host, named.port), named.epoch)

    def _ask(self, peer: Peer, epoch: Epoch) -> None:
        """Send a Fetch without a replica id: the answer has the leader, which does not count it."""
        question = FetchRequest(
            cluster_id=self.replica.config.cluster_id,
            replica=None,
            current_leader_epoch=epoch,
            fetch_offset=Offset(0),
            last_fetched_epoch=Epoch(0),
            max_wait_ms=Millis(0),
            max_bytes=1,
        )
        self.replica.send(RequestKind.LOOK_AROUND, peer, question)

    def handle_response(
        self, in_flight_request: InFlightRequest, response: FetchResponse | RequestFailure
    ) -> None:
        """Handle an answer: only a leader's own proves that it leads; others lead to a request."""
        if self._alleged is not None and in_flight_request.to == self._alleged.leader_id:
            self._alleged = None
        row = self._earlier
        if row is not None and in_flight_request.to == row.rival.leader_id:
            self._earlier = None
        if isinstance(response, RequestFailure) or in_flight_request.at is None:
            return
        named = response.leader
        if named.leader_id != in_flight_request.to or not self._is_strange(
            in_flight_request.to, named.epoch
        ):
            # Replicas of an earlier epoch may refer to one another in a cycle.
            if named.epoch >= self.replica.epoch or in_flight_request.to < 0:
                self.doubts(named)
            return
        found = Rival(
            leader_id=in_flight_request.to,
            epoch=named.epoch,
            host=in_flight_request.at.host,
            port=in_flight_request.at.port,
        )
        if named.epoch >= self.replica.epoch:
            self._stand_down(found)
        elif response.error is ErrorCode.NONE:
            self._see_earlier(found, in_flight_request, row)

    def _see_earlier(
        self, found: Rival, in_flight_request: InFlightRequest, row: _Row | None
    ) -> None:
        """Stand down if a leader of an earlier epoch has led for too long.

        A leader that has not noticed yet that it was deposed gives the same answer; one that has
        noticed still names itself, but with an error. Answers are not consecutive across a time in
        which this replica did not ask, since the other one may have been suspended as well.
        """
        replica = self.replica
        timeout_ms, since_ms = replica.config.fetch_timeout_ms, replica.timers.now
        if (
            row is not None
            and row.rival == found
            and in_flight_request.sent_ms - row.last_ms <= 2 * timeout_ms
        ):
            since_ms = row.since_ms
        if in_flight_request.sent_ms - since_ms >= timeout_ms * LEADS_ON_FACTOR:
            self._stand_down(found)
        elif isinstance(replica.role, Leader):
            self._earlier = _Row(found, since_ms, replica.timers.now)
            self._next_ms = replica.timers.after(timeout_ms)

    def add_deadlines(self, due: list[Millis]) -> None:
        """Step again when the next bootstrap server is to be asked."""
        replica = self.replica
        if not isinstance(replica.role, Leader) or replica.is_stopping or self._alleged is not None:
            return
        if (
            self.is_alone()
            and replica.bootstrap_peers()
            and not replica.request_manager.in_flight(RequestKind.LOOK_AROUND)
        ):
            due.append(self._next_ms)

    # --- standing down ----------------------------------------------------------------------------

    def _stand_down(self, rival: Rival) -> None:
        """Stop leading, durably: records acknowledged from now on could be lost."""
        replica = self.replica
        replica.leader_eligibility.rival = rival
        replica.out.emit(SaveRival(rival))
        text = f"{rival} has not asked this single voter for its vote: there are two quorums"
        replica.out.note(TraceEventKind.RIVAL_FOUND, text, leader_id=rival.leader_id)
        if isinstance(replica.role, Leader):
            self.role_transitions.become_resigned((), RoleChangeCause.RIVAL, text)
        elif not isinstance(replica.role, Resigned):
            self.role_transitions.become_unattached(replica.epoch, RoleChangeCause.RIVAL, text)

    def refusal(self, request: Request) -> Response | None:
        """The response to other replicas while another quorum is known; it must not mislead.

        None for a request that it still answers.
        """
        if self.replica.rival is None:
            return None
        error = ErrorCode.INCONSISTENT_VOTER_SET
        match request:
            case VoteRequest():
                return VoteResponse(error, NOTHING_KNOWN, refusal=VoteRefusal.INVALID_REQUEST)
            case BeginQuorumEpochRequest():
                return BeginQuorumEpochResponse(error, NOTHING_KNOWN)
            case EndQuorumEpochRequest():
                return EndQuorumEpochResponse(error, NOTHING_KNOWN)
            case FetchRequest():
                not_leader = ErrorCode.NOT_LEADER_OR_FOLLOWER
                return FetchResponse(error=not_leader, leader=NOTHING_KNOWN)
            case FetchSnapshotRequest():
                not_leader = ErrorCode.NOT_LEADER_OR_FOLLOWER
                return FetchSnapshotResponse(error=not_leader, leader=NOTHING_KNOWN)
        return None


def remark(replica: Replica) -> str | None:
    """The status warning of a replica that found another quorum, with the remedy."""
    rival = replica.rival
    if rival is None:
        return None
    return (
        f"this is the only voter of its quorum, and {rival}, leads another quorum of cluster "
        f"{replica.config.cluster_id}: neither leads nor follows. If that one is right, stop this "
        "process, empty its directory, and format it with --no-initial-controllers, so that it "
        "joins the other; if this one is right, stop the other, empty and format that directory, "
        "and run `quorate storage recover` on this one"
    )
