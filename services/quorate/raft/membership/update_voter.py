"""UpdateRaftVoter: a voter reports its endpoints and supported versions to the leader (KIP-853).

A voter sends it until its entry in the voter set matches. At kraft.version 0 no record can have the
entry: each voter reports it once to each leader, which keeps it in memory for the upgrade
(raft/membership/kraft_version_upgrade.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import RequestFailure
from quorate.raft.election.epoch_start import drifted_entry
from quorate.raft.identity.cloned_voters import is_contested
from quorate.raft.membership.rejection import Rejection
from quorate.raft.messages import MembershipResponse, Reason, UpdateRaftVoterRequest
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Follower, Leader
from quorate.raft.trace_events import TraceEventKind
from quorate.raft.trace_fields import voter_change_fields
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis
from quorate.records.voters import Voter

if TYPE_CHECKING:
    from quorate.raft.election.leader_updates import LeaderUpdates
    from quorate.raft.membership.voter_changes import VoterChanges
    from quorate.raft.request_manager import InFlightRequest
    from quorate.records.ids import ReplyToken
    from quorate.records.voters import VoterSet

# In fetch timeouts: the delay before an acknowledged update that did not arrive is sent again.
REPEAT_FETCH_TIMEOUTS = 3
# A leader of an earlier release does not know the request. But that answer may also come from
# another process, or be damaged, so the request is repeated after a long delay.
UNKNOWN_FETCH_TIMEOUTS = 10
# Fraction of a delay that is random.
JITTER_SHARE = 4


class UpdateVoterHandler:
    """UpdateRaftVoter, at the voter and at the leader."""

    def __init__(self, voter_changes: VoterChanges, leader_updates: LeaderUpdates) -> None:
        self.voter_changes = voter_changes
        self.leader_updates = leader_updates
        self.replica = voter_changes.replica
        self.next_ms = Millis(0)
        self.told_epoch: Epoch | None = None
        self._compared: VoterSet | None = None
        self._drifted: Voter | None = None

    # --- the voter's side -------------------------------------------------------------------------

    def drive(self) -> None:
        """Report this voter's entry to the leader if it is out of date."""
        replica = self.replica
        if not self._is_due() or self.next_ms > replica.timers.now:
            return
        if replica.request_manager.in_flight(RequestKind.UPDATE_RAFT_VOTER):
            return
        peer = replica.leader_peer()
        assert peer is not None
        entry = self._entry()
        request = UpdateRaftVoterRequest(
            cluster_id=replica.config.cluster_id,
            current_leader_epoch=replica.epoch,
            voter=replica.key,
            listeners=entry.endpoints,
            kraft_version_min=entry.kraft_version_min,
            kraft_version_max=entry.kraft_version_max,
        )
        self._wait(1)
        replica.send(RequestKind.UPDATE_RAFT_VOTER, peer, request)

    def _is_due(self) -> bool:
        replica = self.replica
        role = replica.role
        if not isinstance(role, Follower) or not role.has_fetched or role.leader_resigned:
            return False
        # The leader's address comes last: this runs twice per step, and is rarely needed.
        if replica.log.kraft_version < 1:
            has_news = replica.is_voter and self.told_epoch != replica.epoch
        else:
            has_news = self._drift() is not None
        return has_news and replica.leader_peer() is not None

    def _drift(self) -> Voter | None:
        """The entry to report, if it is out of date; computed once per voter set."""
        voters = self.replica.voters
        if self._compared is not voters:
            self._compared, self._drifted = voters, drifted_entry(self.replica)
        return self._drifted

    def _entry(self) -> Voter:
        return self._drift() or Voter(self.replica.key, self.replica.config.endpoints)

    def _wait(self, fetch_timeouts: int) -> None:
        delay = self.replica.config.fetch_timeout_ms * fetch_timeouts
        # Voters that moved simultaneously must not collide each time, since only one change can
        # be in progress.
        self.next_ms = self.replica.timers.after(
            delay - self.replica.timers.draw(delay // JITTER_SHARE)
        )

    def handle_response(
        self, in_flight_request: InFlightRequest, answer: MembershipResponse | RequestFailure
    ) -> None:
        """Handle the acknowledgement, or retry later."""
        replica = self.replica
        if isinstance(answer, RequestFailure):
            return
        self.leader_updates.apply(answer.leader, f"answer of {in_flight_request.to}")
        if answer.error is ErrorCode.NONE:
            self.told_epoch = in_flight_request.epoch
            replica.out.forget("UpdateRaftVoter")
            self._wait(REPEAT_FETCH_TIMEOUTS)
        else:
            if answer.error is ErrorCode.UNSUPPORTED_VERSION:
                self._wait(UNKNOWN_FETCH_TIMEOUTS)
            text = f"{in_flight_request.to} refuses UpdateRaftVoter: {answer.message}"
            state = f"{in_flight_request.to} {answer.error.name} {answer.reason}"
            replica.out.tell(TraceEventKind.REFUSED_BY_PEER, "UpdateRaftVoter", text, state)

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the time of the next report to the leader."""
        if self._is_due() and not self.replica.request_manager.in_flight(
            RequestKind.UPDATE_RAFT_VOTER
        ):
            due.append(self.next_ms)

    # --- the leader's side ------------------------------------------------------------------------

    def handle(self, token: ReplyToken, request: UpdateRaftVoterRequest) -> None:
        """Append the set with that entry; answered once it is appended, as in Kafka."""
        replica = self.replica
        obstacle = self.voter_changes.check_leader(request.cluster_id)
        if obstacle is None:
            assert isinstance(replica.role, Leader)
            obstacle = self._why_not(replica.role, request)
        entry = Voter(
            request.voter, request.listeners, request.kraft_version_min, request.kraft_version_max
        )
        if obstacle is None:
            obstacle = self.voter_changes.check_record_limits(replica.voters.with_voter(entry))
        if obstacle is not None:
            self.voter_changes.reject(token, obstacle)
            return
        assert isinstance(replica.role, Leader)
        replica.out.reply(token, MembershipResponse(ErrorCode.NONE, "", replica.leader_info))
        if replica.log.kraft_version < 1:
            replica.role.updates[request.voter.node_id] = entry
        elif replica.voters.voter(request.voter) != entry:
            replica.out.note(
                TraceEventKind.CHANGE_APPENDED,
                f"update voter {request.voter}: appended at offset {replica.log.end.offset}",
                **voter_change_fields("update", request.voter),
                offset=replica.log.end.offset,
            )
            self.voter_changes.append(None, voters=replica.voters.with_voter(entry))

    def _why_not(self, role: Leader, request: UpdateRaftVoterRequest) -> Rejection | None:
        replica = self.replica
        if request.current_leader_epoch != replica.epoch:
            is_old = request.current_leader_epoch < replica.epoch
            text = (
                f"current_leader_epoch is {request.current_leader_epoch}, this is {replica.epoch}"
            )
            error = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
            return Rejection(error, Reason.STALE_EPOCH, text)
        if request.voter.directory_id is None:
            text = "voter_directory_id is missing: a voter names its own"
            return Rejection(ErrorCode.INVALID_REQUEST, Reason.DIRECTORY_ID_UNKNOWN, text)
        if replica.voters.voter(request.voter) is None:
            ids = ", ".join(str(voter.key) for voter in replica.voters)
            text = f"{request.voter} is no voter: the voters are {ids} (node id : directory id)"
            return Rejection(ErrorCode.VOTER_NOT_FOUND, Reason.VOTER_NOT_FOUND, text)
        if is_contested(replica, role, request.voter, request.listeners):
            text = f"two processes may be voter {request.voter}: stop the one that is a copy"
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.PENDING_VOTER_CHANGE, text)
        finalised = replica.log.kraft_version
        if not request.kraft_version_min <= finalised <= request.kraft_version_max:
            text = (
                f"voter {request.voter} supports kraft.version {request.kraft_version_min} to "
                f"{request.kraft_version_max}, and {finalised} is in force: keep software that does"
            )
            return Rejection(ErrorCode.INVALID_REQUEST, Reason.VOTER_UNSUPPORTED, text)
        return (
            self.voter_changes.check_listeners(request.listeners)
            or self.voter_changes.check_epoch_committed(role)
            or self.voter_changes.check_no_pending_change(role)
        )
