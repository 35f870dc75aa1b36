"""RaftCore: dispatches each event to the handlers and returns one Update per step.

Every step first runs the timers that are due, so that a process that was suspended checks its
quorum before it answers a request (rule `monotonic_clock`). Then it handles the event, and then it
sends the requests that have become due. Events that report the state of the log are handled before
the timers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from quorate.raft.api import (
    BrokerKRaftVersions,
    CallerDisconnected,
    Event,
    LogCleaned,
    LogFlushed,
    LogTruncated,
    ProbeCompleted,
    ReadRequested,
    RecordsProposed,
    RequestFailure,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    ShutdownRequested,
    SnapshotChecked,
    SnapshotInstalled,
    SnapshotRefused,
    SnapshotStored,
    StateMachineProgress,
    TimerFired,
    TruncationRefused,
    Update,
)
from quorate.raft.describe_quorum import api_versions, describe, status_warnings
from quorate.raft.election.campaign import Campaign
from quorate.raft.election.epoch_announcements import EpochAnnouncements
from quorate.raft.election.epoch_guard import EpochGuard
from quorate.raft.election.failure_detector import LeaderFailureDetector
from quorate.raft.election.leader_discovery import LeaderDiscovery
from quorate.raft.election.leader_updates import LeaderUpdates
from quorate.raft.election.pre_vote_leases import PreVoteLeases
from quorate.raft.election.transitions import RoleTransitions
from quorate.raft.election.vote_handler import VoteHandler
from quorate.raft.graceful_shutdown import GracefulShutdown
from quorate.raft.identity.single_voter_guard import SingleVoterGuard
from quorate.raft.initialization import initialize
from quorate.raft.last_contact import LastContact
from quorate.raft.membership.requests import MembershipRequests
from quorate.raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    MembershipResponse,
    RemoveRaftVoterRequest,
    TakeLeaveRequest,
    TransferLeadershipRequest,
    UpdateFeaturesRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.replica import Replica
from quorate.raft.replication.follower import FollowerReplication
from quorate.raft.replication.leader import LeaderReplication
from quorate.raft.replication.leader_contact import LeaderContact
from quorate.raft.replication.read_index import ReadIndex
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Leader
from quorate.raft.trace_events import TraceEventKind

if TYPE_CHECKING:
    from quorate.raft.api import Peer, RaftConfig, Random, RecoveredState
    from quorate.raft.messages import PeerResponse
    from quorate.raft.request_manager import InFlightRequest
    from quorate.records.ids import Millis, Offset, OffsetAndEpoch

# Events that report the actual state of the log on the disk.
_LOG_REPLACED_EVENTS: Final = (LogTruncated, TruncationRefused, SnapshotInstalled)


class RaftCore:
    """One replica of the quorum, without clock, disk or network."""

    def __init__(
        self,
        config: RaftConfig,
        recovered: RecoveredState,
        random: Random,
        incarnation: int = 0,
    ) -> None:
        """`incarnation` is a random number that each process generates at start.

        See rule `one_process_per_voter`.
        """
        self.replica = replica = Replica(config, recovered, random)
        self.last_contact = LastContact(replica)
        self.epoch_guard = EpochGuard(replica)
        self.transitions = RoleTransitions(replica, self.last_contact)
        self.single_voter_guard = SingleVoterGuard(replica, self.transitions)
        self.leader_updates = LeaderUpdates(replica, self.transitions, self.single_voter_guard)
        self.leader_failure_detector = LeaderFailureDetector(replica, self.transitions)
        promises = PreVoteLeases(replica)
        self.vote_handler = VoteHandler(
            replica, self.transitions, self.epoch_guard, self.leader_failure_detector, promises
        )
        self.campaign = Campaign(
            replica, self.transitions, self.leader_updates, self.leader_failure_detector, promises
        )
        contact = LeaderContact(
            replica, self.leader_updates, self.leader_failure_detector, self.last_contact
        )
        self.follower_replication = FollowerReplication(replica, contact, incarnation)
        self.leader_discovery = LeaderDiscovery(
            replica, self.leader_updates, self.follower_replication
        )
        self.read_index = ReadIndex(replica)
        self.leader_replication = LeaderReplication(
            replica, self.transitions, self.epoch_guard, self.read_index
        )
        self.epoch_announcements = EpochAnnouncements(
            replica, self.leader_updates, self.epoch_guard, self.leader_replication
        )
        self.membership_requests = MembershipRequests(
            replica, self.leader_updates, self.leader_replication
        )
        self.graceful_shutdown = GracefulShutdown(
            replica, self.transitions, self.leader_replication, self.last_contact
        )

    def start(self, now_ms: Millis) -> Update:
        """Assume the role that the recovered state requires; called once, before the first step."""
        self.replica.timers.now = now_ms
        initialize(self.replica, self.transitions)
        self.follower_replication.snapshot_downloader.finish_healing_if_caught_up()
        return self._finish()

    def step(self, event: Event, now_ms: Millis) -> Update:
        """Handle `event` and return the effects. `now_ms` is monotonic and never decreases."""
        self.replica.timers.now = now_ms
        if isinstance(event, _LOG_REPLACED_EVENTS):
            # No timer may act on a log that has been replaced.
            self._handle(event)
            self._expire()
        else:
            self._expire()
            self._handle(event)
        return self._finish()

    @property
    def has_live_leader(self) -> bool:
        """True if it leads, or follows a leader that responds and is not contradicting.

        See rule `leader_contradiction`. False while there is another quorum of its cluster: neither
        is reliable (rule `sole_voter_conflict`).
        """
        replica = self.replica
        if replica.second_quorum.is_met:
            return False
        if isinstance(replica.role, Leader):
            return True
        return (
            self.leader_failure_detector.has_live_leader()
            and replica.leader_contradictions.unresolved(replica.epoch) is None
        )

    @property
    def known_high_watermark(self) -> Offset | None:
        """The high watermark reported by a leader, or known as leader, since the process start.

        None before that: the disk does not show what was committed in the meantime.
        """
        ends, role = self.replica.commit_state, self.replica.role
        return (
            ends.reportable_high_watermark(role)
            if isinstance(role, Leader)
            else ends.reported_high_watermark
        )

    @property
    def may_append_voters(self) -> bool:
        """True while the next timer may append a voter set, after all that is proposed before."""
        return self.membership_requests.may_append

    def servers(self) -> list[Peer]:
        """The voters and bootstrap servers that could know the leader."""
        return self.leader_discovery.discovery_targets()

    def pinned_snapshots(self) -> frozenset[OffsetAndEpoch]:
        """The snapshots that other replicas are fetching, which cleaning must keep.

        See rule `snapshot_pinning`.
        """
        return self.leader_replication.snapshot_server.pinned_snapshots()

    def status_warnings(self) -> list[str]:
        """Status warnings of this replica, for operators."""
        return status_warnings(self.replica, self.vote_handler.vote_rejections)

    # --- events -----------------------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._handle_request(event)
            case ResponseReceived(call=call_id, response=response):
                call = self.replica.request_manager.complete(call_id)
                if call is not None:
                    self._handle_answer(call, response)
            case LogFlushed():
                self._handle_flushed(event)
            case RecordsProposed():
                self.leader_replication.propose(event)
            case TimerFired():
                # The shell has proposed all earlier decisions before this: see `may_append_voters`.
                self.membership_requests.advance()
            case _:
                self._handle_rare(event)

    def _handle_rare(self, event: Event) -> None:
        replica = self.replica
        match event:
            case CallerDisconnected(token=token):
                self.leader_replication.caller_gone(token)
            case ProbeCompleted():
                self.leader_failure_detector.on_probe_result(event)
            case ReadRequested(token=token):
                if self.read_index.begin(token) and isinstance(replica.role, Leader):
                    self.leader_replication.fetch_responder.flush_parked_voters(replica.role)
            case SnapshotStored(snapshot=snapshot):
                assert snapshot.snapshot_id.offset <= min(
                    replica.high_watermark, replica.log.flushed
                )
                replica.log.store_snapshot(snapshot)
                self.leader_replication.snapshot_server.on_snapshot_stored(snapshot.snapshot_id)
            case SnapshotChecked():
                self.leader_replication.snapshot_server.on_verified(event)
            case LogTruncated():
                self.follower_replication.handle_truncated(event)
            case TruncationRefused():
                self.follower_replication.handle_truncation_refused(event)
            case SnapshotInstalled():
                self.follower_replication.snapshot_downloader.handle_installed(event)
                self.leader_replication.snapshot_server.prune()
            case SnapshotRefused():
                self.follower_replication.snapshot_downloader.handle_refused(event)
            case LogCleaned(log_start=log_start, snapshots=snapshots):
                replica.log.cleaned(log_start, snapshots)
                self.leader_replication.snapshot_server.prune()
            case StateMachineProgress(ready=ready):
                replica.leader_eligibility.is_loaded = ready
            case BrokerKRaftVersions(kraft_version_max=newest):
                self.membership_requests.kraft_version_upgrade.brokers_max_kraft_version = newest
            case ResignRequested(reason=reason, cause=cause):
                self.leader_replication.resign(cause, reason)
            case ShutdownRequested(timeout_ms=timeout_ms):
                self.graceful_shutdown.begin(timeout_ms)
            case _:
                raise AssertionError(event)

    def _handle_request(self, event: RequestReceived) -> None:
        replica = self.replica
        token, request = event.token, event.request
        refusal = self.single_voter_guard.refusal(request)
        if refusal is not None:
            replica.out.reply(token, refusal)
            return
        self.last_contact.on_request(request)
        match request:
            case FetchRequest():
                self.leader_replication.handle_fetch(token, request)
            case FetchSnapshotRequest():
                replica.out.reply(token, self.leader_replication.handle_fetch_snapshot(request))
            case VoteRequest():
                replica.out.reply(token, self.vote_handler.handle_vote(request))
            case BeginQuorumEpochRequest():
                replica.out.reply(token, self.epoch_announcements.handle_begin(request))
            case EndQuorumEpochRequest():
                replica.out.reply(token, self.epoch_announcements.handle_end(request))
            case DescribeQuorumRequest():
                adding, refusals = (
                    self.membership_requests.add_voter_handler,
                    self.vote_handler.vote_rejections,
                )
                answer = describe(replica, adding, self.last_contact, refusals)
                replica.out.reply(token, answer)
            case ApiVersionsRequest():
                replica.out.reply(token, api_versions(replica))
            case (
                AddRaftVoterRequest()
                | RemoveRaftVoterRequest()
                | UpdateRaftVoterRequest()
                | UpdateFeaturesRequest()
                | TransferLeadershipRequest()
                | TakeLeaveRequest()
            ):
                self.membership_requests.handle(token, request)
            case _:
                assert_never(request)

    def _handle_answer(
        self, in_flight_request: InFlightRequest, response: PeerResponse | RequestFailure
    ) -> None:
        """Handle a response, as far as the epoch guard accepts it.

        See rules `no_state_from_rejections` and `input_bounds`.
        """
        if self.replica.rival is not None:
            # Requests sent before it found another quorum are obsolete
            # (rule `sole_voter_conflict`).
            return
        believing = self.epoch_guard
        answer = believing.filter_response(in_flight_request, response)
        if not isinstance(answer, RequestFailure) and not believing.is_top_level_error(
            answer.error
        ):
            self.last_contact.on_response(in_flight_request, answer)
        elif answer is RequestFailure.DISCONNECTED:
            self.last_contact.on_unreachable(in_flight_request.to)
        self._handle_response(in_flight_request, answer)
        if self.replica.abstains:
            self.follower_replication.abstention_exit.on_response(in_flight_request, response)

    def _handle_response(
        self, in_flight_request: InFlightRequest, response: PeerResponse | RequestFailure
    ) -> None:
        match in_flight_request.kind, response:
            case RequestKind.FETCH, FetchResponse() | RequestFailure() as answer:
                self.follower_replication.handle_fetch(in_flight_request, answer)
            case RequestKind.DISCOVERY, FetchResponse() | RequestFailure() as answer:
                self.leader_discovery.handle_response(in_flight_request, answer)
            case RequestKind.LOOK_AROUND, FetchResponse() | RequestFailure() as answer:
                self.single_voter_guard.handle_response(in_flight_request, answer)
            case RequestKind.FETCH_SNAPSHOT, FetchSnapshotResponse() | RequestFailure() as answer:
                self.follower_replication.snapshot_downloader.handle_response(
                    in_flight_request, answer
                )
            case RequestKind.VOTE, VoteResponse() | RequestFailure() as answer:
                self.campaign.handle_vote_response(in_flight_request, answer)
            case (
                RequestKind.BEGIN_QUORUM_EPOCH,
                BeginQuorumEpochResponse() | RequestFailure() as answer,
            ):
                self.epoch_announcements.handle_begin_response(in_flight_request, answer)
            case (
                RequestKind.END_QUORUM_EPOCH,
                EndQuorumEpochResponse() | RequestFailure() as answer,
            ):
                self.epoch_announcements.handle_end_response(in_flight_request, answer)
            case RequestKind.API_VERSIONS, ApiVersionsResponse() | RequestFailure() as answer:
                self.membership_requests.handle_versions(in_flight_request, answer)
            case RequestKind.JOIN, MembershipResponse() | RequestFailure() as answer:
                self.membership_requests.auto_join.handle_response(in_flight_request, answer)
            case RequestKind.UPDATE_RAFT_VOTER, MembershipResponse() | RequestFailure() as answer:
                self.membership_requests.update_voter_handler.handle_response(
                    in_flight_request, answer
                )
            case _:
                text = f"{type(response).__name__} does not answer {in_flight_request.kind.value}"
                self.replica.out.note(TraceEventKind.NOT_BELIEVED, text, peer=in_flight_request.to)

    def _handle_flushed(self, event: LogFlushed) -> None:
        """Advance the flushed end, unless the log was truncated since the flush began."""
        replica = self.replica
        if not self.is_current(event):
            return
        if event.end.offset > replica.log.flushed:
            replica.log.flushed = event.end.offset
            replica.leader_eligibility.on_flush_progress()
        self.follower_replication.snapshot_downloader.finish_healing_if_caught_up()
        self.follower_replication.abstention_exit.check_exit()
        self.leader_replication.update_high_watermark()

    def is_current(self, event: LogFlushed) -> bool:
        """True if the log has not been truncated since this flush began."""
        return event.generation == self.replica.log.generation

    # --- time -------------------------------------------------------------------------------------

    def _expire(self) -> None:
        replica = self.replica
        self.leader_replication.expire()
        if replica.is_stopping:
            self.graceful_shutdown.expire()
        for call in replica.request_manager.expired(replica.timers.now):
            if call.kind is RequestKind.PROBE:
                self.leader_failure_detector.on_probe_timeout(call)
            else:
                self._handle_response(call, RequestFailure.TIMED_OUT)
        self.campaign.expire()
        if replica.leader_suspicion is not None:
            self.leader_failure_detector.run_due()
        self.membership_requests.expire()

    def _finish(self) -> Update:
        replica = self.replica
        if replica.rival is None:
            self._drive()
        elif replica.is_stopping:
            self.graceful_shutdown.drive()
        replica.leader_eligibility.update_flush_timer()
        replica.out.publish(replica.role, replica.election, replica.high_watermark)
        if replica.is_stopping:
            self.graceful_shutdown.complete()
        effects, notes = replica.out.take()
        return Update(effects, min(self._deadlines(), default=None), notes)

    def _drive(self) -> None:
        """Send the requests that are due to other replicas."""
        self.membership_requests.drive()
        self.campaign.send_vote_requests()
        self.follower_replication.drive()
        if self.replica.is_stopping:
            self.graceful_shutdown.drive()
        self.leader_discovery.drive()
        self.epoch_announcements.drive()
        self.single_voter_guard.drive()

    def _deadlines(self) -> list[Millis]:
        """Deadlines of all modules; the earliest is the next wake-up."""
        replica = self.replica
        due: list[Millis] = []
        self.campaign.add_deadlines(due)
        if replica.leader_suspicion is not None:
            self.leader_failure_detector.add_deadlines(due)
        self.leader_replication.add_deadlines(due)
        if replica.rival is None:
            self.follower_replication.add_deadlines(due)
            self.leader_discovery.add_deadlines(due)
            self.membership_requests.add_deadlines(due)
            self.epoch_announcements.add_deadlines(due)
            self.single_voter_guard.add_deadlines(due)
        due += replica.request_manager.deadlines(replica.timers.now)
        if replica.is_stopping:
            self.graceful_shutdown.add_deadlines(due)
        return due
