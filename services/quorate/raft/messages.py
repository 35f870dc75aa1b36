"""Raft RPC requests and responses as frozen dataclasses, with Kafka's field names.

The names are in snake_case. The topic and partition arrays of Kafka's messages are omitted, because
there is one partition. Sources: KIP-595, 630, 853, 996 as shipped in Kafka 4.x.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.records.ids import (
    UNKNOWN_OFFSET,
    ClusterId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
)
from quorate.records.value_types import keyword_value_type, value_type

if TYPE_CHECKING:
    from quorate.raft.identity.voter_set_mark import VotersMark
    from quorate.raft.last_message import Heard
    from quorate.records.control import ControlRecord
    from quorate.records.errors import ErrorCode
    from quorate.records.voters import Endpoint, Voter, VoterSet


@value_type
class LeaderInfo:
    """The leader as the sender knows it: id, epoch and endpoints."""

    leader_id: NodeId | None
    epoch: Epoch
    endpoints: tuple[Endpoint, ...] = ()


# The leader info of an error response to a request that was not examined.
NOTHING_KNOWN: Final = LeaderInfo(None, Epoch(0))


@keyword_value_type
class BatchInfo:
    """One record batch as the core sees it: its offsets, its epoch, its control records."""

    base_offset: Offset
    last_offset: Offset
    epoch: Epoch
    control: tuple[ControlRecord, ...] = ()


@value_type
class FetchedBatches:
    """Received record batches: verified by the shell, opaque to the core."""

    data: bytes
    batches: tuple[BatchInfo, ...]


@keyword_value_type
class LogRange:
    """Complete batches from `start`, below `end`, up to `bytes_max` (one batch at least)."""

    start: Offset
    end: Offset
    bytes_max: int


@keyword_value_type
class SnapshotRange:
    """Bytes of a snapshot file that the shell reads when it sends the response."""

    snapshot_id: OffsetAndEpoch
    position: int
    bytes_max: int


@keyword_value_type
class VoteRequest:
    """A nominee requests a vote, or with `pre_vote` a pre-vote (KIP-996)."""

    cluster_id: ClusterId
    voter: ReplicaKey
    replica: ReplicaKey
    replica_epoch: Epoch
    last: OffsetAndEpoch
    pre_vote: bool
    replica_endpoints: tuple[Endpoint, ...] = ()


class VoteRefusal(Enum):
    """Reasons for rejecting a vote or a pre-vote, for the analysis of an election."""

    LOG_BEHIND = "log_behind"
    ALREADY_VOTED = "already_voted"
    HAS_LEADER = "has_leader"
    STALE_EPOCH = "stale_epoch"
    INVALID_VOTER_KEY = "invalid_voter_key"
    INCONSISTENT_CLUSTER = "inconsistent_cluster"
    INVALID_REQUEST = "invalid_request"
    NOT_BELIEVED = "not_believed"
    RIVAL_GOES_FIRST = "rival_goes_first"
    PROMISED = "promised"
    HAD_ITS_TURN = "had_its_turn"
    ABSTAINS = "abstains"
    OWN_NODE_ID = "own_node_id"


@value_type
class VoteResponse:
    """`refusal` is the reason why the vote was rejected; no decision depends on it."""

    error: ErrorCode
    leader: LeaderInfo
    vote_granted: bool = False
    refusal: VoteRefusal | None = None


@value_type
class BeginQuorumEpochRequest:
    """The leader of an epoch announces its id and endpoints to a voter."""

    cluster_id: ClusterId
    voter: ReplicaKey
    leader_id: NodeId
    leader_epoch: Epoch
    leader_endpoints: tuple[Endpoint, ...]


@value_type
class BeginQuorumEpochResponse:
    error: ErrorCode
    leader: LeaderInfo


@value_type
class EndQuorumEpochRequest:
    """A leader resigns and names its preferred successors, in order."""

    cluster_id: ClusterId
    leader_id: NodeId
    leader_epoch: Epoch
    preferred_candidates: tuple[ReplicaKey, ...]
    leader_endpoints: tuple[Endpoint, ...] = ()


@value_type
class EndQuorumEpochResponse:
    error: ErrorCode
    leader: LeaderInfo


@keyword_value_type
class FetchRequest:
    """A replica fetches from its log end on, and so acknowledges what it has flushed.

    `read_round` echoes the newest round of this leader's Fetch responses; it proves to the leader
    that the request was sent after that response (reads, rule `linearizable_reads`). `incarnation`
    identifies the process (rule `one_process_per_voter`), 0 if unknown; `voters_at` identifies the
    quorum of the log (rule `sole_voter_conflict`).
    """

    cluster_id: ClusterId
    replica: ReplicaKey | None
    current_leader_epoch: Epoch
    fetch_offset: Offset
    last_fetched_epoch: Epoch
    max_wait_ms: Millis
    max_bytes: int
    high_watermark: Offset = UNKNOWN_OFFSET
    replica_endpoints: tuple[Endpoint, ...] = ()
    read_round: int = 0
    incarnation: int = 0
    voters_at: VotersMark | None = None


@keyword_value_type
class FetchResponse:
    """Records, a diverging epoch, a snapshot id, or an error with the leader to ask.

    `records` is a LogRange in a response to be sent, and FetchedBatches in a received one.
    `voters_known` identifies the quorum of the log before a replica truncates its own
    (rule `sole_voter_conflict`).
    """

    error: ErrorCode
    leader: LeaderInfo
    high_watermark: Offset = UNKNOWN_OFFSET
    log_start_offset: Offset = UNKNOWN_OFFSET
    diverging: OffsetAndEpoch | None = None
    snapshot_id: OffsetAndEpoch | None = None
    records: LogRange | FetchedBatches | None = None
    read_round: int = 0
    voters_known: tuple[VotersMark, ...] = ()

    def with_records(self, data: bytes) -> FetchResponse:
        """The same with the bytes of its range; faster than `replace`, for the hot path."""
        return FetchResponse(
            error=self.error,
            leader=self.leader,
            high_watermark=self.high_watermark,
            log_start_offset=self.log_start_offset,
            diverging=self.diverging,
            snapshot_id=self.snapshot_id,
            records=FetchedBatches(data, ()),
            read_round=self.read_round,
        )


@keyword_value_type
class FetchSnapshotRequest:
    cluster_id: ClusterId
    replica: ReplicaKey | None
    current_leader_epoch: Epoch
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int
    incarnation: int = 0


@keyword_value_type
class FetchSnapshotResponse:
    """A chunk of the snapshot file: a SnapshotRange to be sent, or received bytes."""

    error: ErrorCode
    leader: LeaderInfo
    snapshot_id: OffsetAndEpoch | None = None
    size_bytes: int = 0
    position: int = 0
    chunk: SnapshotRange | bytes = b""


@value_type
class ApiVersionsRequest:
    """A leader asks a future voter for its identity and versions."""


@keyword_value_type
class ApiVersionsResponse:
    """Identity of the replica that answers, and the kraft.versions that it supports."""

    error: ErrorCode
    cluster_id: ClusterId
    key: ReplicaKey
    kraft_version_min: int
    kraft_version_max: int


class Reason(Enum):
    """Reasons for rejecting a voter change, where Kafka's error codes are ambiguous."""

    NOT_LEADER = "NOT_LEADER"
    INCONSISTENT_CLUSTER_ID = "INCONSISTENT_CLUSTER_ID"
    INVALID_LISTENERS = "INVALID_LISTENERS"
    KRAFT_VERSION_TOO_OLD = "KRAFT_VERSION_TOO_OLD"
    PENDING_VOTER_CHANGE = "PENDING_VOTER_CHANGE"
    HIGH_WATERMARK_UNKNOWN = "HIGH_WATERMARK_UNKNOWN"
    DUPLICATE_VOTER = "DUPLICATE_VOTER"
    VOTER_NOT_FOUND = "VOTER_NOT_FOUND"
    VOTER_LAGGING = "VOTER_LAGGING"
    VOTER_UNREACHABLE = "VOTER_UNREACHABLE"
    VOTER_IS_SOMEBODY_ELSE = "VOTER_IS_SOMEBODY_ELSE"
    VOTER_UNSUPPORTED = "VOTER_UNSUPPORTED"
    VOTER_ALIVE = "VOTER_ALIVE"
    VOTER_DECOMMISSIONED = "VOTER_DECOMMISSIONED"
    NO_LIVE_MAJORITY = "NO_LIVE_MAJORITY"
    LAST_VOTER = "LAST_VOTER"
    NOT_COMMITTED_IN_TIME = "NOT_COMMITTED_IN_TIME"
    LEADERSHIP_LOST = "LEADERSHIP_LOST"
    STALE_EPOCH = "STALE_EPOCH"
    DIRECTORY_ID_UNKNOWN = "DIRECTORY_ID_UNKNOWN"
    INVALID_UPDATE_VERSION = "INVALID_UPDATE_VERSION"
    NO_HAND_OVER = "NO_HAND_OVER"
    VOTERS_AWAY = "VOTERS_AWAY"
    TOO_FEW_VOTERS = "TOO_FEW_VOTERS"


