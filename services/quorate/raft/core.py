"""RaftCore: dispatches each event to the handlers and returns one Update per step.

Every step first runs the timers that are due, so that a process that was suspended checks its
quorum before it answers a request (rule `monotonic_clock`). Then it handles the event, and then it
sends the requests that have become due. Events that report the state of the log are handled before
the timers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from quorate.raft.api import (
    BrokersSupport,
    CallerGone,
    CallFailure,
    Event,
    LogCleaned,
    LogFlushed,
    LogTruncated,
    ProbeAnswered,
    ReadRequested,
    RecordsProposed,
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
from quorate.raft.describe_quorum import api_versions, describe, remarks
from quorate.raft.election.campaign import Elections
from quorate.raft.election.epoch_announcements import Announcements
from quorate.raft.election.epoch_guard import Believing
from quorate.raft.election.failure_detector import Suspecting
from quorate.raft.election.leader_discovery import Finding
from quorate.raft.election.leader_updates import Learning
from quorate.raft.election.pre_vote_leases import Promises
from quorate.raft.election.transitions import Becoming
from quorate.raft.election.vote_handler import Voting
from quorate.raft.graceful_shutdown import Stopping
from quorate.raft.identity.single_voter_guard import Rivalry
from quorate.raft.initialization import start
from quorate.raft.last_contact import Hearing
from quorate.raft.membership.requests import Membership
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
from quorate.raft.replication.follower import Following
from quorate.raft.replication.leader import Leading
from quorate.raft.replication.leader_contact import Contact
from quorate.raft.replication.read_index import Reads
from quorate.raft.request_manager import CallKind
from quorate.raft.roles import Leader
from quorate.raft.trace_events import NoteKind

if TYPE_CHECKING:
    from quorate.raft.api import Peer, RaftConfig, Random, RecoveredState
    from quorate.raft.messages import PeerResponse
    from quorate.raft.request_manager import Call
    from quorate.records.ids import Millis, Offset, OffsetAndEpoch

# Events that report the actual state of the log on the disk.
_FROM_THE_DISK: Final = (LogTruncated, TruncationRefused, SnapshotInstalled)


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
        self.replica = r = Replica(config, recovered, random)
        self.hearing = Hearing(r)
        self.believing = Believing(r)
        self.becoming = Becoming(r, self.hearing)
        self.rivalry = Rivalry(r, self.becoming)
        self.learning = Learning(r, self.becoming, self.rivalry)
        self.suspecting = Suspecting(r, self.becoming)
        promises = Promises(r)
        self.voting = Voting(r, self.becoming, self.believing, self.suspecting, promises)
        self.elections = Elections(r, self.becoming, self.learning, self.suspecting, promises)
        contact = Contact(r, self.learning, self.suspecting, self.hearing)
        self.following = Following(r, contact, incarnation)
        self.finding = Finding(r, self.learning, self.following)
        self.reads = Reads(r)
        self.leading = Leading(r, self.becoming, self.believing, self.reads)
        self.announcements = Announcements(r, self.learning, self.believing, self.leading)
        self.membership = Membership(r, self.learning, self.leading)
        self.stopping = Stopping(r, self.becoming, self.leading, self.hearing)

    def start(self, now_ms: Millis) -> Update:
        """Assume the role that the recovered state requires; called once, before the first step."""
        self.replica.timers.now = now_ms
        start(self.replica, self.becoming)
        self.following.installing.check_healed()
        return self._finish()

    def step(self, event: Event, now_ms: Millis) -> Update:
        """Handle `event` and return the effects. `now_ms` is monotonic and never decreases."""
        self.replica.timers.now = now_ms
        if isinstance(event, _FROM_THE_DISK):
            # No timer may act on a log that has been replaced.
            self._handle(event)
            self._expire()
        else:
            self._expire()
            self._handle(event)
        return self._finish()

    @property
    def hears_leader(self) -> bool:
        """True if it leads, or follows a leader that responds and is not contradicting.

        See rule `leader_contradiction`. False while there is another quorum of its cluster: neither
        is reliable (rule `sole_voter_conflict`).
        """
        r = self.replica
        if r.second_quorum.is_met:
            return False
        if isinstance(r.role, Leader):
            return True
        return self.suspecting.hears_leader() and r.contradictions.standing(r.epoch) is None

    @property
    def told_high_watermark(self) -> Offset | None:
        """The high watermark reported by a leader, or known as leader, since the process start.

        None before that: the disk does not show what was committed in the meantime.
        """
        ends, role = self.replica.ends, self.replica.role
        return ends.known(role) if isinstance(role, Leader) else ends.told_high_watermark

    @property
    def may_append_voters(self) -> bool:
        """True while the next timer may append a voter set, after all that is proposed before."""
        return self.membership.may_append

    def servers(self) -> list[Peer]:
        """The voters and bootstrap servers that could know the leader."""
        return self.finding.targets()

    def pinned_snapshots(self) -> frozenset[OffsetAndEpoch]:
        """The snapshots that other replicas are fetching, which cleaning must keep.

        See rule `snapshot_pinning`.
        """
        return self.leading.offering.pinned()

    def remarks(self) -> list[str]:
        """Status warnings of this replica, for operators."""
        return remarks(self.replica, self.voting.refusals)

    # --- events -----------------------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._handle_request(event)
            case ResponseReceived(call=call_id, response=response):
                call = self.replica.calls.close(call_id)
                if call is not None:
                    self._handle_answer(call, response)
            case LogFlushed():
                self._handle_flushed(event)
            case RecordsProposed():
                self.leading.propose(event)
            case TimerFired():
                # The shell has proposed all earlier decisions before this: see `may_append_voters`.
                self.membership.advance()
            case _:
                self._handle_rare(event)

    def _handle_rare(self, event: Event) -> None:
        r = self.replica
        match event:
            case CallerGone(token=token):
                self.leading.caller_gone(token)
            case ProbeAnswered():
                self.suspecting.handle_probe(event)
            case ReadRequested(token=token):
                if self.reads.begin(token) and isinstance(r.role, Leader):
                    self.leading.serving.release_voters(r.role)
            case SnapshotStored(snapshot=snapshot):
                assert snapshot.snapshot_id.offset <= min(r.high_watermark, r.log.flushed)
                r.log.store_snapshot(snapshot)
                self.leading.offering.stored(snapshot.snapshot_id)
            case SnapshotChecked():
                self.leading.offering.handle_checked(event)
            case LogTruncated():
                self.following.handle_truncated(event)
            case TruncationRefused():
                self.following.handle_truncation_refused(event)
            case SnapshotInstalled():
                self.following.installing.handle_installed(event)
                self.leading.offering.prune()
            case SnapshotRefused():
                self.following.installing.handle_refused(event)
            case LogCleaned(log_start=log_start, snapshots=snapshots):
                r.log.cleaned(log_start, snapshots)
                self.leading.offering.prune()
            case StateMachineProgress(ready=ready):
                r.readiness.is_loaded = ready
            case BrokersSupport(kraft_version_max=newest):
                self.membership.upgrading.brokers_support = newest
            case ResignRequested(reason=reason, cause=cause):
                self.leading.resign(cause, reason)
            case ShutdownRequested(timeout_ms=timeout_ms):
                self.stopping.begin(timeout_ms)
            case _:
                raise AssertionError(event)

    def _handle_request(self, event: RequestReceived) -> None:
        r = self.replica
        token, request = event.token, event.request
        refusal = self.rivalry.refusal(request)
        if refusal is not None:
            r.out.reply(token, refusal)
            return
        self.hearing.hear(request)
        match request:
            case FetchRequest():
                self.leading.handle_fetch(token, request)
            case FetchSnapshotRequest():
                r.out.reply(token, self.leading.handle_fetch_snapshot(request))
            case VoteRequest():
                r.out.reply(token, self.voting.handle_vote(request))
            case BeginQuorumEpochRequest():
                r.out.reply(token, self.announcements.handle_begin(request))
            case EndQuorumEpochRequest():
                r.out.reply(token, self.announcements.handle_end(request))
            case DescribeQuorumRequest():
                adding, refusals = self.membership.adding, self.voting.refusals
                answer = describe(r, adding, self.hearing, refusals)
                r.out.reply(token, answer)
            case ApiVersionsRequest():
                r.out.reply(token, api_versions(r))
            case (
                AddRaftVoterRequest()
                | RemoveRaftVoterRequest()
                | UpdateRaftVoterRequest()
                | UpdateFeaturesRequest()
                | TransferLeadershipRequest()
                | TakeLeaveRequest()
            ):
                self.membership.handle(token, request)
            case _:
                assert_never(request)

    def _handle_answer(self, call: Call, response: PeerResponse | CallFailure) -> None:
        """Handle a response, as far as the epoch guard accepts it.

        See rules `no_state_from_rejections` and `input_bounds`.
        """
        if self.replica.rival is not None:
            # Requests sent before it found another quorum are obsolete
            # (rule `sole_voter_conflict`).
            return
        believing = self.believing
        answer = believing.screened(call, response)
        if not isinstance(answer, CallFailure) and not believing.teaches_nothing(answer.error):
            self.hearing.hear_answer(call, answer)
        elif answer is CallFailure.DISCONNECTED:
            self.hearing.could_not_reach(call.to)
        self._handle_response(call, answer)
        if self.replica.abstains:
            self.following.abstaining.hear(call, response)

    def _handle_response(self, call: Call, response: PeerResponse | CallFailure) -> None:
        match call.kind, response:
            case CallKind.FETCH, FetchResponse() | CallFailure() as answer:
                self.following.handle_fetch(call, answer)
            case CallKind.DISCOVERY, FetchResponse() | CallFailure() as answer:
                self.finding.handle_response(call, answer)
            case CallKind.LOOK_AROUND, FetchResponse() | CallFailure() as answer:
                self.rivalry.handle_response(call, answer)
            case CallKind.FETCH_SNAPSHOT, FetchSnapshotResponse() | CallFailure() as answer:
                self.following.installing.handle_response(call, answer)
            case CallKind.VOTE, VoteResponse() | CallFailure() as answer:
                self.elections.handle_response(call, answer)
            case CallKind.BEGIN_QUORUM_EPOCH, BeginQuorumEpochResponse() | CallFailure() as answer:
                self.announcements.handle_begin_response(call, answer)
            case CallKind.END_QUORUM_EPOCH, EndQuorumEpochResponse() | CallFailure() as answer:
                self.announcements.handle_end_response(call, answer)
            case CallKind.API_VERSIONS, ApiVersionsResponse() | CallFailure() as answer:
                self.membership.handle_versions(call, answer)
            case CallKind.JOIN, MembershipResponse() | CallFailure() as answer:
                self.membership.joining.handle_response(call, answer)
            case CallKind.UPDATE_RAFT_VOTER, MembershipResponse() | CallFailure() as answer:
                self.membership.updating.handle_response(call, answer)
            case _:
                text = f"{type(response).__name__} does not answer {call.kind.value}"
                self.replica.out.note(NoteKind.NOT_BELIEVED, text, peer=call.to)

    def _handle_flushed(self, event: LogFlushed) -> None:
        """Advance the flushed end, unless the log was truncated since the flush began."""
        r = self.replica
        if not self.is_current(event):
            return
        if event.end.offset > r.log.flushed:
            r.log.flushed = event.end.offset
            r.readiness.note_progress()
        self.following.installing.check_healed()
        self.following.abstaining.check()
        self.leading.update_high_watermark()

    def is_current(self, event: LogFlushed) -> bool:
        """True if this flush is of the current log, not of one that has been truncated since."""
        return event.generation == self.replica.log.generation

    # --- time -------------------------------------------------------------------------------------

    def _expire(self) -> None:
        r = self.replica
        self.leading.expire()
        if r.is_stopping:
            self.stopping.expire()
        for call in r.calls.expired(r.timers.now):
            if call.kind is CallKind.PROBE:
                self.suspecting.probe_expired(call)
            else:
                self._handle_response(call, CallFailure.TIMED_OUT)
        self.elections.expire()
        if r.suspicion is not None:
            self.suspecting.act()
        self.membership.expire()

    def _finish(self) -> Update:
        r = self.replica
        if r.rival is None:
            self._drive()
        elif r.is_stopping:
            self.stopping.drive()
        r.readiness.note_unflushed()
        r.out.publish(r.role, r.election, r.high_watermark)
        if r.is_stopping:
            self.stopping.complete()
        effects, notes = r.out.take()
        return Update(effects, min(self._deadlines(), default=None), notes)

    def _drive(self) -> None:
        """Send the requests that are due to other replicas."""
        self.membership.drive()
        self.elections.ask()
        self.following.drive()
        if self.replica.is_stopping:
            self.stopping.drive()
        self.finding.drive()
        self.announcements.drive()
        self.rivalry.drive()

    def _deadlines(self) -> list[Millis]:
        """Deadlines of all modules; the earliest is the next wake-up."""
        r = self.replica
        due: list[Millis] = []
        self.elections.add_deadlines(due)
        if r.suspicion is not None:
            self.suspecting.add_deadlines(due)
        self.leading.add_deadlines(due)
        if r.rival is None:
            self.following.add_deadlines(due)
            self.finding.add_deadlines(due)
            self.membership.add_deadlines(due)
            self.announcements.add_deadlines(due)
            self.rivalry.add_deadlines(due)
        due += r.calls.deadlines(r.timers.now)
        if r.is_stopping:
            self.stopping.add_deadlines(due)
        return due
