"""Follower side of FetchSnapshot: fetches a snapshot in chunks and installs it (KIP-630)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import EndHealing, RequestFailure, SnapshotInstalled, SnapshotRefused
from quorate.raft.election.abstention import fetch_identity
from quorate.raft.messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorate.raft.request_manager import InFlightRequest, RequestKind
from quorate.raft.roles import Follower
from quorate.raft.snapshots.download_progress import DownloadProgress
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.api import Peer
    from quorate.raft.replica import Replica
    from quorate.raft.replication.leader_contact import LeaderContact
    from quorate.raft.roles import SnapshotDownload
    from quorate.records.ids import OffsetAndEpoch

# A leader that answers with these errors is alive, and has a newer snapshot.
_GONE: Final = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)


class SnapshotDownloader:
    """Fetches and installs snapshots for one replica."""

    def __init__(self, replica: Replica, leader_contact: LeaderContact, incarnation: int) -> None:
        self.replica = replica
        self.leader_contact = leader_contact
        self.incarnation = incarnation
        self.download_progress = DownloadProgress(replica)

    def begin(self, role: Follower, snapshot_id: OffsetAndEpoch) -> None:
        """Begin to fetch a snapshot, since the leader's log starts after the end of this one."""
        role.download = self.download_progress.begin(snapshot_id)

    def fetch(self, download: SnapshotDownload, peer: Peer) -> None:
        """Request the next chunk, unless that is in flight."""
        replica = self.replica
        if download.is_installing or not replica.request_manager.may_send(
            RequestKind.FETCH_SNAPSHOT, peer.node_id, replica.timers.now
        ):
            return
        request = FetchSnapshotRequest(
            cluster_id=replica.config.cluster_id,
            replica=fetch_identity(replica),
            current_leader_epoch=replica.epoch,
            snapshot_id=download.snapshot_id,
            position=download.position,
            max_bytes=replica.config.fetch_snapshot_max_bytes,
            incarnation=self.incarnation,
        )
        replica.send(RequestKind.FETCH_SNAPSHOT, peer, request)

    def handle_response(
        self, in_flight_request: InFlightRequest, response: FetchSnapshotResponse | RequestFailure
    ) -> None:
        """Handle one chunk of the snapshot; the last one installs it."""
        contact = self.leader_contact
        role = contact.follower_for(in_flight_request)
        if role is None or role.download is None:
            return
        if isinstance(response, RequestFailure):
            contact.on_failure(RequestKind.FETCH_SNAPSHOT, in_flight_request, role, response)
        elif response.error in _GONE:
            contact.on_valid_response(role)
            self._give_up(
                role, f"{in_flight_request.to} answers FetchSnapshot with {response.error.name}"
            )
            contact.leader_updates.apply(response.leader, f"answer of {in_flight_request.to}")
        elif response.error is not ErrorCode.NONE:
            contact.on_error_response(RequestKind.FETCH_SNAPSHOT, in_flight_request, response)
        else:
            self._take(in_flight_request, role, role.download, response)

    def _take(
        self,
        in_flight_request: InFlightRequest,
        role: Follower,
        download: SnapshotDownload,
        response: FetchSnapshotResponse,
    ) -> None:
        chunk = response.chunk
        fits = (
            response.snapshot_id == download.snapshot_id and response.position == download.position
        )
        if not fits or not isinstance(chunk, bytes):
            reason = f"it sends another slice of {download.snapshot_id} than asked"
            self.leader_contact.on_contradiction(role, reason)
            return
        self.leader_contact.on_valid_response(role)
        if not chunk:
            # A leader that is verifying or rewriting the file has nothing to send yet. It may
            # then send another file than before.
            role.download = self.download_progress.restart_from_first_chunk(download)
            again = self.download_progress.retry_later(download.snapshot_id)
            self.replica.request_manager.back_off(
                RequestKind.FETCH_SNAPSHOT, in_flight_request.to, again
            )
            return
        role.download = self.download_progress.add_chunk(download, chunk, response.size_bytes)

    def _give_up(self, role: Follower, why: str) -> None:
        """Start over with a plain Fetch, whose response names the snapshot, after a backoff."""
        assert role.download is not None
        again = self.download_progress.failed(role.download.snapshot_id, why)
        role.download = None
        self.replica.request_manager.back_off(RequestKind.FETCH, role.leader_id, again)

    def handle_installed(self, event: SnapshotInstalled) -> None:
        """Handle an installed snapshot: the log is now empty and starts at the snapshot's end."""
        replica = self.replica
        if event.generation != replica.log.generation + 1:
            return
        replica.log.generation = event.generation
        replica.log.restart_at(event.snapshot, event.voters, event.kraft_version)
        replica.commit_state.on_log_reset()
        text = f"installed snapshot {event.snapshot.snapshot_id}; voters are {replica.voters.ids}"
        offset = event.snapshot.snapshot_id.offset
        replica.out.note(TraceEventKind.SNAPSHOT_INSTALLED, text, offset=offset)
        self.download_progress.succeeded()
        if isinstance(replica.role, Follower):
            replica.role.download = None
            self.leader_contact.on_agreement()
        self.finish_healing_if_caught_up()

    def handle_refused(self, event: SnapshotRefused) -> None:
        """Handle a file that failed verification: start over with a plain Fetch, after a delay."""
        replica = self.replica
        reason = f"fetched snapshot {event.snapshot_id}: {event.reason}"
        if isinstance(replica.role, Follower) and replica.role.download is not None:
            replica.role.download = None
            # The leader remains live: the file may have been damaged in transit, or here.
            text = replica.leader_contradictions.record(
                replica.role.leader_id, replica.epoch, reason, replica.timers.now
            )
            replica.out.note(TraceEventKind.CONTRADICTED, text, leader_id=replica.role.leader_id)
        else:
            self.download_progress.failed(event.snapshot_id, reason)

    def finish_healing_if_caught_up(self) -> None:
        """End healing if the log has reached its former end, compared as for votes.

        See rule `damaged_voter_heals`.
        """
        replica = self.replica
        remembered = replica.log.remembered_end
        if remembered is not None and replica.log.flushed_end >= remembered:
            text = f"healed: log end {replica.log.flushed_end} has reached {remembered}"
            replica.out.note(TraceEventKind.HEALED, text)
            replica.log.remembered_end = None
            replica.out.emit(EndHealing())
