"""A follower's side of replication: fetch, append, truncate, download snapshots, find the leader.

Replication is pulled (KIP-595): a Fetch carries the end of what this replica has flushed, and is
its acknowledgement; so the next one leaves only after LogFlushed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import (
    AppendToLog,
    CallFailure,
    ForgetRememberedEnd,
    InstallSnapshot,
    Peer,
    SnapshotInstalled,
    SnapshotRefused,
    TruncateLog,
    WriteSnapshotChunk,
)
from quorate.raft.calls import Call, CallKind
from quorate.raft.messages import (
    BatchInfo,
    EpochStart,
    FetchedBatches,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from quorate.raft.roles import Follower, SnapshotDownload, Unattached
from quorate.records.control import LeaderChange
from quorate.records.errors import ErrorCode
from quorate.records.ids import UNKNOWN_OFFSET, Epoch, Millis, NodeId, Offset, OffsetAndEpoch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.elections import Elections
    from quorate.raft.replica import Replica

DISCOVERY_BACKOFF_FACTOR: Final = 5
FIRST_BOOTSTRAP_ID: Final = -2


class Following:
    """Fetching, for one replica."""

    def __init__(self, replica: Replica, elections: Elections) -> None:
        self.r = replica
        self.elections = elections
        self.discover_at = Millis(0)
        self.turn = 0
        # The newest round that an answer carried, and the epoch of the leader that sent it: another
        # leader's rounds would prove nothing to this one.
        self.read_round = (Epoch(0), 0)

    # --- sending ----------------------------------------------------------------------------------

    def drive(self) -> None:
        """Send the one request that is due, if any."""
        match self.r.role:
            case Follower() as role if not role.has_ended:
                self._fetch(role)
            case Unattached():
                self._discover()

    def may_fetch(self) -> bool:
        """Rule of acknowledgement: only what is on the disk may be claimed by a fetch offset."""
        return self.r.log.flushed == self.r.log.end.offset

    def _fetch(self, role: Follower) -> None:
        r = self.r
        peer = r.leader_peer()
        if peer is None:
            return
        if role.download is not None:
            self._fetch_snapshot(role.download, peer)
        elif r.calls.may_call(CallKind.FETCH, peer.node_id, r.now) and self.may_fetch():
            r.send(CallKind.FETCH, peer, self._fetch_request(r.config.fetch_max_wait_ms))

    def _fetch_request(self, max_wait_ms: Millis) -> FetchRequest:
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

    def _discover(self) -> None:
        """Ask the bootstrap servers and the voters, in turn, who leads."""
        r = self.r
        if (
            self.discover_at > r.now
            or r.calls.in_flight(CallKind.DISCOVERY)
            or not self.may_fetch()
        ):
            return
        targets = self._discovery_targets()
        if not targets:
            return
        peer = targets[self.turn % len(targets)]
        self.turn += 1
        r.send(CallKind.DISCOVERY, peer, self._fetch_request(Millis(0)))

    def _discovery_targets(self) -> list[Peer]:
        r = self.r
        own = {(e.host, e.port) for e in r.config.endpoints}
        targets = [r.peer(voter) for voter in r.voters if voter.key.node_id != r.node_id]
        targets += [
            Peer(NodeId(FIRST_BOOTSTRAP_ID - index), host, port)
            for index, (host, port) in enumerate(r.config.bootstrap_servers)
            if (host, port) not in own
        ]
        return [peer for peer in targets if peer is not None]

    # --- answers ----------------------------------------------------------------------------------

    def handle_discovery(self, response: FetchResponse | CallFailure) -> None:
        """Only the leader that the answer names counts; its records are fetched from the leader."""
        r = self.r
        self.discover_at = r.after(r.config.retry_backoff_ms * DISCOVERY_BACKOFF_FACTOR)
        if isinstance(response, CallFailure):
            return
        if response.error is ErrorCode.INCONSISTENT_CLUSTER_ID:
            r.note(f"a bootstrap server belongs to another cluster than {r.config.cluster_id}")
            return
        r.learn(response.leader, "discovery")

    def handle_fetch(self, call: Call, response: FetchResponse | CallFailure) -> None:
        """Append, truncate or turn to a snapshot, as the leader says."""
        r = self.r
        role = self._role_of(call)
        if role is None:
            if isinstance(response, FetchResponse):
                r.learn(response.leader, "late Fetch answer")
            return
        if isinstance(response, CallFailure):
            self._back_off(CallKind.FETCH, call)
            if response is CallFailure.DISCONNECTED:
                self.elections.suspecting.stream_broke(call)
            return
        if response.error is not ErrorCode.NONE:
            self._refused(CallKind.FETCH, call, response)
            return
        self._heard_leader(role)
        self.read_round = (r.epoch, response.read_round)
        # Known from the voter set alone, it would be lost with a record that removes the leader.
        r.leader_endpoints = r.leader_endpoints or response.leader.endpoints
        if response.high_watermark != UNKNOWN_OFFSET:
            r.leader_high_watermark = response.high_watermark
        if response.diverging is not None:
            self._truncate(call, response.diverging)
        elif response.snapshot_id is not None:
            self._begin_download(role, call, response.snapshot_id)
        elif isinstance(response.records, FetchedBatches) and not self._append(response.records):
            self._back_off(CallKind.FETCH, call)
        else:
            # Only now is this log known to be a prefix of the leader's.
            r.advance_high_watermark(Offset(min(response.high_watermark, r.log.end.offset)))

    def _role_of(self, call: Call) -> Follower | None:
        role = self.r.role
        if isinstance(role, Follower) and call.epoch == self.r.epoch and call.to == role.leader_id:
            return role
        return None

    def _back_off(self, kind: CallKind, call: Call) -> None:
        self.r.calls.back_off(kind, call.to, self.r.after(self.r.config.retry_backoff_ms))

    def _refused(
        self, kind: CallKind, call: Call, response: FetchResponse | FetchSnapshotResponse
    ) -> None:
        r = self.r
        r.note(f"{call.to} answers {kind.value} with {response.error.name}")
        r.learn(response.leader, f"answer of {call.to}")
        if self._role_of(call) is not None:
            self._back_off(kind, call)

    def _heard_leader(self, role: Follower) -> None:
        r = self.r
        if role.has_ended:
            return
        role.has_fetched = True
        r.lost_rounds = 0
        role.fetch_deadline = r.after(r.config.fetch_timeout_ms)
        r.suspicion = None

    def _append(self, fetched: FetchedBatches) -> bool:
        """Append what continues this log, or nothing (rule 17). False when it does not fit."""
        r = self.r
        if not fetched.batches:
            return True
        problem = self.misfit(fetched.batches)
        if problem is not None:
            r.note(f"fetched batches are refused: {problem}")
            return False
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
                    r.note(f"voters are {_ids(r)} from offset {batch.base_offset + index}")
        return True

    def misfit(self, batches: tuple[BatchInfo, ...]) -> str | None:
        """Why these batches do not continue the log: contiguity, epoch order, epoch starts."""
        r = self.r
        offset, epoch = r.log.end.offset, r.log.end.epoch
        for batch in batches:
            if batch.base_offset != offset or batch.last_offset < offset:
                return f"offset {batch.base_offset} where {offset} is next"
            if batch.epoch < epoch or batch.epoch > r.epoch:
                return f"epoch {batch.epoch} after {epoch} in epoch {r.epoch}"
            first = batch.control[0] if batch.control else None
            if batch.epoch > epoch and not isinstance(first, LeaderChange):
                return f"epoch {batch.epoch} begins at {offset} without a LeaderChange"
            offset, epoch = Offset(batch.last_offset + 1), batch.epoch
        return None

    def _truncate(self, call: Call, diverging: OffsetAndEpoch) -> None:
        """Cut to the common prefix, never below the high watermark (seed, invariant)."""
        r = self.r
        to = r.log.truncation_point(diverging)
        if to.offset >= r.log.end.offset:
            r.note(f"leader diverges at {diverging}, nothing to cut at {r.log.end}")
            self._back_off(CallKind.FETCH, call)
            return
        if not self.may_truncate(to.offset):
            r.note(f"refuses to cut at {to.offset}, below the high watermark {r.high_watermark}")
            self._back_off(CallKind.FETCH, call)
            return
        r.note(f"leader diverges at {diverging}: cuts {r.log.end.offset - to.offset} record(s)")
        r.log.truncate(to)
        r.emit(TruncateLog(to, r.log.generation))

    def may_truncate(self, to: Offset) -> bool:
        """What is committed is never cut."""
        return to >= self.r.high_watermark

    # --- snapshots --------------------------------------------------------------------------------

    def _begin_download(self, role: Follower, call: Call, snapshot_id: OffsetAndEpoch) -> None:
        r = self.r
        if snapshot_id.offset < r.high_watermark:
            r.note(f"refuses snapshot {snapshot_id} below the high watermark {r.high_watermark}")
            self._back_off(CallKind.FETCH, call)
            return
        role.download = SnapshotDownload(snapshot_id)
        r.note(f"fetches snapshot {snapshot_id}")

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
            self._back_off(CallKind.FETCH_SNAPSHOT, call)
            return
        if response.error is not ErrorCode.NONE:
            if response.error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
                # The leader lives, and has a newer one: a plain Fetch tells which.
                role.download = None
                self._heard_leader(role)
            self._refused(CallKind.FETCH_SNAPSHOT, call, response)
            return
        self._heard_leader(role)
        chunk = response.chunk
        fits = (
            response.snapshot_id == download.snapshot_id and response.position == download.position
        )
        if not fits or not isinstance(chunk, bytes) or not chunk:
            self._back_off(CallKind.FETCH_SNAPSHOT, call)
            return
        r.emit(WriteSnapshotChunk(download.snapshot_id, download.position, chunk))
        download.position += len(chunk)
        if download.position >= response.size_bytes:
            download.is_installing = True
            # The log begins anew only once the file has been found whole.
            r.emit(InstallSnapshot(download.snapshot_id, r.log.generation + 1))

    def handle_installed(self, event: SnapshotInstalled) -> None:
        """The log now is empty and starts at the snapshot's end."""
        r = self.r
        if event.generation != r.log.generation + 1:
            return
        r.log.generation = event.generation
        r.log.restart_at(event.snapshot, event.voters, event.kraft_version)
        r.high_watermark = max(r.high_watermark, r.log.log_start)
        r.note(f"installed snapshot {event.snapshot.snapshot_id}; voters are {_ids(r)}")
        if isinstance(r.role, Follower):
            r.role.download = None
        self.check_healed()

    def handle_refused(self, event: SnapshotRefused) -> None:
        """The fetched file does not check: begin anew from a plain Fetch."""
        self.r.note(f"fetched snapshot {event.snapshot_id} is refused: {event.reason}")
        if isinstance(self.r.role, Follower):
            self.r.role.download = None

    def check_healed(self) -> None:
        """Rule 16: whole again when the log is at least what it once was, compared as in Vote."""
        r = self.r
        if r.remembered_end is not None and r.log.flushed_end >= r.remembered_end:
            r.note(f"healed: log end {r.log.flushed_end} has reached {r.remembered_end}")
            r.remembered_end = None
            r.emit(ForgetRememberedEnd())

    def deadlines(self) -> Iterator[Millis]:
        """When to look for a leader again."""
        if not isinstance(self.r.role, Unattached) or self.r.calls.in_flight(CallKind.DISCOVERY):
            return
        # Before the log is flushed, or with nobody to ask, no passing of time lets it go on.
        if self.may_fetch() and self._discovery_targets():
            yield self.discover_at


def _ids(replica: Replica) -> list[int]:
    return [int(voter.key.node_id) for voter in replica.voters]
