from quorate.rpc.gen.raft.v1 import raft_pb2 as _raft_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AddRaftVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "listeners", "force")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    timeout_ms: int
    voter_id: int
    voter_directory_id: bytes
    listeners: _containers.RepeatedCompositeFieldContainer[_raft_pb2.Endpoint]
    force: bool
    def __init__(self, cluster_id: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ..., listeners: _Optional[_Iterable[_Union[_raft_pb2.Endpoint, _Mapping]]] = ..., force: _Optional[bool] = ...) -> None: ...

class AddRaftVoterResponse(_message.Message):
    __slots__ = ("voter", "current_leader")
    VOTER_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    voter: _raft_pb2.ReplicaKey
    current_leader: _raft_pb2.CurrentLeader
    def __init__(self, voter: _Optional[_Union[_raft_pb2.ReplicaKey, _Mapping]] = ..., current_leader: _Optional[_Union[_raft_pb2.CurrentLeader, _Mapping]] = ...) -> None: ...

class RemoveRaftVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "force")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    timeout_ms: int
    voter_id: int
    voter_directory_id: bytes
    force: bool
    def __init__(self, cluster_id: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ..., force: _Optional[bool] = ...) -> None: ...

class RemoveRaftVoterResponse(_message.Message):
    __slots__ = ("voter", "current_leader")
    VOTER_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    voter: _raft_pb2.ReplicaKey
    current_leader: _raft_pb2.CurrentLeader
    def __init__(self, voter: _Optional[_Union[_raft_pb2.ReplicaKey, _Mapping]] = ..., current_leader: _Optional[_Union[_raft_pb2.CurrentLeader, _Mapping]] = ...) -> None: ...

class UpdateRaftVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "listeners", "k_raft_version_feature", "current_leader_epoch")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    K_RAFT_VERSION_FEATURE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    timeout_ms: int
    voter_id: int
    voter_directory_id: bytes
    listeners: _containers.RepeatedCompositeFieldContainer[_raft_pb2.Endpoint]
    k_raft_version_feature: _raft_pb2.KRaftVersionFeature
    current_leader_epoch: int
    def __init__(self, cluster_id: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ..., listeners: _Optional[_Iterable[_Union[_raft_pb2.Endpoint, _Mapping]]] = ..., k_raft_version_feature: _Optional[_Union[_raft_pb2.KRaftVersionFeature, _Mapping]] = ..., current_leader_epoch: _Optional[int] = ...) -> None: ...

class UpdateRaftVoterResponse(_message.Message):
    __slots__ = ("voter", "current_leader")
    VOTER_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    voter: _raft_pb2.ReplicaKey
    current_leader: _raft_pb2.CurrentLeader
    def __init__(self, voter: _Optional[_Union[_raft_pb2.ReplicaKey, _Mapping]] = ..., current_leader: _Optional[_Union[_raft_pb2.CurrentLeader, _Mapping]] = ...) -> None: ...

class UpdateFeaturesRequest(_message.Message):
    __slots__ = ("timeout_ms", "feature_updates", "validate_only")
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    FEATURE_UPDATES_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    timeout_ms: int
    feature_updates: _containers.RepeatedCompositeFieldContainer[_raft_pb2.FeatureUpdate]
    validate_only: bool
    def __init__(self, timeout_ms: _Optional[int] = ..., feature_updates: _Optional[_Iterable[_Union[_raft_pb2.FeatureUpdate, _Mapping]]] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class UpdateFeaturesResponse(_message.Message):
    __slots__ = ("current_leader",)
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    current_leader: _raft_pb2.CurrentLeader
    def __init__(self, current_leader: _Optional[_Union[_raft_pb2.CurrentLeader, _Mapping]] = ...) -> None: ...

class TransferLeadershipRequest(_message.Message):
    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    VOTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    timeout_ms: int
    voter_id: int
    voter_directory_id: bytes
    def __init__(self, cluster_id: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., voter_id: _Optional[int] = ..., voter_directory_id: _Optional[bytes] = ...) -> None: ...

class TransferLeadershipResponse(_message.Message):
    __slots__ = ("current_leader",)
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    current_leader: _raft_pb2.CurrentLeader
    def __init__(self, current_leader: _Optional[_Union[_raft_pb2.CurrentLeader, _Mapping]] = ...) -> None: ...

class PrepareStopRequest(_message.Message):
    __slots__ = ("timeout_ms", "leave")
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    timeout_ms: int
    leave: bool
    def __init__(self, timeout_ms: _Optional[int] = ..., leave: _Optional[bool] = ...) -> None: ...

class PrepareStopResponse(_message.Message):
    __slots__ = ("handed_over", "removed", "is_voter", "current_leader", "has_leave", "without_leave")
    HANDED_OVER_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    IS_VOTER_FIELD_NUMBER: _ClassVar[int]
    CURRENT_LEADER_FIELD_NUMBER: _ClassVar[int]
    HAS_LEAVE_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_LEAVE_FIELD_NUMBER: _ClassVar[int]
    handed_over: bool
    removed: bool
    is_voter: bool
    current_leader: _raft_pb2.CurrentLeader
    has_leave: bool
    without_leave: str
    def __init__(self, handed_over: _Optional[bool] = ..., removed: _Optional[bool] = ..., is_voter: _Optional[bool] = ..., current_leader: _Optional[_Union[_raft_pb2.CurrentLeader, _Mapping]] = ..., has_leave: _Optional[bool] = ..., without_leave: _Optional[str] = ...) -> None: ...