class ChangeKind(Enum):
    """Kinds of difference between a voter set and the one before."""

    ADD = "add"
    REMOVE = "remove"
    UPDATE = "update"


@value_type
class VoterChange:
    """A voter change that is in the log and not yet known to be committed."""

    kind: ChangeKind
    voter: Voter


@value_type
class DescribeQuorumRequest:
    """The leader answers with every replica, others with the leader that they know."""


@keyword_value_type
class ReplicaState:
    """The leader's view of one replica; times are the core's monotonic milliseconds.

    `obstacle` and `obstacle_text` give the reason why an observer may not be added now, if any.
    """

    key: ReplicaKey
    log_end_offset: Offset | None
    last_fetch_ms: Millis | None
    last_caught_up_ms: Millis | None
    endpoints: tuple[Endpoint, ...] = ()
    obstacle: Reason | None = None
    obstacle_text: str = ""


@keyword_value_type
class DescribeQuorumResponse:
    """The leader's view; other replicas return what they know.

    `last_leader` is the newest leader that this replica followed, `heard` the last contact of each
    peer, `decommissioned` those that must not auto-join (rule `decommissioned_voters`). `refused`
    are clones (rule `one_process_per_voter`).
    """

    error: ErrorCode
    leader: LeaderInfo
    high_watermark: Offset | None = None
    voters: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()
    now_ms: Millis = Millis(0)
    remarks: tuple[str, ...] = ()
    kraft_version: int = 0
    uncommitted_voter_change: VoterChange | None = None
    decommissioned: tuple[ReplicaKey, ...] = ()
    last_leader: LeaderInfo | None = None
    heard: tuple[Heard, ...] = ()
    refused: tuple[ReplicaState, ...] = ()


