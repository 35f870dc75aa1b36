"""Events, effects and configuration of the consensus core; no clock, disk, socket or await.

The same events give the same effects. `RaftCore.step(event, now_ms)` returns the effects to perform
strictly in order, the one deadline at which to wake the core, and notes that say why. Times are
monotonic milliseconds. See docs/decisions/0001-core-api.md.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from quorate.raft.trace_events import Cause
from quorate.records.ids import (
    CallId,
    ClusterId,
    DirectoryId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    ReplyToken,
)
from quorate.records.value_types import named_value, value

if TYPE_CHECKING:
    from quorate.raft.identity.rival_leader import Rival
    from quorate.raft.messages import (
        ElectionState,
        EpochStart,
        FetchedBatches,
        KRaftVersionAt,
        PeerRequest,
        PeerResponse,
        Request,
        Response,
        SnapshotInfo,
        VotersAt,
    )
    from quorate.raft.trace_events import Note
    from quorate.records.control import ControlRecord
    from quorate.records.voters import Endpoint, VoterSet

# --- what the core is told once, at its start -------------------------------------------------


@named_value
class RaftConfig:
    """Who this replica is and Kafka's `controller.quorum.*` settings, in milliseconds and bytes."""

    node_id: NodeId
    directory_id: DirectoryId
    cluster_id: ClusterId
    listener_name: str = "GRPC"
    endpoints: tuple[Endpoint, ...] = ()
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    election_timeout_ms: Millis = Millis(1000)
    fetch_timeout_ms: Millis = Millis(2000)
    election_backoff_max_ms: Millis = Millis(1000)
    request_timeout_ms: Millis = Millis(2000)
    retry_backoff_ms: Millis = Millis(20)
    fetch_max_wait_ms: Millis = Millis(500)
    fetch_max_bytes: int = 256 * 1024
    fetch_snapshot_max_bytes: int = 256 * 1024
    batch_bytes_max: int = 8 * 1024 * 1024
    observer_session_timeout_ms: Millis = Millis(300_000)
    # What a leader knows of replicas is told in one answer, which has to be sendable.
    observers_max: int = 1000
    observer_endpoints_max: int = 1024
    high_watermark_linger_ms: Millis = Millis(10)
    auto_join: bool = False

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)


@named_value
class RecoveredState:
    """What storage found on the disk; everything in it is durable.

    `epochs` covers log_start..end, oldest first; the first entry may start below log_start.
    `snapshots` is oldest first, without the 0-0 bootstrap checkpoint. `voters` and `kraft_versions`
    are oldest first; a snapshot's set stands at (snapshot end - 1), the bootstrap one at -1.
    `remembered_end` is set while this replica heals (rule 16). `abstains` is rule 8, `rival` 34.
    """

    log_start: Offset = Offset(0)
    end: OffsetAndEpoch = OffsetAndEpoch(epoch=Epoch(0), offset=Offset(0))
    epochs: tuple[EpochStart, ...] = ()
    snapshots: tuple[SnapshotInfo, ...] = ()
    voters: tuple[VotersAt, ...] = ()
    kraft_versions: tuple[KRaftVersionAt, ...] = ()
    election: ElectionState | None = None
    remembered_end: OffsetAndEpoch | None = None
    abstains: bool = False
    rival: Rival | None = None


# --- events: facts ------------------------------------------------------------------------------


class CallFailure(Enum):
    """Why a request of ours has no answer."""

    TIMED_OUT = "timed out"
    DISCONNECTED = "disconnected"
    UNREADABLE = "an answer that does not check"
    IGNORED = "its answer is ignored"


@value
class RequestReceived:
    token: ReplyToken
    request: Request


@value
class CallerGone:
    """The caller behind `token` hung up: a parked Fetch or a read needs no answer any more."""

    token: ReplyToken


@value
class ResponseReceived:
    call: CallId
    response: PeerResponse | CallFailure


@value
class ProbeAnswered:
    """A plain TCP connect to the leader came to an end; `refused` is ECONNREFUSED, nothing else."""

    call: CallId
    refused: bool


@value
class RecordsProposed:
    """One encoded batch; `epoch` fences a controller that has not heard that it lost leadership.

    Answered at once by SendReply(token, ProposalResponse): refused, or appended at which offsets.
    It is committed when PublishProgress shows a high watermark above its last offset.
    """

    token: ReplyToken
    epoch: Epoch
    batch: ProposedBatch


@value
class ReadRequested:
    """A current read began (rule 19). Answered by SendReply(token, ReadResponse)."""

    token: ReplyToken


@value
class LogFlushed:
    """Everything below `end` is on the disk; ignored when `generation` is not the newest."""

    end: OffsetAndEpoch
    generation: int


@value
class LogTruncated:
    """The log ends at `to` now, durably. Nothing may come between this and its TruncateLog."""

    to: OffsetAndEpoch
    generation: int


@value
class TruncationRefused:
    """The log cannot be cut there, and is as it was: no batch begins at that offset."""

    generation: int
    reason: str


@value
class SnapshotStored:
    """The state machine's own snapshot is durable (rule 15: never beyond the flushed end)."""

    snapshot: SnapshotInfo


@value
class SnapshotChecked:
    """What became of CheckSnapshot: `damage` says in words why it must not be served."""

    snapshot_id: OffsetAndEpoch
    damage: str | None


@named_value
class SnapshotInstalled:
    """A fetched snapshot is checked and durable, and the log restarts at its end."""

    snapshot: SnapshotInfo
    generation: int
    voters: VoterSet | None
    kraft_version: int


