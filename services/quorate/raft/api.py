"""Events, effects and configuration of the consensus core; no clock, disk, socket or await.

The core is deterministic. `RaftCore.step(event, now_ms)` returns the effects to perform strictly in
order, the next deadline at which to wake the core, and notes that give the reasons. Times are
monotonic milliseconds. See docs/decisions/0001-core-api.md.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from quorate.raft.trace_events import RoleChangeCause
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
from quorate.records.value_types import keyword_value_type, value_type

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
    from quorate.raft.trace_events import TraceEvent
    from quorate.records.control import ControlRecord
    from quorate.records.voters import Endpoint, VoterSet

# --- start parameters of the core -------------------------------------------------------------


def check_quorum_timeout_ms(fetch_timeout_ms: int) -> Millis:
    """1.5 fetch timeouts: a leader that has not heard from a majority for longer resigns.

    Kafka: LeaderState.checkQuorumTimeoutMs.
    """
    return Millis(fetch_timeout_ms * 3 // 2)


@keyword_value_type
class RaftConfig:
    """Identity of this replica, and Kafka's `controller.quorum.*` settings, in ms and bytes."""

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
    # DescribeQuorum returns all replicas in one response, whose size has to be limited.
    observers_max: int = 1000
    observer_endpoints_max: int = 1024
    high_watermark_linger_ms: Millis = Millis(10)
    auto_join: bool = False

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def check_quorum_timeout_ms(self) -> Millis:
        return check_quorum_timeout_ms(self.fetch_timeout_ms)


