from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VoteRefusal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VOTE_REFUSAL_UNSPECIFIED: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_LOG_BEHIND: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_ALREADY_VOTED: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_HAS_LEADER: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_STALE_EPOCH: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_INVALID_VOTER_KEY: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_INCONSISTENT_CLUSTER: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_INVALID_REQUEST: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_NOT_BELIEVED: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_RIVAL_GOES_FIRST: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_PROMISED: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_HAD_ITS_TURN: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_ABSTAINS: _ClassVar[VoteRefusal]
    VOTE_REFUSAL_OWN_NODE_ID: _ClassVar[VoteRefusal]
VOTE_REFUSAL_UNSPECIFIED: VoteRefusal
VOTE_REFUSAL_LOG_BEHIND: VoteRefusal
VOTE_REFUSAL_ALREADY_VOTED: VoteRefusal
VOTE_REFUSAL_HAS_LEADER: VoteRefusal
VOTE_REFUSAL_STALE_EPOCH: VoteRefusal
VOTE_REFUSAL_INVALID_VOTER_KEY: VoteRefusal
VOTE_REFUSAL_INCONSISTENT_CLUSTER: VoteRefusal
VOTE_REFUSAL_INVALID_REQUEST: VoteRefusal
VOTE_REFUSAL_NOT_BELIEVED: VoteRefusal
VOTE_REFUSAL_RIVAL_GOES_FIRST: VoteRefusal
VOTE_REFUSAL_PROMISED: VoteRefusal
VOTE_REFUSAL_HAD_ITS_TURN: VoteRefusal
VOTE_REFUSAL_ABSTAINS: VoteRefusal
VOTE_REFUSAL_OWN_NODE_ID: VoteRefusal