@value
class SnapshotRefused:
    """A fetched snapshot did not check; it has been deleted."""

    snapshot_id: OffsetAndEpoch
    reason: str


@value
class LogCleaned:
    """Old segments and snapshots are gone; `snapshots` are those that remain, oldest first."""

    log_start: Offset
    snapshots: tuple[SnapshotInfo, ...]


@value
class StateMachineProgress:
    """Whether the state machine could lead now (rule 11)."""

    ready: bool


@value
class BrokersSupport:
    """The highest kraft.version that every registered broker can read; None without brokers."""

    kraft_version_max: int | None


@value
class ResignRequested:
    """The shell wants another leader: the disk fills up, or it read damage while serving."""

    reason: str
    cause: Cause = Cause.LOG_DAMAGED


@value
class ShutdownRequested:
    """Hand over, then stop: ShutdownComplete follows."""

    timeout_ms: Millis


@value
class TimerFired:
    """The wake-up arrived. Early, late and duplicate firings are harmless."""


Event: TypeAlias = (
    RequestReceived
    | CallerGone
    | ResponseReceived
    | ProbeAnswered
    | RecordsProposed
    | ReadRequested
    | LogFlushed
    | LogTruncated
    | TruncationRefused
    | SnapshotStored
    | SnapshotChecked
    | SnapshotInstalled
    | SnapshotRefused
    | LogCleaned
    | StateMachineProgress
    | BrokersSupport
    | ResignRequested
    | ShutdownRequested
    | TimerFired
)


# --- effects: imperatives -------------------------------------------------------------------------


@value
class ProposedBatch:
    """A batch as the proposer encoded it; the shell stamps base offset and epoch when it appends.

    Neither lies under the batch's CRC, so the bytes stay as they are otherwise.
    """

    data: bytes
    record_count: int


@value
class ControlBatch:
    """Control records of the core's own; the shell encodes them and fills the timestamp."""

    records: tuple[ControlRecord, ...]


@value
class SaveElection:
    """A barrier: durable before any later effect begins."""

    state: ElectionState
    kraft_version: int
    voters: VoterSet


@value
class AppendToLog:
    """Write at the end of the log, without waiting for the disk: answered by LogFlushed.

    `base_offset` is the log's end before, `end` the one after.
    """

    base_offset: Offset
    end: OffsetAndEpoch
    payload: ProposedBatch | ControlBatch | FetchedBatches


@value
class TruncateLog:
    """A barrier (rule 14): waits for the flush in flight, durable before the next append.

    Answered by LogTruncated or TruncationRefused, before any other event.
    """

    to: OffsetAndEpoch
    generation: int


@value
class WriteSnapshotChunk:
    """Bytes of a snapshot that is being fetched; position 0 starts the file anew."""

    snapshot_id: OffsetAndEpoch
    position: int
    data: bytes


@named_value
class InstallSnapshot:
    """Check the fetched file, make it durable, restart the log at its end.

    A barrier, answered by SnapshotInstalled or SnapshotRefused. Its kraft.version must not be below
    `kraft_version`, which is committed.
    """

    snapshot_id: OffsetAndEpoch
    generation: int
    kraft_version: int = 0


@value
class CheckSnapshot:
    """Read a stored snapshot to its end, beside everything else (rule 30).

    Answered by SnapshotChecked; of a damaged one the shell writes a successor as soon as it can,
    which takes its place in SnapshotStored.
    """

    snapshot_id: OffsetAndEpoch


@value
class ForgetRememberedEnd:
    """Healing is over (rule 16): the remembered end may go."""


@value
class VoteAgain:
    """Abstention is over (rule 8): its mark may go. Durable before any vote that follows."""


@value
class SaveRival:
    """A barrier: another quorum of this cluster was found (rule 34); durable from here on."""

    rival: Rival


@value
class Peer:
    """Where a request goes; bootstrap servers have negative ids, -2 downwards."""

    node_id: NodeId
    host: str
    port: int


@value
class SendRequest:
    """Answered by ResponseReceived(call, ...) at most once; the core times it out by itself."""

    call: CallId
    to: Peer
    request: PeerRequest


@value
class ProbeLeader:
    """Try a plain TCP connect and tell by ProbeAnswered whether it was refused (rule 10)."""

    call: CallId
    to: Peer


@value
class SendReply:
    """A Fetch answer names a slice of the log; the shell reads its bytes now, in order."""

    token: ReplyToken
    response: Response


@named_value
class PublishProgress:
    """Something that the state machine or the status must know has changed.

    `is_leader` with `epoch_start` tells the controller that it may become active once it has
    replayed everything below `epoch_start`; False with a newer epoch that it no longer is.
    """

    role: str
    epoch: Epoch
    leader_id: NodeId | None
    is_leader: bool
    epoch_start: Offset | None
    high_watermark: Offset | None


@value
class ShutdownComplete:
    """The process may end: nothing is left to hand over, or (not `in_time`) the time is over."""

    in_time: bool = True


Effect: TypeAlias = (
    SaveElection
    | AppendToLog
    | TruncateLog
    | WriteSnapshotChunk
    | InstallSnapshot
    | CheckSnapshot
    | ForgetRememberedEnd
    | VoteAgain
    | SaveRival
    | SendRequest
    | ProbeLeader
    | SendReply
    | PublishProgress
    | ShutdownComplete
)


@value
class Update:
    """What one step asks for."""

    effects: tuple[Effect, ...]
    wake_at_ms: Millis | None
    notes: tuple[Note, ...] = field(default=())


class Random(Protocol):
    """The only entropy of the core: jitter, drawn in [0, 1)."""

    def random(self) -> float: ...