@keyword_value_type
class RecoveredState:
    """State that storage recovered from the disk; everything in it is durable.

    `epochs` covers log_start..end, oldest first; the first entry may start below log_start.
    `snapshots` is oldest first, without the 0-0 bootstrap checkpoint. `voters` and `kraft_versions`
    are oldest first; the voter set of a snapshot has offset (snapshot end - 1), the bootstrap one
    -1. `remembered_end` is set while this replica heals (rule `damaged_voter_heals`). `abstains` is
    for rule `empty_log_abstains`, `rival` for rule `sole_voter_conflict`.
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


class RequestFailure(Enum):
    """Reason for a missing response to a request of this replica."""

    TIMED_OUT = "timed out"
    DISCONNECTED = "disconnected"
    UNREADABLE = "an answer that does not check"
    IGNORED = "its answer is ignored"


@value_type
class RequestReceived:
    token: ReplyToken
    request: Request


@value_type
class CallerDisconnected:
    """The caller of `token` disconnected: its parked Fetch or read no longer needs a reply."""

    token: ReplyToken


@value_type
class ResponseReceived:
    call: CallId
    response: PeerResponse | RequestFailure


@value_type
class ProbeCompleted:
    """A plain TCP connect to the leader ended; `refused` is set for ECONNREFUSED, nothing else."""

    call: CallId
    refused: bool


@value_type
class RecordsProposed:
    """One encoded batch; `epoch` fences a controller that does not know that it lost leadership.

    Answered immediately by SendReply(token, ProposalResponse): rejected, or the appended offsets.
    It is committed when PublishProgress shows a high watermark above its last offset.
    """

    token: ReplyToken
    epoch: Epoch
    batch: ProposedBatch


@value_type
class ReadRequested:
    """A linearizable read began. Answered by SendReply(token, ReadResponse).

    See rule `linearizable_reads`.
    """

    token: ReplyToken


@value_type
class LogFlushed:
    """Everything below `end` is on the disk; ignored unless `generation` is the newest."""

    end: OffsetAndEpoch
    generation: int


@value_type
class LogTruncated:
    """The log now ends at `to`, durably. No event may come between TruncateLog and this one."""

    to: OffsetAndEpoch
    generation: int


@value_type
class TruncationRefused:
    """The log cannot be truncated there and is unchanged: no batch begins at that offset."""

    generation: int
    reason: str


@value_type
class SnapshotStored:
    """The state machine's own snapshot is durable, never beyond the flushed end.

    See rule `snapshot_within_flush`.
    """

    snapshot: SnapshotInfo


@value_type
class SnapshotChecked:
    """Result of CheckSnapshot: `damage` is the reason why it must not be served, or None."""

    snapshot_id: OffsetAndEpoch
    damage: str | None


@keyword_value_type
class SnapshotInstalled:
    """A fetched snapshot is verified and durable, and the log restarts at its end."""

    snapshot: SnapshotInfo
    generation: int
    voters: VoterSet | None
    kraft_version: int


@value_type
class SnapshotRefused:
    """A fetched snapshot failed verification; it has been deleted."""

    snapshot_id: OffsetAndEpoch
    reason: str


@value_type
class LogCleaned:
    """Old segments and snapshots are deleted; `snapshots` are those that remain, oldest first."""

    log_start: Offset
    snapshots: tuple[SnapshotInfo, ...]


@value_type
class StateMachineProgress:
    """Readiness of the state machine: `ready` if this replica could lead now.

    See rule `unready_voter_waits`.
    """

    ready: bool


@value_type
class BrokerKRaftVersions:
    """The highest kraft.version that every registered broker can read; None without brokers."""

    kraft_version_max: int | None


@value_type
class ResignRequested:
    """The shell requests another leader: the disk is nearly full, or a read found damage."""

    reason: str
    cause: RoleChangeCause = RoleChangeCause.LOG_DAMAGED


@value_type
class ShutdownRequested:
    """Transfer leadership, then stop: ShutdownComplete follows."""

    timeout_ms: Millis


@value_type
class TimerFired:
    """The wake-up arrived. Early, late and duplicate firings are harmless."""


Event: TypeAlias = (
    RequestReceived
    | CallerDisconnected
    | ResponseReceived
    | ProbeCompleted
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
    | BrokerKRaftVersions
    | ResignRequested
    | ShutdownRequested
    | TimerFired
)


# --- effects: imperatives -------------------------------------------------------------------------


@value_type
class ProposedBatch:
    """A batch as the proposer encoded it; the shell stamps base offset and epoch when it appends.

    The batch's CRC covers neither, so all other bytes stay unchanged.
    """

    data: bytes
    record_count: int


@value_type
class ControlBatch:
    """Control records of the core itself; the shell encodes them and fills in the timestamp."""

    records: tuple[ControlRecord, ...]


@value_type
class SaveElection:
    """A barrier: durable before any later effect begins."""

    state: ElectionState
    kraft_version: int
    voters: VoterSet


@value_type
class AppendToLog:
    """Write at the end of the log, without waiting for the disk: answered by LogFlushed.

    `base_offset` is the log end before the append, `end` the one after it.
    """

    base_offset: Offset
    end: OffsetAndEpoch
    payload: ProposedBatch | ControlBatch | FetchedBatches


@value_type
class TruncateLog:
    """A barrier: waits for the flush in flight, durable before the next append.

    See rule `log_generation`. Answered by LogTruncated or TruncationRefused, before any other
    event.
    """

    to: OffsetAndEpoch
    generation: int


@value_type
class WriteSnapshotChunk:
    """Write bytes of a snapshot that is being fetched; position 0 restarts the file."""

    snapshot_id: OffsetAndEpoch
    position: int
    data: bytes


@keyword_value_type
class InstallSnapshot:
    """Check the fetched file, make it durable, restart the log at its end.

    A barrier, answered by SnapshotInstalled or SnapshotRefused. Its kraft.version must not be below
    `kraft_version`, which is committed.
    """

    snapshot_id: OffsetAndEpoch
    generation: int
    kraft_version: int = 0


@value_type
class CheckSnapshot:
    """Read a stored snapshot to its end, concurrently with all other work.

    See rule `snapshot_pinning`. Answered by SnapshotChecked. If it is damaged, the shell writes a
    newer snapshot as soon as it can, which replaces the damaged one at SnapshotStored.
    """

    snapshot_id: OffsetAndEpoch


@value_type
class EndHealing:
    """Healing has ended (rule `damaged_voter_heals`): the remembered end may be deleted."""


@value_type
class EndAbstention:
    """Abstention has ended: its file may be deleted. Durable before any later vote.

    See rule `empty_log_abstains`.
    """


@value_type
class SaveRival:
    """A barrier: make durable that another quorum of this cluster was found.

    See rule `sole_voter_conflict`.
    """

    rival: Rival


@value_type
class Peer:
    """Destination of a request; bootstrap servers have negative ids, -2 downwards."""

    node_id: NodeId
    host: str
    port: int


@value_type
class SendRequest:
    """Answered by ResponseReceived(call, ...) at most once; the core has its own timeout."""

    call: CallId
    to: Peer
    request: PeerRequest


@value_type
class ProbeLeader:
    """Try a plain TCP connect and report in ProbeCompleted if it was refused.

    See rule `early_suspicion`.
    """

    call: CallId
    to: Peer


@value_type
class SendReply:
    """Send a response. A Fetch response has a range of the log, which the shell reads now."""

    token: ReplyToken
    response: Response


@keyword_value_type
class PublishProgress:
    """Report a change to the state machine and the status.

    With `is_leader` the controller may become active once it has replayed everything below
    `epoch_start`; False with a newer epoch ends that.
    """

    role: str
    epoch: Epoch
    leader_id: NodeId | None
    is_leader: bool
    epoch_start: Offset | None
    high_watermark: Offset | None


@value_type
class ShutdownComplete:
    """The process may exit: leadership is transferred, or, if not `in_time`, time ran out."""

    in_time: bool = True


Effect: TypeAlias = (
    SaveElection
    | AppendToLog
    | TruncateLog
    | WriteSnapshotChunk
    | InstallSnapshot
    | CheckSnapshot
    | EndHealing
    | EndAbstention
    | SaveRival
    | SendRequest
    | ProbeLeader
    | SendReply
    | PublishProgress
    | ShutdownComplete
)


@value_type
class Update:
    """Effects, next wake-up and notes of one step."""

    effects: tuple[Effect, ...]
    wake_at_ms: Millis | None
    trace: tuple[TraceEvent, ...] = field(default=())


class Random(Protocol):
    """The only entropy of the core: jitter, uniform in [0, 1)."""

    def random(self) -> float: ...
