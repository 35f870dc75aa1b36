"""Leader side of replication: appends, fetches, commits, check-quorum and resignation.

`fetch_responder` answers fetches, `progress_tracker` keeps the progress of each replica,
`high_watermark` advances the commit (Kafka: LeaderState; rules `fetch_view_at_response`,
`check_quorum_restart`, `monotonic_clock` and `disk_call_deadline`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import AppendToLog, RecordsProposed
from quorate.raft.identity.cloned_voters import Admission, ClonedVoters
from quorate.raft.identity.log_identity import is_of_another_quorum
from quorate.raft.membership.shutdown_permit_state import holds_permit, is_silent
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ProposalResponse,
)
from quorate.raft.pending_requests import complete_committed_change
from quorate.raft.replication.fetch_purgatory import ParkedFetch
from quorate.raft.replication.fetch_responder import FetchResponder
from quorate.raft.replication.log_state import Diverging, NeedsSnapshot, Valid
from quorate.raft.replication.progress_tracker import ProgressTracker
from quorate.raft.roles import Leader
from quorate.raft.snapshots.server import SnapshotServer
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis, Offset, OffsetAndEpoch, ReplicaKey, ReplyToken

if TYPE_CHECKING:
    from quorate.raft.election.epoch_guard import EpochGuard
    from quorate.raft.election.transitions import RoleTransitions
    from quorate.raft.replica import Replica
    from quorate.raft.replication.read_index import ReadIndex
    from quorate.records.control import ControlRecord
    from quorate.records.voters import Voter


class LeaderReplication:
    """Leadership of one replica."""

    def __init__(
        self,
        replica: Replica,
        role_transitions: RoleTransitions,
        epoch_guard: EpochGuard,
        read_index: ReadIndex,
    ) -> None:
        self.replica = replica
        self.role_transitions = role_transitions
        self.epoch_guard = epoch_guard
        self.read_index = read_index
        self.fetch_responder = FetchResponder(replica, read_index)
        self.progress_tracker = ProgressTracker(replica)
        self.snapshot_server = SnapshotServer(replica)
        self.cloned_voters = ClonedVoters(replica)

    # --- appends ----------------------------------------------------------------------------------

    def propose(self, event: RecordsProposed) -> None:
        """Append a proposer's batch immediately; it is flushed and replicated in parallel."""
        replica = self.replica
        role = replica.role
        if not isinstance(role, Leader) or event.epoch != replica.epoch or replica.is_stopping:
            refused = ProposalResponse(
                error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=replica.leader_info
            )
            replica.out.reply(event.token, refused)
            return
        if role.transfer is not None:
            role.transfer.held_proposals.append(event)
            return
        batch = event.batch
        if not 0 < len(batch.data) <= replica.config.batch_bytes_max or batch.record_count < 1:
            replica.out.reply(
                event.token,
                ProposalResponse(error=ErrorCode.INVALID_REQUEST, leader=replica.leader_info),
            )
            return
        base = replica.log.end.offset
        end = OffsetAndEpoch(epoch=replica.epoch, offset=Offset(base + batch.record_count))
        replica.out.emit(AppendToLog(base, end, batch))
        replica.log.append(end)
        last = Offset(end.offset - 1)
        replica.out.reply(
            event.token,
            ProposalResponse(
                error=ErrorCode.NONE, leader=replica.leader_info, base_offset=base, last_offset=last
            ),
        )
        self.fetch_responder.answer_parked_voters()

    def append_voters(self, *records: ControlRecord) -> None:
        """Append control records with a voter set, which is in effect immediately (KIP-853)."""
        replica = self.replica
        role = replica.role
        assert isinstance(role, Leader)
        before = replica.voters
        replica.append_control(*records)
        self.progress_tracker.rekey(role)
        self.progress_tracker.voters_added(role, before)
        # Rule `check_quorum_restart`: the new set gets a full interval before check-quorum applies
        # to it.
        check_quorum, timers = role.check_quorum, replica.timers
        check_quorum.restart(timers.check_quorum_deadline())
        role.begin_epoch_deadline = timers.now
        # Rule `fetch_view_at_response`: an observer with a parked Fetch may be a voter now, whose
        # Fetch commits this.
        self.fetch_responder.answer_parked_voters()
        self.update_high_watermark()

    # --- fetches ----------------------------------------------------------------------------------

    def handle_fetch(self, token: ReplyToken, request: FetchRequest) -> None:
        """Answer a Fetch, or park it until there is data."""
        replica = self.replica
        role = replica.role
        error = self._reason_to_refuse(request) or self._malformed(request)
        if error is not None or not isinstance(role, Leader):
            self._refuse(token, error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        mark = request.voters_at
        if mark is not None and is_of_another_quorum(replica.log, mark):
            text = f"{request.replica} fetches with the log of another quorum: refused"
            replica.out.tell(TraceEventKind.REFUSED_LOG, "another log", text)
            self._refuse(token, ErrorCode.INCONSISTENT_VOTER_SET)
            return
        key = self.progress_tracker.known_key(request.replica)
        is_voter = key is not None and key in replica.voters
        admission, counts_from = Admission.COUNTED, None
        if is_voter and key is not None:
            admission = self.cloned_voters.admit(role, key, request)
            if admission is Admission.REFUSED:
                self._refuse(token, ErrorCode.DUPLICATE_VOTER)
                return
            if admission is Admission.UNCOUNTED:
                counts_from = self.cloned_voters.counts_from(role, key, request.incarnation)
        is_counted = admission is Admission.COUNTED
        self.fetch_responder.supersede_parked(role, key)
        if is_voter and key is not None:
            self.progress_tracker.on_any_fetch(role, key)
            if is_counted and request.read_round > 0:
                self.read_index.confirm(role, key, request.read_round)
        match self._judge(request):
            case Diverging(end=end):
                self.progress_tracker.reset_progress(role, key)
                self.fetch_responder.reply(role, token, diverging=end)
            case NeedsSnapshot(snapshot_id=snapshot_id):
                self.progress_tracker.reset_progress(role, key)
                self.fetch_responder.reply(role, token, snapshot_id=snapshot_id)
            case Valid():
                # A replica with a diverging or empty log does not follow yet: check-quorum counts
                # only those that could commit new records.
                self.progress_tracker.on_fetch(role, key, is_voter=is_voter)
                self.progress_tracker.acknowledge(
                    role, key, request, is_voter=is_voter, is_counted=is_counted
                )
                if is_voter:
                    self.update_high_watermark()
                # A commit of its own removal ends leadership within this step.
                if replica.role is role:
                    fetch = ParkedFetch(token, key, request, replica.timers.now)
                    self.fetch_responder.serve_or_park(role, fetch, by=counts_from)
                else:
                    info = replica.leader_info
                    replica.out.reply(
                        token, FetchResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=info)
                    )

    def _refuse(self, token: ReplyToken, error: ErrorCode) -> None:
        leader = self.epoch_guard.leader_info_for(error)
        self.replica.out.reply(token, FetchResponse(error=error, leader=leader))

    def caller_gone(self, token: ReplyToken) -> None:
        """Handle the disconnect of a parked Fetch: its process may have ended."""
        role = self.replica.role
        if isinstance(role, Leader):
            self.cloned_voters.gone(role, role.parked.remove(token))
            self.read_index.drop(role, token)

    def _judge(self, request: FetchRequest) -> Valid | Diverging | NeedsSnapshot:
        """Compare the log of a fetching replica with this one.

        An empty replica starts with the newest snapshot, even if the log begins at 0: the snapshot
        is smaller than its records. The snapshot of `format` has no metadata. A reader without a
        replica id gets the records.
        """
        log = self.replica.log
        newest = log.newest_snapshot
        is_empty = request.replica is not None and request.fetch_offset == 0
        if is_empty and newest is not None and newest.offset > 0:
            return NeedsSnapshot(newest)
        return log.validate(request.fetch_offset, request.last_fetched_epoch)

    def handle_fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        """Answer with a snapshot chunk; counts for check-quorum like a Fetch (KIP-630)."""
        role = self.replica.role
        error = self._reason_to_refuse(request)
        if error is not None or not isinstance(role, Leader):
            error = error or ErrorCode.NOT_LEADER_OR_FOLLOWER
            return FetchSnapshotResponse(
                error=error, leader=self.epoch_guard.leader_info_for(error)
            )
        key = self.progress_tracker.known_key(request.replica)
        is_voter = key is not None and key in self.replica.voters
        if is_voter and key is not None:
            # Rule `one_process_per_voter`: a rejected process does not count for check-quorum.
            admission = self.cloned_voters.admit(role, key, request)
            if admission is Admission.REFUSED:
                error = ErrorCode.DUPLICATE_VOTER
                return FetchSnapshotResponse(
                    error=error, leader=self.epoch_guard.leader_info_for(error)
                )
        self.progress_tracker.on_fetch(role, key, is_voter=is_voter)
        return self.snapshot_server.handle_fetch_snapshot(
            request, None if key is None else role.progress[key]
        )

    def _reason_to_refuse(self, request: FetchRequest | FetchSnapshotRequest) -> ErrorCode | None:
        replica = self.replica
        if request.cluster_id != replica.config.cluster_id:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        if request.current_leader_epoch < replica.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if request.current_leader_epoch > replica.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if not isinstance(replica.role, Leader):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return None

    def _malformed(self, request: FetchRequest) -> ErrorCode | None:
        """The error for an invalid Fetch: with a later epoch, or from this leader."""
        is_own = request.replica is not None and request.replica.node_id == self.replica.node_id
        if is_own or request.last_fetched_epoch > request.current_leader_epoch:
            return ErrorCode.INVALID_REQUEST
        return None

    # --- commits ----------------------------------------------------------------------------------

    def update_high_watermark(self) -> None:
        """Commit what a majority has flushed, and answer the Fetches that waited for it."""
        replica = self.replica
        role = replica.role
        if not isinstance(role, Leader) or not replica.commit_state.advance_to_majority(role):
            return
        self.fetch_responder.answer_on_commit(role)
        self.read_index.committed(role)
        complete_committed_change(replica, role)
        if self.is_removed():
            self.resign(RoleChangeCause.REMOVED, "its own removal is committed")

    def is_removed(self) -> bool:
        """True if this replica's removal from the voters is committed."""
        return (
            not self.replica.is_voter
            and self.replica.log.voters_offset < self.replica.high_watermark
        )

    # --- resignation ------------------------------------------------------------------------------

    def resign(self, cause: RoleChangeCause, why: str, *, first: ReplicaKey | None = None) -> None:
        """Resign with a list of successors, the best first (KIP-595, EndQuorumEpoch)."""
        role = self.replica.role
        if isinstance(role, Leader):
            self.role_transitions.become_resigned(self._successors(role, first), cause, why)

    def _successors(self, role: Leader, first: ReplicaKey | None) -> tuple[ReplicaKey, ...]:
        """The other voters, best first.

        A voter with a shutdown permit would have to transfer leadership again. A voter that lacks
        committed records cannot be elected. A voter that may have moved or exited may not get the
        notification.
        """
        replica = self.replica

        def order(voter: Voter) -> tuple[bool, bool, bool, bool, int]:
            end = replica.commit_state.flushed_end_of(role, voter)
            return (
                voter.key != first,
                holds_permit(replica, role, voter.key),
                end < replica.high_watermark,
                self._may_be_gone(role, voter.key),
                -end,
            )

        others = [voter for voter in replica.voters if voter.key.node_id != replica.node_id]
        return tuple(voter.key for voter in sorted(others, key=order))

    def _may_be_gone(self, role: Leader, key: ReplicaKey) -> bool:
        progress = role.progress.get(key)
        last_fetch_ms = None if progress is None else progress.last_fetch_ms
        return key in role.unconfirmed or is_silent(self.replica, last_fetch_ms)

    def expire(self) -> None:
        """Check the quorum first: a leader that lost it must not answer anything.

        See rule `monotonic_clock`.
        """
        replica = self.replica
        role = replica.role
        if not isinstance(role, Leader):
            return
        check_quorum, timers = role.check_quorum, replica.timers
        if check_quorum.has_expired(timers.now) and not replica.is_only_voter:
            why = "no majority of the voters has fetched within the check-quorum interval"
            self.resign(RoleChangeCause.CHECK_QUORUM, why)
            return
        unflushed_since = replica.leader_eligibility.unflushed_since
        if unflushed_since is not None and self.must_resign_for_disk():
            age_ms = timers.now - unflushed_since
            why = f"its disk has not confirmed a flush for {age_ms} ms"
            self.resign(RoleChangeCause.DISK_HANGS, why)
            return
        self.fetch_responder.expire(role)

    def must_resign_for_disk(self) -> bool:
        """True for a leader with a stalled disk: it must not rely on its followers' disks.

        A single voter has no successor (rule `disk_call_deadline`).
        """
        return self.replica.leader_eligibility.is_disk_stalled and not self.replica.is_only_voter

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadlines of check-quorum, announcements and parked Fetches."""
        replica = self.replica
        role = replica.role
        if isinstance(role, Leader):
            if not replica.is_only_voter:
                due.append(role.check_quorum.deadline)
                flush_deadline = replica.leader_eligibility.flush_deadline
                if flush_deadline is not None:
                    due.append(flush_deadline)
            due.append(role.begin_epoch_deadline)
            answer_ms = role.parked.next_deadline()
            if answer_ms is not None:
                due.append(answer_ms)