@keyword_value_type
class AddRaftVoterRequest:
    cluster_id: ClusterId
    voter: ReplicaKey
    listeners: tuple[Endpoint, ...]
    timeout_ms: Millis
    ack_when_committed: bool = True
    force: bool = False
    auto_join: bool = False


@keyword_value_type
class RemoveRaftVoterRequest:
    """A voter that is removed is decommissioned, unless its pod is scaled down.

    See rule `decommissioned_voters`.
    """

    cluster_id: ClusterId
    voter: ReplicaKey
    timeout_ms: Millis
    force: bool = False
    auto_join: bool = False
    scaled_away: bool = False

    @property
    def decommissions(self) -> bool:
        """True if the removed voter must not auto-join, which includes a replaced disk."""
        return self.auto_join or not self.scaled_away


@keyword_value_type
class UpdateRaftVoterRequest:
    cluster_id: ClusterId
    current_leader_epoch: Epoch
    voter: ReplicaKey
    listeners: tuple[Endpoint, ...]
    kraft_version_min: int
    kraft_version_max: int


@value_type
class UpdateFeaturesRequest:
    """Upgrades kraft.version; the controller handles every other feature."""

    kraft_version: int
    validate_only: bool


@value_type
class TransferLeadershipRequest:
    cluster_id: ClusterId
    voter: ReplicaKey  # that is to lead


@value_type
class TakeLeaveRequest:
    """A voter that remains one requests a permit to stop without loss of majority."""

    cluster_id: ClusterId
    voter: ReplicaKey


@value_type
class MembershipResponse:
    """The answer to the six requests above.

    `metadata` has the values of the message for programs: names in snake_case, values as text.
    """

    error: ErrorCode
    message: str
    leader: LeaderInfo
    reason: Reason | None = None
    metadata: tuple[tuple[str, str], ...] = ()


@keyword_value_type
class ProposalResponse:
    """Result of RecordsProposed: appended as base_offset..last_offset, or rejected."""

    error: ErrorCode
    leader: LeaderInfo
    base_offset: Offset | None = None
    last_offset: Offset | None = None


@value_type
class ReadResponse:
    """A linearizable read may be answered once everything below `offset` has been replayed."""

    error: ErrorCode
    leader: LeaderInfo
    offset: Offset | None = None


MembershipRequest: TypeAlias = (
    AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
    | UpdateFeaturesRequest
    | TransferLeadershipRequest
    | TakeLeaveRequest
)
PeerRequest: TypeAlias = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | ApiVersionsRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
)
Request: TypeAlias = PeerRequest | DescribeQuorumRequest | MembershipRequest
PeerResponse: TypeAlias = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | ApiVersionsResponse
    | MembershipResponse
)
Response: TypeAlias = PeerResponse | DescribeQuorumResponse | ProposalResponse | ReadResponse


@value_type
class ElectionState:
    """Content of quorum-state: epoch, leader if known, and the vote of this replica."""

    epoch: Epoch
    leader_id: NodeId | None = None
    voted: ReplicaKey | None = None


@value_type
class SnapshotInfo:
    """A snapshot file that can be served: its id (end offset and epoch) and its size."""

    snapshot_id: OffsetAndEpoch
    size_bytes: int


@value_type
class VotersAt:
    """The voter set that a control record at `offset` put in effect; -1: bootstrap checkpoint."""

    offset: Offset
    voters: VoterSet


@value_type
class KRaftVersionAt:
    offset: Offset
    kraft_version: int


@value_type
class EpochStart:
    """One entry of the epoch history: records from `start_offset` on belong to `epoch`."""

    epoch: Epoch
    start_offset: Offset