class Endpoint(_message.Message):
    __slots__ = ("name", "host", "port")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    name: str
    host: str
    port: int
    def __init__(self, name: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class CurrentLeader(_message.Message):
    __slots__ = ("leader_id", "leader_epoch", "endpoints")
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    leader_id: int
    leader_epoch: int
    endpoints: _containers.RepeatedCompositeFieldContainer[Endpoint]
    def __init__(self, leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., endpoints: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ...) -> None: ...

class ReplicaKey(_message.Message):
    __slots__ = ("id", "directory_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    directory_id: bytes
    def __init__(self, id: _Optional[int] = ..., directory_id: _Optional[bytes] = ...) -> None: ...

class EpochEndOffset(_message.Message):
    __slots__ = ("epoch", "end_offset")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    end_offset: int
    def __init__(self, epoch: _Optional[int] = ..., end_offset: _Optional[int] = ...) -> None: ...

class VoteRequest(_message.Message):
    __slots__ = ("cluster_id", "voter_id", "voter_directory_id", "replica_id", "replica_directory_id", "replica_epoch", "last_offset_epoch", "last_offset", "pre_vote", "replica_endpoints")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_OFFSET_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    PRE_VOTE_FIELD_NUMBER: _ClassVar[int]
    REPLICA_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    voter_id: int
    voter_directory_id: bytes
    replica_id: int
    replica_directory_id: bytes
    replica_epoch: int
    last_offset_epoch: int
    last_offset: int
    pre_vote: bool
    replica_endpoints: _containers.RepeatedCompositeFieldContainer[Endpoint]
    def __init__(self, cluster_id: _Optional[str] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ..., replica_id: _Optional[int] = ..., replica_directory_id: _Optional[bytes] = ..., replica_epoch: _Optional[int] = ..., last_offset_epoch: _Optional[int] = ..., last_offset: _Optional[int] = ..., pre_vote: _Optional[bool] = ..., replica_endpoints: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ...) -> None: ...

class VoteResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "vote_granted", "refusal")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    VOTE_GRANTED_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    current_leader: CurrentLeader
    vote_granted: bool
    refusal: VoteRefusal
    def __init__(self, error_code: _Optional[int] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., vote_granted: _Optional[bool] = ..., refusal: _Optional[_Union[VoteRefusal, str]] = ...) -> None: ...

class BeginQuorumEpochRequest(_message.Message):
    __slots__ = ("cluster_id", "voter_id", "voter_directory_id", "leader_id", "leader_epoch", "leader_endpoints")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    voter_id: int
    voter_directory_id: bytes
    leader_id: int
    leader_epoch: int
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[Endpoint]
    def __init__(self, cluster_id: _Optional[str] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., leader_endpoints: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ...) -> None: ...

class BeginQuorumEpochResponse(_message.Message):
    __slots__ = ("error_code", "current_leader")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    current_leader: CurrentLeader
    def __init__(self, error_code: _Optional[int] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ...) -> None: ...

class EndQuorumEpochRequest(_message.Message):
    __slots__ = ("cluster_id", "leader_id", "leader_epoch", "preferred_candidates", "leader_endpoints")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    LEADER_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    leader_id: int
    leader_epoch: int
    preferred_candidates: _containers.RepeatedCompositeFieldContainer[ReplicaKey]
    leader_endpoints: _containers.RepeatedCompositeFieldContainer[Endpoint]
    def __init__(self, cluster_id: _Optional[str] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., preferred_candidates: _Optional[_Iterable[_Union[ReplicaKey, _Mapping]]] = ..., leader_endpoints: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ...) -> None: ...

class EndQuorumEpochResponse(_message.Message):
    __slots__ = ("error_code", "current_leader")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    current_leader: CurrentLeader
    def __init__(self, error_code: _Optional[int] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("cluster_id", "replica_id", "replica_directory_id", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "max_wait_ms", "max_bytes", "high_watermark", "replica_endpoints", "read_round", "incarnation", "voters_at")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FETCH_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_FETCHED_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    REPLICA_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    READ_ROUND_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    VOTERS_AT_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    replica_id: int
    replica_directory_id: bytes
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    max_wait_ms: int
    max_bytes: int
    high_watermark: int
    replica_endpoints: _containers.RepeatedCompositeFieldContainer[Endpoint]
    read_round: int
    incarnation: int
    voters_at: VotersMark
    def __init__(self, cluster_id: _Optional[str] = ..., replica_id: _Optional[int] = ..., replica_directory_id: _Optional[bytes] = ..., current_leader_epoch: _Optional[int] = ..., fetch_offset: _Optional[int] = ..., last_fetched_epoch: _Optional[int] = ..., max_wait_ms: _Optional[int] = ..., max_bytes: _Optional[int] = ..., high_watermark: _Optional[int] = ..., replica_endpoints: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ..., read_round: _Optional[int] = ..., incarnation: _Optional[int] = ..., voters_at: _Optional[_Union[VotersMark, _Mapping]] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "high_watermark", "log_start_offset", "diverging_epoch", "snapshot_id", "records", "read_round", "voters_known")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    DIVERGING_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    READ_ROUND_FIELD_NUMBER: _ClassVar[int]
    VOTERS_KNOWN_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    current_leader: CurrentLeader
    high_watermark: int
    log_start_offset: int
    diverging_epoch: EpochEndOffset
    snapshot_id: EpochEndOffset
    records: bytes
    read_round: int
    voters_known: _containers.RepeatedCompositeFieldContainer[VotersMark]
    def __init__(self, error_code: _Optional[int] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., high_watermark: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., diverging_epoch: _Optional[_Union[EpochEndOffset, _Mapping]] = ..., snapshot_id: _Optional[_Union[EpochEndOffset, _Mapping]] = ..., records: _Optional[bytes] = ..., read_round: _Optional[int] = ..., voters_known: _Optional[_Iterable[_Union[VotersMark, _Mapping]]] = ...) -> None: ...

class VotersMark(_message.Message):
    __slots__ = ("offset", "epoch", "checksum")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    offset: int
    epoch: int
    checksum: int
    def __init__(self, offset: _Optional[int] = ..., epoch: _Optional[int] = ..., checksum: _Optional[int] = ...) -> None: ...

class FetchSnapshotRequest(_message.Message):
    __slots__ = ("cluster_id", "replica_id", "replica_directory_id", "current_leader_epoch", "snapshot_id", "position", "max_bytes", "incarnation")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    replica_id: int
    replica_directory_id: bytes
    current_leader_epoch: int
    snapshot_id: EpochEndOffset
    position: int
    max_bytes: int
    incarnation: int
    def __init__(self, cluster_id: _Optional[str] = ..., replica_id: _Optional[int] = ..., replica_directory_id: _Optional[bytes] = ..., current_leader_epoch: _Optional[int] = ..., snapshot_id: _Optional[_Union[EpochEndOffset, _Mapping]] = ..., position: _Optional[int] = ..., max_bytes: _Optional[int] = ..., incarnation: _Optional[int] = ...) -> None: ...

class FetchSnapshotResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "snapshot_id", "size", "position", "unaligned_records")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    UNALIGNED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    current_leader: CurrentLeader
    snapshot_id: EpochEndOffset
    size: int
    position: int
    unaligned_records: bytes
    def __init__(self, error_code: _Optional[int] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., snapshot_id: _Optional[_Union[EpochEndOffset, _Mapping]] = ..., size: _Optional[int] = ..., position: _Optional[int] = ..., unaligned_records: _Optional[bytes] = ...) -> None: ...

class ApiVersionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ApiVersionsResponse(_message.Message):
    __slots__ = ("error_code", "cluster_id", "node", "software_version", "supported_features")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_VERSION_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_FEATURES_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    cluster_id: str
    node: ReplicaKey
    software_version: str
    supported_features: _containers.RepeatedCompositeFieldContainer[SupportedFeature]
    def __init__(self, error_code: _Optional[int] = ..., cluster_id: _Optional[str] = ..., node: _Optional[_Union[ReplicaKey, _Mapping]] = ..., software_version: _Optional[str] = ..., supported_features: _Optional[_Iterable[_Union[SupportedFeature, _Mapping]]] = ...) -> None: ...

class SupportedFeature(_message.Message):
    __slots__ = ("name", "min_version", "max_version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    min_version: int
    max_version: int
    def __init__(self, name: _Optional[str] = ..., min_version: _Optional[int] = ..., max_version: _Optional[int] = ...) -> None: ...

class DescribeQuorumRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeQuorumResponse(_message.Message):
    __slots__ = ("error_code", "current_leader", "high_watermark", "current_voters", "observers", "now_ms", "remarks", "kraft_version", "uncommitted_voter_change", "decommissioned", "last_leader", "heard", "refused")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    CURRENT_VOTERS_FIELD_NUMBER: _ClassVar[int]
    OBSERVERS_FIELD_NUMBER: _ClassVar[int]
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    REMARKS_FIELD_NUMBER: _ClassVar[int]
    KRAFT_VERSION_FIELD_NUMBER: _ClassVar[int]
    UNCOMMITTED_VOTER_CHANGE_FIELD_NUMBER: _ClassVar[int]
    DECOMMISSIONED_FIELD_NUMBER: _ClassVar[int]
    LAST_LEADER_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    current_leader: CurrentLeader
    high_watermark: int
    current_voters: _containers.RepeatedCompositeFieldContainer[ReplicaState]
    observers: _containers.RepeatedCompositeFieldContainer[ReplicaState]
    now_ms: int
    remarks: _containers.RepeatedScalarFieldContainer[str]
    kraft_version: int
    uncommitted_voter_change: VoterChange
    decommissioned: _containers.RepeatedCompositeFieldContainer[ReplicaKey]
    last_leader: CurrentLeader
    heard: _containers.RepeatedCompositeFieldContainer[Heard]
    refused: _containers.RepeatedCompositeFieldContainer[ReplicaState]
    def __init__(self, error_code: _Optional[int] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., high_watermark: _Optional[int] = ..., current_voters: _Optional[_Iterable[_Union[ReplicaState, _Mapping]]] = ..., observers: _Optional[_Iterable[_Union[ReplicaState, _Mapping]]] = ..., now_ms: _Optional[int] = ..., remarks: _Optional[_Iterable[str]] = ..., kraft_version: _Optional[int] = ..., uncommitted_voter_change: _Optional[_Union[VoterChange, _Mapping]] = ..., decommissioned: _Optional[_Iterable[_Union[ReplicaKey, _Mapping]]] = ..., last_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., heard: _Optional[_Iterable[_Union[Heard, _Mapping]]] = ..., refused: _Optional[_Iterable[_Union[ReplicaState, _Mapping]]] = ...) -> None: ...

class VoterChange(_message.Message):
    __slots__ = ("kind", "voter", "endpoints")
    KIND_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    voter: ReplicaKey
    endpoints: _containers.RepeatedCompositeFieldContainer[Endpoint]
    def __init__(self, kind: _Optional[str] = ..., voter: _Optional[_Union[ReplicaKey, _Mapping]] = ..., endpoints: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ...) -> None: ...

class Heard(_message.Message):
    __slots__ = ("replica_id", "last_heard_ms")
    REPLICA_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARD_MS_FIELD_NUMBER: _ClassVar[int]
    replica_id: int
    last_heard_ms: int
    def __init__(self, replica_id: _Optional[int] = ..., last_heard_ms: _Optional[int] = ...) -> None: ...

class ReplicaState(_message.Message):
    __slots__ = ("replica_id", "replica_directory_id", "log_end_offset", "last_fetch_ms", "last_caught_up_ms", "endpoints", "obstacle", "obstacle_text")
    REPLICA_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICA_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    LOG_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_FETCH_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_CAUGHT_UP_MS_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    OBSTACLE_FIELD_NUMBER: _ClassVar[int]
    OBSTACLE_TEXT_FIELD_NUMBER: _ClassVar[int]
    replica_id: int
    replica_directory_id: bytes
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    endpoints: _containers.RepeatedCompositeFieldContainer[Endpoint]
    obstacle: str
    obstacle_text: str
    def __init__(self, replica_id: _Optional[int] = ..., replica_directory_id: _Optional[bytes] = ..., log_end_offset: _Optional[int] = ..., last_fetch_ms: _Optional[int] = ..., last_caught_up_ms: _Optional[int] = ..., endpoints: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ..., obstacle: _Optional[str] = ..., obstacle_text: _Optional[str] = ...) -> None: ...

class AddRaftVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "listeners", "ack_when_committed", "force", "auto_join")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    ACK_WHEN_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    AUTO_JOIN_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    timeout_ms: int
    voter_id: int
    voter_directory_id: bytes
    listeners: _containers.RepeatedCompositeFieldContainer[Endpoint]
    ack_when_committed: bool
    force: bool
    auto_join: bool
    def __init__(self, cluster_id: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ..., listeners: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ..., ack_when_committed: _Optional[bool] = ..., force: _Optional[bool] = ..., auto_join: _Optional[bool] = ...) -> None: ...

class AddRaftVoterResponse(_message.Message):
    __slots__ = ("error_code", "error_message", "current_leader", "reason", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    error_message: str
    current_leader: CurrentLeader
    reason: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, error_code: _Optional[int] = ..., error_message: _Optional[str] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., reason: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class RemoveRaftVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "force", "auto_join", "scaled_away")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    AUTO_JOIN_FIELD_NUMBER: _ClassVar[int]
    SCALED_AWAY_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    timeout_ms: int
    voter_id: int
    voter_directory_id: bytes
    force: bool
    auto_join: bool
    scaled_away: bool
    def __init__(self, cluster_id: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ..., force: _Optional[bool] = ..., auto_join: _Optional[bool] = ..., scaled_away: _Optional[bool] = ...) -> None: ...

class RemoveRaftVoterResponse(_message.Message):
    __slots__ = ("error_code", "error_message", "current_leader", "reason", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    error_message: str
    current_leader: CurrentLeader
    reason: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, error_code: _Optional[int] = ..., error_message: _Optional[str] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., reason: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class UpdateRaftVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "current_leader_epoch", "voter_id", "voter_directory_id", "listeners", "k_raft_version_feature")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    K_RAFT_VERSION_FEATURE_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: bytes
    listeners: _containers.RepeatedCompositeFieldContainer[Endpoint]
    k_raft_version_feature: KRaftVersionFeature
    def __init__(self, cluster_id: _Optional[str] = ..., current_leader_epoch: _Optional[int] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ..., listeners: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ..., k_raft_version_feature: _Optional[_Union[KRaftVersionFeature, _Mapping]] = ...) -> None: ...

class KRaftVersionFeature(_message.Message):
    __slots__ = ("min_supported_version", "max_supported_version")
    MIN_SUPPORTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_SUPPORTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    min_supported_version: int
    max_supported_version: int
    def __init__(self, min_supported_version: _Optional[int] = ..., max_supported_version: _Optional[int] = ...) -> None: ...

class UpdateRaftVoterResponse(_message.Message):
    __slots__ = ("error_code", "error_message", "current_leader", "reason", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    error_message: str
    current_leader: CurrentLeader
    reason: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, error_code: _Optional[int] = ..., error_message: _Optional[str] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., reason: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class UpdateFeaturesRequest(_message.Message):
    __slots__ = ("feature_updates", "validate_only")
    FEATURE_UPDATES_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    feature_updates: _containers.RepeatedCompositeFieldContainer[FeatureUpdate]
    validate_only: bool
    def __init__(self, feature_updates: _Optional[_Iterable[_Union[FeatureUpdate, _Mapping]]] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class FeatureUpdate(_message.Message):
    __slots__ = ("feature", "max_version_level")
    FEATURE_FIELD_NUMBER: _ClassVar[int]
    MAX_VERSION_LEVEL_FIELD_NUMBER: _ClassVar[int]
    feature: str
    max_version_level: int
    def __init__(self, feature: _Optional[str] = ..., max_version_level: _Optional[int] = ...) -> None: ...

class UpdateFeaturesResponse(_message.Message):
    __slots__ = ("error_code", "error_message", "current_leader", "reason", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    error_message: str
    current_leader: CurrentLeader
    reason: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, error_code: _Optional[int] = ..., error_message: _Optional[str] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., reason: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class TransferLeadershipRequest(_message.Message):
    __slots__ = ("cluster_id", "voter_id", "voter_directory_id")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    voter_id: int
    voter_directory_id: bytes
    def __init__(self, cluster_id: _Optional[str] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ...) -> None: ...

class TransferLeadershipResponse(_message.Message):
    __slots__ = ("error_code", "error_message", "current_leader", "reason", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    error_message: str
    current_leader: CurrentLeader
    reason: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, error_code: _Optional[int] = ..., error_message: _Optional[str] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., reason: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class TakeLeaveRequest(_message.Message):
    __slots__ = ("cluster_id", "voter_id", "voter_directory_id")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    voter_id: int
    voter_directory_id: bytes
    def __init__(self, cluster_id: _Optional[str] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ...) -> None: ...

class TakeLeaveResponse(_message.Message):
    __slots__ = ("error_code", "error_message", "current_leader", "reason", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    error_message: str
    current_leader: CurrentLeader
    reason: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, error_code: _Optional[int] = ..., error_message: _Optional[str] = ..., current_leader: _Optional[_Union[CurrentLeader, _Mapping]] = ..., reason: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...
