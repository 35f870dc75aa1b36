"""Follower side of FetchSnapshot: fetches a snapshot in chunks and installs it (KIP-630)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import CallFailure, ForgetRememberedEnd, SnapshotInstalled, SnapshotRefused
from quorate.raft.election.abstention_exit import name
from quorate.raft.messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorate.raft.request_manager import Call, CallKind
from quorate.raft.roles import Follower
from quorate.raft.snapshots.downloads import Downloads
from quorate.raft.trace_events import NoteKind
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.api import Peer
    from quorate.raft.replica import Replica
    from quorate.raft.replication.leader_contact import Contact
    from quorate.raft.roles import SnapshotDownload
    from quorate.records.ids import OffsetAndEpoch

# A leader that answers with these errors is alive, and has a newer snapshot.
_GONE: Final = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)


class Installing:
    """Fetches and installs snapshots for one replica."""

    def __init__(self, replica: Replica, contact: Contact, incarnation: int) -> None:
        self.r = replica
        self.contact = contact
        self.incarnation = incarnation
        self.downloads = Downloads(replica)

    def begin(self, role: Follower, snapshot_id: OffsetAndEpoch) -> None:
        """Begin to fetch a snapshot, since the leader's log starts after the end of this one."""
        role.download = self.downloads.begin(snapshot_id)

    def fetch(self, download: SnapshotDownload, peer: Peer) -> None:
        """Request the next chunk, unless that is in flight."""
        r = self.r
        if download.is_installing or not r.calls.may_call(
            CallKind.FETCH_SNAPSHOT, peer.node_id, r.timers.now
        ):
            return
        request = FetchSnapshotRequest(
            cluster_id=r.config.cluster_id,
            replica=name(r),
            current_leader_epoch=r.epoch,
            snapshot_id=download.snapshot_id,
            position=download.position,
            max_bytes=r.config.fetch_snapshot_max_bytes,
            incarnation=self.incarnation,
        )
        r.send(CallKind.FETCH_SNAPSHOT, peer, request)

    def handle_response(self, call: Call, response: FetchSnapshotResponse | CallFailure) -> None:
        """Handle one chunk of the snapshot; the last one installs it."""
        contact = self.contact
        role = contact.role_of(call)
        if role is None or role.download is None:
            return
        if isinstance(response, CallFailure):
            contact.failed(CallKind.FETCH_SNAPSHOT, call, role, response)
        elif response.error in _GONE:
            contact.heard(role)
            self._give_up(role, f"{call.to} answers FetchSnapshot with {response.error.name}")
            contact.learning.learn(response.leader, f"answer of {call.to}")
        elif response.error is not ErrorCode.NONE:
            contact.refused(CallKind.FETCH_SNAPSHOT, call, response)
        else:
            self._take(call, role, role.download, response)

    def _take(
        self,
        call: Call,
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
            self.contact.not_believed(role, reason)
            return
        self.contact.heard(role)
        if not chunk:
            # A leader that is verifying or rewriting the file has nothing to send yet. It may
            # then send another file than before.
            role.download = self.downloads.again(download)
            again = self.downloads.waits(download.snapshot_id)
            self.r.calls.back_off(CallKind.FETCH_SNAPSHOT, call.to, again)
            return
        role.download = self.downloads.take(download, chunk, response.size_bytes)

    def _give_up(self, role: Follower, why: str) -> None:
        """Start over with a plain Fetch, whose response names the snapshot, after a backoff."""
        assert role.download is not None
        again = self.downloads.failed(role.download.snapshot_id, why)
        role.download = None
        self.r.calls.back_off(CallKind.FETCH, role.leader_id, again)

    def handle_installed(self, event: SnapshotInstalled) -> None:
        """Handle an installed snapshot: the log is now empty and starts at the snapshot's end."""
        r = self.r
        if event.generation != r.log.generation + 1:
            return
        r.log.generation = event.generation
        r.log.restart_at(event.snapshot, event.voters, event.kraft_version)
        r.ends.restarted()
        text = f"installed snapshot {event.snapshot.snapshot_id}; voters are {r.voters.ids}"
        offset = event.snapshot.snapshot_id.offset
        r.out.note(NoteKind.SNAPSHOT_INSTALLED, text, offset=offset)
        self.downloads.succeeded()
        if isinstance(r.role, Follower):
            r.role.download = None
            self.contact.agreed()
        self.check_healed()

    def handle_refused(self, event: SnapshotRefused) -> None:
        """Handle a file that failed verification: start over with a plain Fetch, after a delay."""
        r = self.r
        reason = f"fetched snapshot {event.snapshot_id}: {event.reason}"
        if isinstance(r.role, Follower) and r.role.download is not None:
            r.role.download = None
            # The leader remains live: the file may have been damaged in transit, or here.
            text = r.contradictions.add(r.role.leader_id, r.epoch, reason, r.timers.now)
            r.out.note(NoteKind.CONTRADICTED, text, leader_id=r.role.leader_id)
        else:
            self.downloads.failed(event.snapshot_id, reason)

    def check_healed(self) -> None:
        """End healing if the log has reached its former end, compared as for votes.

        See rule `damaged_voter_heals`.
        """
        r = self.r
        remembered = r.log.remembered_end
        if remembered is not None and r.log.flushed_end >= remembered:
            text = f"healed: log end {r.log.flushed_end} has reached {remembered}"
            r.out.note(NoteKind.HEALED, text)
            r.log.remembered_end = None
            r.out.emit(ForgetRememberedEnd())
