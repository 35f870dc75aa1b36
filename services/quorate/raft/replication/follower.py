"""Follower side of replication: fetch, append, truncate.

Followers pull (KIP-595): a Fetch has the flushed end of this replica as its acknowledgement, so the
next Fetch is sent only after LogFlushed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import (
    AppendToLog,
    LogTruncated,
    RequestFailure,
    TruncateLog,
    TruncationRefused,
)
from quorate.raft.election.abstention import AbstentionExit, fetch_identity
from quorate.raft.identity.log_identity import mark_of
from quorate.raft.messages import EpochStart, FetchedBatches, FetchRequest, FetchResponse
from quorate.raft.replication.response_validation import FetchResponseValidator
from quorate.raft.request_manager import InFlightRequest, RequestKind
from quorate.raft.roles import Follower
from quorate.raft.snapshots.downloader import SnapshotDownloader
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import UNKNOWN_OFFSET, Epoch, Offset, OffsetAndEpoch

if TYPE_CHECKING:
    from quorate.raft.identity.voter_set_mark import VotersMark
    from quorate.raft.replica import Replica
    from quorate.raft.replication.leader_contact import LeaderContact
    from quorate.records.ids import Millis


class FollowerReplication:
    """Fetching of one replica."""

    def __init__(self, replica: Replica, leader_contact: LeaderContact, incarnation: int) -> None:
        self.replica = replica
        self.leader_contact = leader_contact
        self.incarnation = incarnation
        self.fetch_response_validator = FetchResponseValidator(replica)
        self.snapshot_downloader = SnapshotDownloader(replica, leader_contact, incarnation)
        self.abstention_exit = AbstentionExit(replica)
        # The newest round in a response, and the epoch of its leader: rounds of another leader
        # prove nothing for this one.
        self.read_round = (Epoch(0), 0)
        # The target of a truncation in progress; it may not be acknowledged before it is complete.
        self.cutting: TruncateLog | None = None

    # --- sending ----------------------------------------------------------------------------------

    def drive(self) -> None:
        """Send the request that is due, if any."""
        role = self.replica.role
        if isinstance(role, Follower) and not role.leader_resigned:
            self._fetch(role)

    def may_fetch(self) -> bool:
        """True if a Fetch may be sent: its offset acknowledges only what is flushed."""
        log = self.replica.log
        return self.cutting is None and log.flushed == log.end.offset

    def _fetch(self, role: Follower) -> None:
        replica = self.replica
        # The usual case: a Fetch is in flight, or the flush that it waits for is in progress.
        if role.download is None and not (
            self.may_fetch()
            and replica.request_manager.may_send(
                RequestKind.FETCH, role.leader_id, replica.timers.now
            )
        ):
            return
        peer = replica.leader_peer()
        standing = replica.leader_contradictions.unresolved(replica.epoch)
        if peer is None or (standing is not None and standing.retry_ms > replica.timers.now):
            return
        if role.download is not None:
            self.snapshot_downloader.fetch(role.download, peer)
        else:
            voters_at = None
            if not role.has_fetched:
                voters_at = mark_of(replica.log)
                answered_since = replica.timers.after(-replica.config.election_timeout_ms)
                replica.voter_addresses.on_sent(peer, replica.voters, answered_since)
            replica.send(
                RequestKind.FETCH,
                peer,
                self.fetch_request(replica.config.fetch_max_wait_ms, voters_at),
            )

    def fetch_request(
        self, max_wait_ms: Millis, voters_at: VotersMark | None = None
    ) -> FetchRequest:
        """Build a Fetch with this replica's log end and endpoints."""
        replica = self.replica
        return FetchRequest(
            cluster_id=replica.config.cluster_id,
            replica=fetch_identity(replica),
            current_leader_epoch=replica.epoch,
            fetch_offset=replica.log.end.offset,
            last_fetched_epoch=replica.log.end.epoch,
            max_wait_ms=max_wait_ms,
            max_bytes=replica.config.fetch_max_bytes,
            high_watermark=replica.high_watermark or UNKNOWN_OFFSET,
            replica_endpoints=replica.config.endpoints,
            read_round=self.read_round[1] if self.read_round[0] == replica.epoch else 0,
            incarnation=self.incarnation,
            voters_at=voters_at,
        )

    # --- answers ----------------------------------------------------------------------------------

    def handle_fetch(
        self, in_flight_request: InFlightRequest, response: FetchResponse | RequestFailure
    ) -> None:
        """Append, truncate or fetch a snapshot, as the leader's response requires."""
        contact = self.leader_contact
        role = contact.follower_for(in_flight_request)
        if role is None:
            if isinstance(response, FetchResponse):
                contact.leader_updates.apply(response.leader, "late Fetch answer")
            return
        if isinstance(response, RequestFailure):
            contact.on_failure(RequestKind.FETCH, in_flight_request, role, response)
            return
        if response.error is not ErrorCode.NONE:
            contact.on_error_response(RequestKind.FETCH, in_flight_request, response)
            return
        problem = self.fetch_response_validator.find_contradiction(role, response)
        if problem is not None:
            contact.on_contradiction(role, problem)
            if self.fetch_response_validator.shows_another_quorum(response):
                self.replica.second_quorum.prove(role.leader_id, self.replica.epoch, problem)
        elif response.diverging is not None:
            self._cut(response.diverging)
        else:
            self._take(role, response)

    def _take(self, role: Follower, response: FetchResponse) -> None:
        """Apply a valid response of the leader: records, none, or the snapshot to fetch."""
        replica = self.replica
        self.leader_contact.on_valid_response(role)
        self.read_round = (replica.epoch, response.read_round)
        # If known only from the voter set, they would be lost with the removal of the leader.
        replica.leader_endpoints = replica.leader_endpoints or response.leader.endpoints
        if response.high_watermark != UNKNOWN_OFFSET:
            replica.commit_state.on_leader_high_watermark(response.high_watermark)
        if response.snapshot_id is not None:
            self.snapshot_downloader.begin(role, response.snapshot_id)
            return
        if isinstance(response.records, FetchedBatches) and response.records.batches:
            self._append(response.records)
        # Only now this log is known to be a prefix of the leader's.
        self.leader_contact.on_agreement()
        replica.commit_state.advance(Offset(min(response.high_watermark, replica.log.end.offset)))
        self.abstention_exit.on_high_watermark(response.high_watermark)

    def _append(self, fetched: FetchedBatches) -> None:
        """Append batches that continue this log (rule `disk_fail_stop`)."""
        replica = self.replica
        base = replica.log.end.offset
        last = fetched.batches[-1]
        end = OffsetAndEpoch(epoch=last.epoch, offset=Offset(last.last_offset + 1))
        starts: list[EpochStart] = []
        epoch = replica.log.end.epoch
        for batch in fetched.batches:
            if batch.epoch > epoch:
                epoch = batch.epoch
                starts.append(EpochStart(epoch, batch.base_offset))
        replica.out.emit(AppendToLog(base, end, fetched))
        replica.log.append(end, starts)
        for batch in fetched.batches:
            for index, record in enumerate(batch.control):
                if replica.log.append_control(Offset(batch.base_offset + index), record):
                    offset = batch.base_offset + index
                    text = f"voters are {replica.voters.ids} from offset {offset}"
                    replica.out.note(TraceEventKind.VOTERS_LEARNED, text, offset=offset)

    # --- divergence -------------------------------------------------------------------------------

    def _cut(self, diverging: OffsetAndEpoch) -> None:
        """Request truncation to the common prefix; the disk rejects it if no batch begins there."""
        replica = self.replica
        to = replica.log.truncation_point(diverging)
        records = replica.log.end.offset - to.offset
        text = f"leader diverges at {diverging}: cuts {records} record(s)"
        replica.out.note(TraceEventKind.LOG_CUT, text, records=records)
        self.cutting = TruncateLog(to, replica.log.generation + 1)
        replica.out.emit(self.cutting)

    def handle_truncated(self, event: LogTruncated) -> None:
        """Handle a completed truncation."""
        replica = self.replica
        if self.cutting is None or event.generation != self.cutting.generation:
            return
        self.cutting = None
        replica.log.truncate(event.to)
        if isinstance(replica.role, Follower):
            self.leader_contact.on_valid_response(replica.role)
            self.leader_contact.on_agreement()

    def handle_truncation_refused(self, event: TruncationRefused) -> None:
        """Handle a rejected truncation: this log has other batches than the leaders wrote."""
        cutting, self.cutting = self.cutting, None
        if cutting is not None and isinstance(self.replica.role, Follower):
            self.leader_contact.on_contradiction(self.replica.role, event.reason)

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the time to retry a leader that contradicted this log."""
        replica = self.replica
        standing = replica.leader_contradictions.unresolved(replica.election.epoch)
        now = replica.timers.now
        if standing is not None and isinstance(replica.role, Follower) and standing.retry_ms > now:
            due.append(standing.retry_ms)
