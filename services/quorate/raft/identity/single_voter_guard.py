"""The single voter of a quorum that finds another quorum of the same cluster (rule 34).

A quorum grows and shrinks by one voter at a time, so no leader of this quorum can do without the
vote of its single voter. A leader that leads without it leads another quorum: one of the two
directories was formatted by mistake, and their logs agree in offsets and epochs but not in content.
The single voter then neither leads nor follows, and reports it, until an operator decides.

Reports of such a leader by other replicas are not sufficient to give up: the single voter asks that
leader itself, at its reported address. No replica calls a voter that is in no voter set but its
own, so a single voter that leads regularly asks its bootstrap servers for the leader.

A leader of an earlier epoch may have been one of this quorum. Such a leader notices within two
check-quorum intervals that no majority follows it any more. One that leads for longer has voters of
its own.
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
# In fetch timeouts: the time for which a leader of an earlier epoch has to lead, asked once in
# each, before it cannot be one that this quorum had. Such a leader may have one voter change in
# progress, and so leads for two check-quorum intervals at most, which are three fetch timeouts.
LEADS_ON_FACTOR: Final = 5


@value_type
class _Row:
    """A leader of an earlier epoch, and the times of the first and last answer in a row."""

    rival: Rival
    since_ms: Millis
    last_ms: Millis


class SingleVoterGuard:
    """The search of a single voter for another quorum, and its resignation before one."""

    def __init__(self, replica: Replica, role_transitions: RoleTransitions) -> None:
        self.r = replica
        self.role_transitions = role_transitions
        # The leader that this replica has yet to ask, by the reports of others.
        self._alleged: Rival | None = None
        # The leader of an earlier epoch whose every answer has shown that it leads.
        self._earlier: _Row | None = None
        self._asked_in: Epoch | None = None
        self._turn = 0
        self._next_ms = Millis(0)

    # --- reports ----------------------------------------------------------------------------------

    def is_alone(self) -> bool:
        """True if no leader of this quorum can do without the vote of this replica.

        A replica that heals may have had more voters at the end that it remembers.
        """
        r = self.r
        return r.is_only_voter and not (r.log.is_healing or r.abstains)

    def doubts(self, named: LeaderInfo) -> bool:
        """True if a named leader is perhaps not this quorum's: then it is to be asked."""
        leader_id = named.leader_id
        if leader_id is None or not self._is_strange(leader_id, named.epoch):
            return False
        name = self.r.config.listener_name
        for endpoint in named.endpoints:
            if endpoint.name == name and self._alleged is None:
                self._alleged = Rival(
                    leader_id=leader_id, epoch=named.epoch, host=endpoint.host, port=endpoint.port
                )
        return True

    def _is_strange(self, leader_id: NodeId, epoch: Epoch) -> bool:
        """True if it leads without the vote of this single voter, or did so before this epoch.

        A leader that was followed before it removed all other voters needed no vote of this one.
        """
        r = self.r
        if r.rival is not None or not self.is_alone() or leader_id == r.node_id:
            return False
        voted = r.election.voted
        has_vote = voted is not None and voted.node_id == leader_id
        return not (epoch == r.epoch and (has_vote or r.election.leader_id == leader_id))

    # --- asking -----------------------------------------------------------------------------------

    def drive(self) -> None:
        """Ask the replica that is reported to lead; a single voter that leads asks its servers."""
        r = self.r
        is_alone = r.rival is None and self.is_alone()
        is_leading = isinstance(r.role, Leader) and not r.is_stopping
        if not (is_alone and is_leading):
            self._earlier = None
        alleged = self._alleged
        if not is_alone:
            self._alleged = None
        elif alleged is not None:
            if r.request_manager.may_send(RequestKind.LOOK_AROUND, alleged.leader_id, r.timers.now):
                self._ask_whether_it_leads(alleged)
        elif is_leading:
            self._look_around()

    def _look_around(self) -> None:
        r = self.r
        servers = r.bootstrap_peers()
        if self._asked_in != r.epoch:
            self._asked_in, self._turn, self._next_ms = r.epoch, 0, r.timers.now
        if (
            not servers
            or self._next_ms > r.timers.now
            or r.request_manager.in_flight(RequestKind.LOOK_AROUND)
        ):
            return
        if self._earlier is not None:
            self._next_ms = r.timers.after(r.config.fetch_timeout_ms)
            self._ask_whether_it_leads(self._earlier.rival)
            return
        self._turn += 1
        is_round = self._turn % len(servers) == 0
        wait_ms = (
            r.config.fetch_timeout_ms * ROUND_FACTOR
            if is_round
            else r.config.retry_backoff_ms * BACKOFF_FACTOR
        )
        self._next_ms = r.timers.after(wait_ms)
        self._ask(servers[(self._turn - 1) % len(servers)], Epoch(0))

    def _ask_whether_it_leads(self, named: Rival) -> None:
        """A Fetch of its own epoch, which a leader alone answers without an error."""
        self._ask(Peer(named.leader_id, named.host, named.port), named.epoch)

    def _ask(self, peer: Peer, epoch: Epoch) -> None:
        """A Fetch without a name: its answer names the leader, and it counts for nothing."""
        question = FetchRequest(
            cluster_id=self.r.config.cluster_id,
            replica=None,
            current_leader_epoch=epoch,
            fetch_offset=Offset(0),
            last_fetched_epoch=Epoch(0),
            max_wait_ms=Millis(0),
            max_bytes=1,
        )
        self.r.send(RequestKind.LOOK_AROUND, peer, question)

    def handle_response(
        self, in_flight_request: InFlightRequest, response: FetchResponse | RequestFailure
    ) -> None:
        """Only a leader's own answer proves that it leads; others' answers are followed up."""
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
            # Replicas of an earlier epoch may name one another in a circle.
            if named.epoch >= self.r.epoch or in_flight_request.to < 0:
                self.doubts(named)
            return
        found = Rival(
            leader_id=in_flight_request.to,
            epoch=named.epoch,
            host=in_flight_request.at.host,
            port=in_flight_request.at.port,
        )
        if named.epoch >= self.r.epoch:
            self._stand_down(found)
        elif response.error is ErrorCode.NONE:
            self._see_earlier(found, in_flight_request, row)

    def _see_earlier(
        self, found: Rival, in_flight_request: InFlightRequest, row: _Row | None
    ) -> None:
        """Stand down if a leader of an earlier epoch has led for too long.

        One that is about to notice its end answers in the same way, and one that has noticed it
        continues to name itself, but with an error. A row ends while this replica does not ask,
        since the other one may have been suspended as well.
        """
        r = self.r
        timeout_ms, since_ms = r.config.fetch_timeout_ms, r.timers.now
        if (
            row is not None
            and row.rival == found
            and in_flight_request.sent_ms - row.last_ms <= 2 * timeout_ms
        ):
            since_ms = row.since_ms
        if in_flight_request.sent_ms - since_ms >= timeout_ms * LEADS_ON_FACTOR:
            self._stand_down(found)
        elif isinstance(r.role, Leader):
            self._earlier = _Row(found, since_ms, r.timers.now)
            self._next_ms = r.timers.after(timeout_ms)

    def add_deadlines(self, due: list[Millis]) -> None:
        """Step again when the next bootstrap server is to be asked."""
        r = self.r
        if not isinstance(r.role, Leader) or r.is_stopping or self._alleged is not None:
            return
        if (
            self.is_alone()
            and r.bootstrap_peers()
            and not r.request_manager.in_flight(RequestKind.LOOK_AROUND)
        ):
            due.append(self._next_ms)

    # --- standing down ----------------------------------------------------------------------------

    def _stand_down(self, rival: Rival) -> None:
        """Stop leading, durably: what is acknowledged from here on could be lost."""
        r = self.r
        r.leader_eligibility.rival = rival
        r.out.emit(SaveRival(rival))
        text = f"{rival} has not asked this single voter for its vote: there are two quorums"
        r.out.note(TraceEventKind.RIVAL_FOUND, text, leader_id=rival.leader_id)
        if isinstance(r.role, Leader):
            self.role_transitions.become_resigned((), RoleChangeCause.RIVAL, text)
        elif not isinstance(r.role, Resigned):
            self.role_transitions.become_unattached(r.epoch, RoleChangeCause.RIVAL, text)

    def refusal(self, request: Request) -> Response | None:
        """The response of a replica with a rival to other replicas, which must not mislead.

        None for a request that it still answers.
        """
        if self.r.rival is None:
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
    """The status warning of a replica that found another quorum, with what to do."""
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
