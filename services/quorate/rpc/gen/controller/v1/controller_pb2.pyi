from quorate.rpc.gen.controller.v1 import replication_pb2 as _replication_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union
from quorate.rpc.gen.controller.v1.replication_pb2 import AlterPartition as AlterPartition
from quorate.rpc.gen.controller.v1.replication_pb2 import TopicAlteration as TopicAlteration
from quorate.rpc.gen.controller.v1.replication_pb2 import PartitionAlteration as PartitionAlteration
from quorate.rpc.gen.controller.v1.replication_pb2 import IsrMember as IsrMember
from quorate.rpc.gen.controller.v1.replication_pb2 import AlterPartitionReply as AlterPartitionReply
from quorate.rpc.gen.controller.v1.replication_pb2 import AlteredTopic as AlteredTopic
from quorate.rpc.gen.controller.v1.replication_pb2 import AlteredPartition as AlteredPartition
from quorate.rpc.gen.controller.v1.replication_pb2 import ElectLeaders as ElectLeaders
from quorate.rpc.gen.controller.v1.replication_pb2 import LeaderElection as LeaderElection
from quorate.rpc.gen.controller.v1.replication_pb2 import ElectLeadersReply as ElectLeadersReply
from quorate.rpc.gen.controller.v1.replication_pb2 import ElectedLeader as ElectedLeader

DESCRIPTOR: _descriptor.FileDescriptor

class WriteRequest(_message.Message):
    __slots__ = ("sequence", "create_topics", "delete_topics", "incremental_alter_configs", "register_broker", "broker_heartbeat", "unregister_broker", "alter_client_quotas", "alter_partition", "elect_leaders")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DELETE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    INCREMENTAL_ALTER_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    REGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    BROKER_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    UNREGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    ALTER_CLIENT_QUOTAS_FIELD_NUMBER: _ClassVar[int]
    ALTER_PARTITION_FIELD_NUMBER: _ClassVar[int]
    ELECT_LEADERS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    create_topics: CreateTopics
    delete_topics: DeleteTopics
    incremental_alter_configs: IncrementalAlterConfigs
    register_broker: RegisterBroker
    broker_heartbeat: BrokerHeartbeat
    unregister_broker: UnregisterBroker
    alter_client_quotas: AlterClientQuotas
    alter_partition: _replication_pb2.AlterPartition
    elect_leaders: _replication_pb2.ElectLeaders
    def __init__(self, sequence: _Optional[int] = ..., create_topics: _Optional[_Union[CreateTopics, _Mapping]] = ..., delete_topics: _Optional[_Union[DeleteTopics, _Mapping]] = ..., incremental_alter_configs: _Optional[_Union[IncrementalAlterConfigs, _Mapping]] = ..., register_broker: _Optional[_Union[RegisterBroker, _Mapping]] = ..., broker_heartbeat: _Optional[_Union[BrokerHeartbeat, _Mapping]] = ..., unregister_broker: _Optional[_Union[UnregisterBroker, _Mapping]] = ..., alter_client_quotas: _Optional[_Union[AlterClientQuotas, _Mapping]] = ..., alter_partition: _Optional[_Union[_replication_pb2.AlterPartition, _Mapping]] = ..., elect_leaders: _Optional[_Union[_replication_pb2.ElectLeaders, _Mapping]] = ...) -> None: ...

class WriteResponse(_message.Message):
    __slots__ = ("first_sequence", "last_sequence", "results")
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    first_sequence: int
    last_sequence: int
    results: _containers.RepeatedCompositeFieldContainer[WriteResult]
    def __init__(self, first_sequence: _Optional[int] = ..., last_sequence: _Optional[int] = ..., results: _Optional[_Iterable[_Union[WriteResult, _Mapping]]] = ...) -> None: ...

