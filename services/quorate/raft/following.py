"""A follower's side of replication: fetch, append, truncate, download snapshots, find the leader.

Replication is pulled (KIP-595): a Fetch carries the end of what this replica has flushed, and is
its acknowledgement; so the next one leaves only after LogFlushed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import (
    AppendToLog,
    CallFailure,
    ForgetRememberedEnd,
    LogTruncated,
    Peer,
    SnapshotInstalled,
    SnapshotRefused,
    TruncateLog,
    TruncationRefused,
)
from quorate.raft.backoff import backoff_ms
from quorate.raft.calls import Call, CallKind
from quorate.raft.contradictions import LONGEST_SHARE
from quorate.raft.downloads import Downloads
from quorate.raft.fitting import misfit
from quorate.raft.messages import (
    EpochStart,
    FetchedBatches,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from quorate.raft.notes import NoteKind
from quorate.raft.roles import Follower
from quorate.records.errors import ErrorCode
from quorate.records.ids import UNKNOWN_OFFSET, Epoch, Offset, OffsetAndEpoch

if TYPE_CHECKING:
    from quorate.raft.elections import Elections
    from quorate.raft.replica import Replica
    from quorate.raft.roles import SnapshotDownload
    from quorate.records.ids import Millis


class Following:
    """Fetching, for one replica."""

    def __init__(self, replica: Replica, elections: Elections) -> None:
        self.r = replica
        self.elections = elections
        self.downloads = Downloads(replica)
        # What a leader has said in this life; before that, nobody knows how much is missing here.
        self.told_high_watermark: Offset | None = None
        # The newest epoch whose leader answered as one, and when it last did.
        self.leader_heard: tuple[Epoch, Millis] | None = None
        # The newest round that an answer carried, and the epoch of the leader that sent it: another
        # leader's rounds would prove nothing to this one.
        self.read_round = (Epoch(0), 0)
        # What the log is being cut to: until that is done it may not be claimed.
        self.cutting: TruncateLog | None = None

    # --- sending ----------------------------------------------------------------------------------

    def drive(self) -> None:
        """Send the one request that is due, if any."""
        role = self.r.role
        if isinstance(role, Follower) and not role.has_ended:
            self._fetch(role)

    def may_fetch(self) -> bool:
        """Rule of acknowledgement: only what is on the disk may be claimed by a fetch offset."""
        log = self.r.log
        return self.cutting is None and log.flushed == log.end.offset

    def _fetch(self, role: Follower) -> None:
        r = self.r
        # Nearly always one is under way, or the flush that it waits for.
        if role.download is None and not (
            self.may_fetch() and r.calls.may_call(CallKind.FETCH, role.leader_id, r.now)
        ):
            return
        peer = r.leader_peer()
        standing = r.contradictions.standing(r.epoch)
        if peer is None or (standing is not None and standing.retry_ms > r.now):
            return
        if role.download is not None:
            self._fetch_snapshot(role.download, peer)
        else:
            if not role.has_fetched:
                r.addresses.sent(peer, r.voters, r.after(-r.config.election_timeout_ms))
            r.send(CallKind.FETCH, peer, self.fetch_request(r.config.fetch_max_wait_ms))

    def fetch_request(self, max_wait_ms: Millis) -> FetchRequest:
        """What is on this disk, and where it is."""
        r = self.r
        return FetchRequest(
            r.config.cluster_id,
            r.key,
            r.epoch,
            r.log.end.offset,
            r.log.end.epoch,
            max_wait_ms,
            r.config.fetch_max_bytes,
            r.high_watermark or UNKNOWN_OFFSET,
            r.config.endpoints,
            self.read_round[1] if self.read_round[0] == r.epoch else 0,
        )

    def _fetch_snapshot(self, download: SnapshotDownload, peer: Peer) -> None:
        r = self.r
        if download.is_installing or not r.calls.may_call(
            CallKind.FETCH_SNAPSHOT, peer.node_id, r.now
        ):
            return
        request = FetchSnapshotRequest(
            r.config.cluster_id,
            r.key,
            r.epoch,
            download.snapshot_id,
            download.position,
            r.config.fetch_snapshot_max_bytes,
        )
        r.send(CallKind.FETCH_SNAPSHOT, peer, request)

    # --- answers ----------------------------------------------------------------------------------

    def handle_fetch(self, call: Call, response: FetchResponse | CallFailure) -> None:
        """Append, truncate or turn to a snapshot, as the leader says."""
        r = self.r
        role = self._role_of(call)
        if role is None:
            if isinstance(response, FetchResponse):
                r.learn(response.leader, "late Fetch answer")
            return
        if isinstance(response, CallFailure):
            self._failed(CallKind.FETCH, call, role, response)
            return
        if response.error is not ErrorCode.NONE:
            self._refused(CallKind.FETCH, call, response)
            return
        problem = self._contradiction(role, response)
        if problem is not None:
            self._not_believed(role, problem)
        elif response.diverging is not None:
            self._cut(response.diverging)
        else:
            self._take(role, response)

    def _take(self, role: Follower, response: FetchResponse) -> None:
        """A sound answer of the leader: records, nothing new, or which snapshot to fetch."""
        r = self.r
        self._heard_leader(role)
        self.read_round = (r.epoch, response.read_round)
        # Known from the voter set alone, it would be lost with a record that removes the leader.
        r.leader_endpoints = r.leader_endpoints or response.leader.endpoints
        if response.high_watermark != UNKNOWN_OFFSET:
            r.leader_high_watermark = self.told_high_watermark = response.high_watermark
        if response.snapshot_id is not None:
            role.download = self.downloads.begin(response.snapshot_id)
            return
        if isinstance(response.records, FetchedBatches) and response.records.batches:
            self._append(response.records)
        # Only now is this log known to be a prefix of the leader's.
        r.note(NoteKind.RECONCILED, r.contradictions.end(r.epoch))
        r.advance_high_watermark(Offset(min(response.high_watermark, r.log.end.offset)))

    # --- what may not be believed (rule 29) -------------------------------------------------------

    def _contradiction(self, role: Follower, response: FetchResponse) -> str | None:
        """Why this answer cannot be that of a leader which has all that is committed."""
        r = self.r
        info = response.leader
        if info.epoch == r.epoch and info.leader_id not in (None, role.leader_id):
            return f"it names {info.leader_id} as leader of its epoch"
        if 0 <= response.high_watermark < r.high_watermark:
            return f"its high watermark is {response.high_watermark}, {self._committed()}"
        if response.diverging is not None:
            return self._why_not_cut(response.diverging)
        if response.snapshot_id is not None:
            return self._why_not_snapshot(response.snapshot_id)
        if isinstance(response.records, FetchedBatches):
            return misfit(response.records.batches, r.log, epoch=r.epoch, leader_id=role.leader_id)
        return None

    def _committed(self) -> str:
        return f"and everything below {self.r.high_watermark} is committed"

    def _why_not_cut(self, diverging: OffsetAndEpoch) -> str | None:
        """It may only be cut to a common prefix, and never below the high watermark."""
        end, to = self.r.log.end, self.r.log.truncation_point(diverging)
        if to.offset >= end.offset:
            return (
                f"it diverges at {diverging}, where there is nothing to cut: the log ends at {end}"
            )
        if not self.may_truncate(to.offset):
            return f"it diverges at {diverging}, {self._committed()}"
        return None

    def _why_not_snapshot(self, snapshot_id: OffsetAndEpoch) -> str | None:
        """It must hold something new, of an epoch that can be."""
        r = self.r
        if snapshot_id.offset <= r.high_watermark:
            return f"it offers snapshot {snapshot_id}, {self._committed()}"
        if not r.log.epoch_before(r.high_watermark) <= snapshot_id.epoch <= r.epoch:
            return f"it offers snapshot {snapshot_id} in epoch {r.epoch}, {self._committed()}"
        return None

    def _not_believed(self, role: Follower, reason: str) -> None:
        """Change nothing, say it once, ask again later; this leader is not heard."""
        r = self.r
        role.has_fetched = False
        text = r.contradictions.add(role.leader_id, r.epoch, reason, r.now)
        r.note(NoteKind.CONTRADICTED, text, leader_id=role.leader_id)

    def _role_of(self, call: Call) -> Follower | None:
        role = self.r.role
        if isinstance(role, Follower) and call.epoch == self.r.epoch and call.to == role.leader_id:
            return role
        return None

    def _failed(self, kind: CallKind, call: Call, role: Follower, failure: CallFailure) -> None:
        r = self.r
        if failure is CallFailure.UNREADABLE:
            self._not_believed(role, failure.value)
            return
        role.is_failing = True
        r.back_off(kind, call.to)
        if kind is CallKind.FETCH and failure is CallFailure.DISCONNECTED:
            self.elections.suspecting.stream_broke(call)

    def _refused(
        self, kind: CallKind, call: Call, response: FetchResponse | FetchSnapshotResponse
    ) -> None:
        """An error: it may name another leader. The same one again is no news, and waits longer."""
        r = self.r
        role = self._role_of(call)
        if role is None or role.refused is not response.error:
            text = f"{call.to} answers {kind.value} with {response.error.name}"
            r.note(NoteKind.REFUSED_BY_PEER, text, peer=call.to, error=response.error.name)
        r.learn(response.leader, f"answer of {call.to}")
        role = self._role_of(call)
        if role is None:
            return
        # Somebody else may have this address now.
        role.is_failing = True
        role.refusals, role.refused = role.refusals + 1, response.error
        delay = backoff_ms(
            role.refusals,
            first_ms=r.config.retry_backoff_ms,
            longest_ms=r.config.fetch_timeout_ms // LONGEST_SHARE,
            random=r.random,
        )
        r.calls.back_off(kind, call.to, r.after(delay))

    def _heard_leader(self, role: Follower) -> None:
        r = self.r
        if role.has_ended:
            return
        role.has_fetched = True
        self.leader_heard = (r.epoch, r.now)
        role.refusals, role.refused = 0, None
        role.is_failing = False
        r.calls.succeeded(CallKind.FETCH, role.leader_id)
        r.lost_rounds = 0
        role.fetch_deadline = r.after(r.config.fetch_timeout_ms)
        r.suspicion = None

    def _append(self, fetched: FetchedBatches) -> None:
        """Append what continues this log (rule 17)."""
        r = self.r
        base = r.log.end.offset
        last = fetched.batches[-1]
        end = OffsetAndEpoch(epoch=last.epoch, offset=Offset(last.last_offset + 1))
        starts: list[EpochStart] = []
        epoch = r.log.end.epoch
        for batch in fetched.batches:
            if batch.epoch > epoch:
                epoch = batch.epoch
                starts.append(EpochStart(epoch, batch.base_offset))
        r.emit(AppendToLog(base, end, fetched))
        r.log.append(end, starts)
        for batch in fetched.batches:
            for index, record in enumerate(batch.control):
                if r.log.append_control(Offset(batch.base_offset + index), record):
                    text = f"voters are {_ids(r)} from offset {batch.base_offset + index}"
                    r.note(NoteKind.VOTERS_LEARNED, text, offset=batch.base_offset + index)

    def _cut(self, diverging: OffsetAndEpoch) -> None:
        """Cut to the common prefix, if a batch begins there: what the disk knows."""
        r = self.r
        to = r.log.truncation_point(diverging)
        records = r.log.end.offset - to.offset
        text = f"leader diverges at {diverging}: cuts {records} record(s)"
        r.note(NoteKind.LOG_CUT, text, records=records)
        self.cutting = TruncateLog(to, r.log.generation + 1)
        r.emit(self.cutting)

    def handle_truncated(self, event: LogTruncated) -> None:
        """The log ends there now."""
        r = self.r
        if self.cutting is None or event.generation != self.cutting.generation:
            return
        self.cutting = None
        r.log.truncate(event.to)
        if isinstance(r.role, Follower):
            self._heard_leader(r.role)
            r.note(NoteKind.RECONCILED, r.contradictions.end(r.epoch))

    def handle_truncation_refused(self, event: TruncationRefused) -> None:
        """The log is as it was: the leaders of its epochs wrote other batches than this one has."""
        cutting, self.cutting = self.cutting, None
        if cutting is not None and isinstance(self.r.role, Follower):
            self._not_believed(self.r.role, event.reason)

    def may_truncate(self, to: Offset) -> bool:
        """What is committed is never cut."""
        return to >= self.r.high_watermark

    # --- snapshots --------------------------------------------------------------------------------

    def handle_fetch_snapshot(
        self, call: Call, response: FetchSnapshotResponse | CallFailure
    ) -> None:
        """One slice of the snapshot; the last one installs it (KIP-630)."""
        r = self.r
        role = self._role_of(call)
        if role is None or role.download is None:
            return
        download = role.download
        if isinstance(response, CallFailure):
            self._failed(CallKind.FETCH_SNAPSHOT, call, role, response)
            return
        if response.error is not ErrorCode.NONE:
            if response.error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
                # The leader lives, and has a newer one: a plain Fetch tells which.
                self._heard_leader(role)
                self._give_up(role, f"{call.to} answers FetchSnapshot with {response.error.name}")
                r.learn(response.leader, f"answer of {call.to}")
                return
            self._refused(CallKind.FETCH_SNAPSHOT, call, response)
            return
        chunk = response.chunk
        fits = (
            response.snapshot_id == download.snapshot_id and response.position == download.position
        )
        if not fits or not isinstance(chunk, bytes):
            self._not_believed(role, f"it sends another slice of {download.snapshot_id} than asked")
            return
        self._heard_leader(role)
        if not chunk:
            # A leader that still checks the file, or writes another, has nothing to send yet.
            # What it sends then may be another one than this has the beginning of.
            role.download = self.downloads.again(download)
            again = self.downloads.waits(download.snapshot_id)
            r.calls.back_off(CallKind.FETCH_SNAPSHOT, call.to, again)
            return
        role.download = self.downloads.take(download, chunk, response.size_bytes)

    def _give_up(self, role: Follower, why: str) -> None:
        """Begin anew from a plain Fetch, later each time."""
        assert role.download is not None
        again = self.downloads.failed(role.download.snapshot_id, why)
        role.download = None
        self.r.calls.back_off(CallKind.FETCH, role.leader_id, again)

    def handle_installed(self, event: SnapshotInstalled) -> None:
        """The log now is empty and starts at the snapshot's end."""
        r = self.r
        if event.generation != r.log.generation + 1:
            return
        r.log.generation = event.generation
        r.log.restart_at(event.snapshot, event.voters, event.kraft_version)
        r.high_watermark = max(r.high_watermark, r.log.log_start)
        text = f"installed snapshot {event.snapshot.snapshot_id}; voters are {_ids(r)}"
        r.note(NoteKind.SNAPSHOT_INSTALLED, text, offset=event.snapshot.snapshot_id.offset)
        self.downloads.succeeded()
        if isinstance(r.role, Follower):
            r.role.download = None
            r.note(NoteKind.RECONCILED, r.contradictions.end(r.epoch))
        self.check_healed()

    def handle_refused(self, event: SnapshotRefused) -> None:
        """The fetched file does not check: begin anew from a plain Fetch, after a while."""
        r = self.r
        reason = f"fetched snapshot {event.snapshot_id}: {event.reason}"
        if isinstance(r.role, Follower) and r.role.download is not None:
            r.role.download = None
            # Its leader is heard all the same: what spoiled the file may lie on the way, or here.
            text = r.contradictions.add(r.role.leader_id, r.epoch, reason, r.now)
            r.note(NoteKind.CONTRADICTED, text, leader_id=r.role.leader_id)
        else:
            self.downloads.failed(event.snapshot_id, reason)

    def check_healed(self) -> None:
        """Rule 16: whole again when the log is at least what it once was, compared as in Vote."""
        r = self.r
        if r.remembered_end is not None and r.log.flushed_end >= r.remembered_end:
            text = f"healed: log end {r.log.flushed_end} has reached {r.remembered_end}"
            r.note(NoteKind.HEALED, text)
            r.remembered_end = None
            r.emit(ForgetRememberedEnd())

    def add_deadlines(self, due: list[Millis]) -> None:
        """When to ask a leader again that was not believed."""
        r = self.r
        standing = r.contradictions.standing(r.election.epoch)
        if standing is not None and isinstance(r.role, Follower) and standing.retry_ms > r.now:
            due.append(standing.retry_ms)


def _ids(replica: Replica) -> list[int]:
    return [int(voter.key.node_id) for voter in replica.voters]