class WriteResult(_message.Message):
    __slots__ = ("error", "message", "outcome_unknown", "leader", "create_topics", "delete_topics", "incremental_alter_configs", "register_broker", "broker_heartbeat", "unregister_broker", "alter_client_quotas", "alter_partition", "elect_leaders")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    CREATE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DELETE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    INCREMENTAL_ALTER_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    REGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    BROKER_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    UNREGISTER_BROKER_FIELD_NUMBER: _ClassVar[int]
    ALTER_CLIENT_QUOTAS_FIELD_NUMBER: _ClassVar[int]
    ALTER_PARTITION_FIELD_NUMBER: _ClassVar[int]
    ELECT_LEADERS_FIELD_NUMBER: _ClassVar[int]
    error: int
    message: str
    outcome_unknown: bool
    leader: Leader
    create_topics: CreateTopicsReply
    delete_topics: DeleteTopicsReply
    incremental_alter_configs: IncrementalAlterConfigsReply
    register_broker: RegisterBrokerReply
    broker_heartbeat: BrokerHeartbeatReply
    unregister_broker: UnregisterBrokerReply
    alter_client_quotas: AlterClientQuotasReply
    alter_partition: _replication_pb2.AlterPartitionReply
    elect_leaders: _replication_pb2.ElectLeadersReply
    def __init__(self, error: _Optional[int] = ..., message: _Optional[str] = ..., outcome_unknown: _Optional[bool] = ..., leader: _Optional[_Union[Leader, _Mapping]] = ..., create_topics: _Optional[_Union[CreateTopicsReply, _Mapping]] = ..., delete_topics: _Optional[_Union[DeleteTopicsReply, _Mapping]] = ..., incremental_alter_configs: _Optional[_Union[IncrementalAlterConfigsReply, _Mapping]] = ..., register_broker: _Optional[_Union[RegisterBrokerReply, _Mapping]] = ..., broker_heartbeat: _Optional[_Union[BrokerHeartbeatReply, _Mapping]] = ..., unregister_broker: _Optional[_Union[UnregisterBrokerReply, _Mapping]] = ..., alter_client_quotas: _Optional[_Union[AlterClientQuotasReply, _Mapping]] = ..., alter_partition: _Optional[_Union[_replication_pb2.AlterPartitionReply, _Mapping]] = ..., elect_leaders: _Optional[_Union[_replication_pb2.ElectLeadersReply, _Mapping]] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("min_offset", "current", "timeout_ms", "even_if_behind", "list_topics", "describe_topics", "describe_configs", "list_brokers", "describe_client_quotas")
    MIN_OFFSET_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    EVEN_IF_BEHIND_FIELD_NUMBER: _ClassVar[int]
    LIST_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    LIST_BROKERS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CLIENT_QUOTAS_FIELD_NUMBER: _ClassVar[int]
    min_offset: int
    current: bool
    timeout_ms: int
    even_if_behind: bool
    list_topics: ListTopics
    describe_topics: DescribeTopics
    describe_configs: DescribeConfigs
    list_brokers: ListBrokers
    describe_client_quotas: DescribeClientQuotas
    def __init__(self, min_offset: _Optional[int] = ..., current: _Optional[bool] = ..., timeout_ms: _Optional[int] = ..., even_if_behind: _Optional[bool] = ..., list_topics: _Optional[_Union[ListTopics, _Mapping]] = ..., describe_topics: _Optional[_Union[DescribeTopics, _Mapping]] = ..., describe_configs: _Optional[_Union[DescribeConfigs, _Mapping]] = ..., list_brokers: _Optional[_Union[ListBrokers, _Mapping]] = ..., describe_client_quotas: _Optional[_Union[DescribeClientQuotas, _Mapping]] = ...) -> None: ...

class ReadResponse(_message.Message):
    __slots__ = ("error", "message", "leader", "list_topics", "describe_topics", "describe_configs", "list_brokers", "describe_client_quotas")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LIST_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_TOPICS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    LIST_BROKERS_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_CLIENT_QUOTAS_FIELD_NUMBER: _ClassVar[int]
    error: int
    message: str
    leader: Leader
    list_topics: ListTopicsReply
    describe_topics: DescribeTopicsReply
    describe_configs: DescribeConfigsReply
    list_brokers: ListBrokersReply
    describe_client_quotas: DescribeClientQuotasReply
    def __init__(self, error: _Optional[int] = ..., message: _Optional[str] = ..., leader: _Optional[_Union[Leader, _Mapping]] = ..., list_topics: _Optional[_Union[ListTopicsReply, _Mapping]] = ..., describe_topics: _Optional[_Union[DescribeTopicsReply, _Mapping]] = ..., describe_configs: _Optional[_Union[DescribeConfigsReply, _Mapping]] = ..., list_brokers: _Optional[_Union[ListBrokersReply, _Mapping]] = ..., describe_client_quotas: _Optional[_Union[DescribeClientQuotasReply, _Mapping]] = ...) -> None: ...

class ReadOptions(_message.Message):
    __slots__ = ("min_offset", "current", "even_if_behind")
    MIN_OFFSET_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    EVEN_IF_BEHIND_FIELD_NUMBER: _ClassVar[int]
    min_offset: int
    current: bool
    even_if_behind: bool
    def __init__(self, min_offset: _Optional[int] = ..., current: _Optional[bool] = ..., even_if_behind: _Optional[bool] = ...) -> None: ...

class Leader(_message.Message):
    __slots__ = ("id", "epoch", "host", "port")
    ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    id: int
    epoch: int
    host: str
    port: int
    def __init__(self, id: _Optional[int] = ..., epoch: _Optional[int] = ..., host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class NameValue(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Replicas(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ...) -> None: ...

class ConfigResource(_message.Message):
    __slots__ = ("type", "name")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    type: int
    name: str
    def __init__(self, type: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class CreateTopics(_message.Message):
    __slots__ = ("topics", "validate_only")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[NewTopic]
    validate_only: bool
    def __init__(self, topics: _Optional[_Iterable[_Union[NewTopic, _Mapping]]] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class NewTopic(_message.Message):
    __slots__ = ("name", "partitions", "replication_factor", "assignments", "configs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    partitions: int
    replication_factor: int
    assignments: _containers.RepeatedCompositeFieldContainer[Replicas]
    configs: _containers.RepeatedCompositeFieldContainer[NameValue]
    def __init__(self, name: _Optional[str] = ..., partitions: _Optional[int] = ..., replication_factor: _Optional[int] = ..., assignments: _Optional[_Iterable[_Union[Replicas, _Mapping]]] = ..., configs: _Optional[_Iterable[_Union[NameValue, _Mapping]]] = ...) -> None: ...

class CreateTopicsReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[CreatedTopic]
    def __init__(self, topics: _Optional[_Iterable[_Union[CreatedTopic, _Mapping]]] = ...) -> None: ...

class CreatedTopic(_message.Message):
    __slots__ = ("name", "error", "message", "topic_id", "partitions", "replication_factor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FACTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    error: int
    message: str
    topic_id: bytes
    partitions: int
    replication_factor: int
    def __init__(self, name: _Optional[str] = ..., error: _Optional[int] = ..., message: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., partitions: _Optional[int] = ..., replication_factor: _Optional[int] = ...) -> None: ...

class DeleteTopics(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class DeleteTopicsReply(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[DeletedTopic]
    def __init__(self, topics: _Optional[_Iterable[_Union[DeletedTopic, _Mapping]]] = ...) -> None: ...

class DeletedTopic(_message.Message):
    __slots__ = ("name", "error", "message", "topic_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    error: int
    message: str
    topic_id: bytes
    def __init__(self, name: _Optional[str] = ..., error: _Optional[int] = ..., message: _Optional[str] = ..., topic_id: _Optional[bytes] = ...) -> None: ...

class Cursor(_message.Message):
    __slots__ = ("topic_name", "partition_index")
    TOPIC_NAME_FIELD_NUMBER: _ClassVar[int]
    PARTITION_INDEX_FIELD_NUMBER: _ClassVar[int]
    topic_name: str
    partition_index: int
    def __init__(self, topic_name: _Optional[str] = ..., partition_index: _Optional[int] = ...) -> None: ...

class ListTopics(_message.Message):
    __slots__ = ("cursor", "response_topic_limit", "options")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_TOPIC_LIMIT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    cursor: Cursor
    response_topic_limit: int
    options: ReadOptions
    def __init__(self, cursor: _Optional[_Union[Cursor, _Mapping]] = ..., response_topic_limit: _Optional[int] = ..., options: _Optional[_Union[ReadOptions, _Mapping]] = ...) -> None: ...

class ListTopicsReply(_message.Message):
    __slots__ = ("offset", "topics", "next_cursor")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    offset: int
    topics: _containers.RepeatedCompositeFieldContainer[ListedTopic]
    next_cursor: Cursor
    def __init__(self, offset: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[ListedTopic, _Mapping]]] = ..., next_cursor: _Optional[_Union[Cursor, _Mapping]] = ...) -> None: ...

class ListedTopic(_message.Message):
    __slots__ = ("name", "topic_id", "partitions")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    topic_id: bytes
    partitions: int
    def __init__(self, name: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., partitions: _Optional[int] = ...) -> None: ...

class DescribeTopics(_message.Message):
    __slots__ = ("names", "cursor", "response_partition_limit", "options")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_PARTITION_LIMIT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    cursor: Cursor
    response_partition_limit: int
    options: ReadOptions
    def __init__(self, names: _Optional[_Iterable[str]] = ..., cursor: _Optional[_Union[Cursor, _Mapping]] = ..., response_partition_limit: _Optional[int] = ..., options: _Optional[_Union[ReadOptions, _Mapping]] = ...) -> None: ...

class DescribeTopicsReply(_message.Message):
    __slots__ = ("offset", "topics", "next_cursor")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    offset: int
    topics: _containers.RepeatedCompositeFieldContainer[DescribedTopic]
    next_cursor: Cursor
    def __init__(self, offset: _Optional[int] = ..., topics: _Optional[_Iterable[_Union[DescribedTopic, _Mapping]]] = ..., next_cursor: _Optional[_Union[Cursor, _Mapping]] = ...) -> None: ...

class DescribedTopic(_message.Message):
    __slots__ = ("name", "error", "message", "topic_id", "partitions", "configs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    error: int
    message: str
    topic_id: bytes
    partitions: _containers.RepeatedCompositeFieldContainer[DescribedPartition]
    configs: _containers.RepeatedCompositeFieldContainer[NameValue]
    def __init__(self, name: _Optional[str] = ..., error: _Optional[int] = ..., message: _Optional[str] = ..., topic_id: _Optional[bytes] = ..., partitions: _Optional[_Iterable[_Union[DescribedPartition, _Mapping]]] = ..., configs: _Optional[_Iterable[_Union[NameValue, _Mapping]]] = ...) -> None: ...

class DescribedPartition(_message.Message):
    __slots__ = ("partition", "leader", "leader_epoch", "partition_epoch", "replicas", "isr", "eligible_leader_replicas", "last_known_elr")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_LEADER_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LAST_KNOWN_ELR_FIELD_NUMBER: _ClassVar[int]
    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    isr: _containers.RepeatedScalarFieldContainer[int]
    eligible_leader_replicas: _containers.RepeatedScalarFieldContainer[int]
    last_known_elr: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[int] = ..., leader: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., isr: _Optional[_Iterable[int]] = ..., eligible_leader_replicas: _Optional[_Iterable[int]] = ..., last_known_elr: _Optional[_Iterable[int]] = ...) -> None: ...

class IncrementalAlterConfigs(_message.Message):
    __slots__ = ("alterations", "validate_only")
    ALTERATIONS_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    alterations: _containers.RepeatedCompositeFieldContainer[ConfigAlteration]
    validate_only: bool
    def __init__(self, alterations: _Optional[_Iterable[_Union[ConfigAlteration, _Mapping]]] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class ConfigAlteration(_message.Message):
    __slots__ = ("resource", "changes")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    resource: ConfigResource
    changes: _containers.RepeatedCompositeFieldContainer[ConfigChange]
    def __init__(self, resource: _Optional[_Union[ConfigResource, _Mapping]] = ..., changes: _Optional[_Iterable[_Union[ConfigChange, _Mapping]]] = ...) -> None: ...

class ConfigChange(_message.Message):
    __slots__ = ("name", "operation", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    operation: int
    value: str
    def __init__(self, name: _Optional[str] = ..., operation: _Optional[int] = ..., value: _Optional[str] = ...) -> None: ...

class IncrementalAlterConfigsReply(_message.Message):
    __slots__ = ("resources",)
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[AlteredResource]
    def __init__(self, resources: _Optional[_Iterable[_Union[AlteredResource, _Mapping]]] = ...) -> None: ...

class AlteredResource(_message.Message):
    __slots__ = ("resource", "error", "message")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    resource: ConfigResource
    error: int
    message: str
    def __init__(self, resource: _Optional[_Union[ConfigResource, _Mapping]] = ..., error: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class DescribeConfigs(_message.Message):
    __slots__ = ("resources", "include_defaults", "options")
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[ConfigResource]
    include_defaults: bool
    options: ReadOptions
    def __init__(self, resources: _Optional[_Iterable[_Union[ConfigResource, _Mapping]]] = ..., include_defaults: _Optional[bool] = ..., options: _Optional[_Union[ReadOptions, _Mapping]] = ...) -> None: ...

class DescribeConfigsReply(_message.Message):
    __slots__ = ("offset", "resources")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    offset: int
    resources: _containers.RepeatedCompositeFieldContainer[DescribedResource]
    def __init__(self, offset: _Optional[int] = ..., resources: _Optional[_Iterable[_Union[DescribedResource, _Mapping]]] = ...) -> None: ...

class DescribedResource(_message.Message):
    __slots__ = ("resource", "error", "message", "entries")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    resource: ConfigResource
    error: int
    message: str
    entries: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    def __init__(self, resource: _Optional[_Union[ConfigResource, _Mapping]] = ..., error: _Optional[int] = ..., message: _Optional[str] = ..., entries: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ("name", "value", "source", "is_sensitive")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    IS_SENSITIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    source: int
    is_sensitive: bool
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., source: _Optional[int] = ..., is_sensitive: _Optional[bool] = ...) -> None: ...

class EntityPart(_message.Message):
    __slots__ = ("entity_type", "entity_name")
    ENTITY_TYPE_FIELD_NUMBER: _ClassVar[int]
    ENTITY_NAME_FIELD_NUMBER: _ClassVar[int]
    entity_type: str
    entity_name: str
    def __init__(self, entity_type: _Optional[str] = ..., entity_name: _Optional[str] = ...) -> None: ...

class AlterClientQuotas(_message.Message):
    __slots__ = ("entries", "validate_only")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[QuotaAlteration]
    validate_only: bool
    def __init__(self, entries: _Optional[_Iterable[_Union[QuotaAlteration, _Mapping]]] = ..., validate_only: _Optional[bool] = ...) -> None: ...

class QuotaAlteration(_message.Message):
    __slots__ = ("entity", "ops")
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    OPS_FIELD_NUMBER: _ClassVar[int]
    entity: _containers.RepeatedCompositeFieldContainer[EntityPart]
    ops: _containers.RepeatedCompositeFieldContainer[QuotaOp]
    def __init__(self, entity: _Optional[_Iterable[_Union[EntityPart, _Mapping]]] = ..., ops: _Optional[_Iterable[_Union[QuotaOp, _Mapping]]] = ...) -> None: ...

class QuotaOp(_message.Message):
    __slots__ = ("key", "value", "remove")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: float
    remove: bool
    def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ..., remove: _Optional[bool] = ...) -> None: ...

class AlterClientQuotasReply(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AlteredEntity]
    def __init__(self, entries: _Optional[_Iterable[_Union[AlteredEntity, _Mapping]]] = ...) -> None: ...

class AlteredEntity(_message.Message):
    __slots__ = ("entity", "error", "message")
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    entity: _containers.RepeatedCompositeFieldContainer[EntityPart]
    error: int
    message: str
    def __init__(self, entity: _Optional[_Iterable[_Union[EntityPart, _Mapping]]] = ..., error: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class DescribeClientQuotas(_message.Message):
    __slots__ = ("components", "strict", "cursor", "response_entry_limit", "options")
    COMPONENTS_FIELD_NUMBER: _ClassVar[int]
    STRICT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ENTRY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    components: _containers.RepeatedCompositeFieldContainer[QuotaComponent]
    strict: bool
    cursor: QuotaCursor
    response_entry_limit: int
    options: ReadOptions
    def __init__(self, components: _Optional[_Iterable[_Union[QuotaComponent, _Mapping]]] = ..., strict: _Optional[bool] = ..., cursor: _Optional[_Union[QuotaCursor, _Mapping]] = ..., response_entry_limit: _Optional[int] = ..., options: _Optional[_Union[ReadOptions, _Mapping]] = ...) -> None: ...

class QuotaComponent(_message.Message):
    __slots__ = ("entity_type", "match_type", "match")
    ENTITY_TYPE_FIELD_NUMBER: _ClassVar[int]
    MATCH_TYPE_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    entity_type: str
    match_type: int
    match: str
    def __init__(self, entity_type: _Optional[str] = ..., match_type: _Optional[int] = ..., match: _Optional[str] = ...) -> None: ...

class QuotaCursor(_message.Message):
    __slots__ = ("entity",)
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    entity: _containers.RepeatedCompositeFieldContainer[EntityPart]
    def __init__(self, entity: _Optional[_Iterable[_Union[EntityPart, _Mapping]]] = ...) -> None: ...

class DescribeClientQuotasReply(_message.Message):
    __slots__ = ("offset", "entries", "next_cursor")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    offset: int
    entries: _containers.RepeatedCompositeFieldContainer[DescribedEntity]
    next_cursor: QuotaCursor
    def __init__(self, offset: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[DescribedEntity, _Mapping]]] = ..., next_cursor: _Optional[_Union[QuotaCursor, _Mapping]] = ...) -> None: ...

class DescribedEntity(_message.Message):
    __slots__ = ("entity", "values")
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    entity: _containers.RepeatedCompositeFieldContainer[EntityPart]
    values: _containers.RepeatedCompositeFieldContainer[QuotaValue]
    def __init__(self, entity: _Optional[_Iterable[_Union[EntityPart, _Mapping]]] = ..., values: _Optional[_Iterable[_Union[QuotaValue, _Mapping]]] = ...) -> None: ...

class QuotaValue(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: float
    def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class RegisterBroker(_message.Message):
    __slots__ = ("broker_id", "incarnation_id", "cluster_id", "listeners", "features", "rack", "log_dirs")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    incarnation_id: bytes
    cluster_id: str
    listeners: _containers.RepeatedCompositeFieldContainer[Listener]
    features: _containers.RepeatedCompositeFieldContainer[FeatureRange]
    rack: str
    log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, broker_id: _Optional[int] = ..., incarnation_id: _Optional[bytes] = ..., cluster_id: _Optional[str] = ..., listeners: _Optional[_Iterable[_Union[Listener, _Mapping]]] = ..., features: _Optional[_Iterable[_Union[FeatureRange, _Mapping]]] = ..., rack: _Optional[str] = ..., log_dirs: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Listener(_message.Message):
    __slots__ = ("name", "host", "port", "security_protocol")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    SECURITY_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    name: str
    host: str
    port: int
    security_protocol: int
    def __init__(self, name: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., security_protocol: _Optional[int] = ...) -> None: ...

class FeatureRange(_message.Message):
    __slots__ = ("name", "min_level", "max_level")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIN_LEVEL_FIELD_NUMBER: _ClassVar[int]
    MAX_LEVEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    min_level: int
    max_level: int
    def __init__(self, name: _Optional[str] = ..., min_level: _Optional[int] = ..., max_level: _Optional[int] = ...) -> None: ...

class RegisterBrokerReply(_message.Message):
    __slots__ = ("error", "message", "broker_epoch")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    error: int
    message: str
    broker_epoch: int
    def __init__(self, error: _Optional[int] = ..., message: _Optional[str] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class BrokerHeartbeat(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "current_metadata_offset", "want_fence", "want_shut_down")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CURRENT_METADATA_OFFSET_FIELD_NUMBER: _ClassVar[int]
    WANT_FENCE_FIELD_NUMBER: _ClassVar[int]
    WANT_SHUT_DOWN_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., current_metadata_offset: _Optional[int] = ..., want_fence: _Optional[bool] = ..., want_shut_down: _Optional[bool] = ...) -> None: ...

class BrokerHeartbeatReply(_message.Message):
    __slots__ = ("error", "message", "is_caught_up", "is_fenced", "should_shut_down")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    IS_CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    IS_FENCED_FIELD_NUMBER: _ClassVar[int]
    SHOULD_SHUT_DOWN_FIELD_NUMBER: _ClassVar[int]
    error: int
    message: str
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    def __init__(self, error: _Optional[int] = ..., message: _Optional[str] = ..., is_caught_up: _Optional[bool] = ..., is_fenced: _Optional[bool] = ..., should_shut_down: _Optional[bool] = ...) -> None: ...

class ListBrokers(_message.Message):
    __slots__ = ("options",)
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    options: ReadOptions
    def __init__(self, options: _Optional[_Union[ReadOptions, _Mapping]] = ...) -> None: ...

class ListBrokersReply(_message.Message):
    __slots__ = ("offset", "brokers")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    brokers: _containers.RepeatedCompositeFieldContainer[ListedBroker]
    def __init__(self, offset: _Optional[int] = ..., brokers: _Optional[_Iterable[_Union[ListedBroker, _Mapping]]] = ...) -> None: ...

class ListedBroker(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "incarnation_id", "listeners", "rack", "is_fenced", "in_controlled_shutdown", "log_dirs")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    LISTENERS_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    IS_FENCED_FIELD_NUMBER: _ClassVar[int]
    IN_CONTROLLED_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    LOG_DIRS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    incarnation_id: bytes
    listeners: _containers.RepeatedCompositeFieldContainer[Listener]
    rack: str
    is_fenced: bool
    in_controlled_shutdown: bool
    log_dirs: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., incarnation_id: _Optional[bytes] = ..., listeners: _Optional[_Iterable[_Union[Listener, _Mapping]]] = ..., rack: _Optional[str] = ..., is_fenced: _Optional[bool] = ..., in_controlled_shutdown: _Optional[bool] = ..., log_dirs: _Optional[_Iterable[bytes]] = ...) -> None: ...

class UnregisterBroker(_message.Message):
    __slots__ = ("broker_id",)
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    def __init__(self, broker_id: _Optional[int] = ...) -> None: ...

class UnregisterBrokerReply(_message.Message):
    __slots__ = ("error", "message")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    error: int
    message: str
    def __init__(self, error: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...
