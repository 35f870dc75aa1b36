"""Requests of leaders and operators about ISRs and leaders of partitions, and the replies."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final

from quorate.controller.authorization.authorizer import Operation, Permission
from quorate.controller.request_types import WriteReply, WriteRequestOf
from quorate.records.errors import ErrorCode
from quorate.records.value_types import keyword_value_type, value_type

if TYPE_CHECKING:
    from quorate.records.ids import TopicId

ANY_BROKER_EPOCH: Final = -1
# Limit per request, for all topics together: the reply is made in one event-loop iteration.
PARTITIONS_MAX: Final = 4_000


@value_type
class IsrMember:
    """A replica in sync, and its broker epoch as known by the leader; -1 for any."""

    broker_id: int
    broker_epoch: int = ANY_BROKER_EPOCH


@value_type
class PartitionAlteration:
    """The ISR that the leader of a partition requests, and the epochs that it knows."""

    partition_index: int
    leader_epoch: int
    partition_epoch: int
    new_isr: tuple[IsrMember, ...]
    leader_recovery_state: int = 0


@value_type
class TopicAlteration:
    topic_id: TopicId
    partitions: tuple[PartitionAlteration, ...]


@keyword_value_type
class AlterPartition(WriteRequestOf["AlterPartitionReply"]):
    """A broker changes the ISRs of partitions that it leads (KIP-497, KIP-903)."""

    broker_id: int
    broker_epoch: int
    topics: tuple[TopicAlteration, ...]
    permission: ClassVar = Permission(Operation.CLUSTER_ACTION)


@value_type
class AlteredPartition:
    """A partition after the change; with an error all other fields are zero or empty."""

    partition_index: int
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    leader_id: int = 0
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


@value_type
class AlteredTopic:
    topic_id: TopicId
    partitions: tuple[AlteredPartition, ...]


@value_type
class AlterPartitionReply(WriteReply):
    """Each partition has an error of its own; `topics` is empty if the request has an error."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    topics: tuple[AlteredTopic, ...] = ()


class ElectionType(IntEnum):
    """The leader to elect: the first replica, or any replica if none is in sync (UNCLEAN)."""

    PREFERRED = 0
    UNCLEAN = 1


@value_type
class LeaderElection:
    """A partition whose leader is to be elected."""

    topic: str
    partition: int


@value_type
class ElectLeaders(WriteRequestOf["ElectLeadersReply"]):
    """Elect leaders of these partitions, or with `every_partition` of all that can change."""

    election_type: ElectionType
    partitions: tuple[LeaderElection, ...] = ()
    every_partition: bool = False
    permission: ClassVar = Permission(Operation.ALTER)


@value_type
class ElectedLeader:
    """The result for one partition; `leader_id` leads it now, -1 if no broker does."""

    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    leader_id: int = -1


@value_type
class ElectLeadersReply(WriteReply):
    """Results of the partitions; unchanged ones are omitted if all were requested."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    partitions: tuple[ElectedLeader, ...] = ()


ITEMS_MAX: Final = {
    ("AlterPartition", "topics"): PARTITIONS_MAX,
    ("TopicAlteration", "partitions"): PARTITIONS_MAX,
    ("PartitionAlteration", "new_isr"): 100,
    ("ElectLeaders", "partitions"): PARTITIONS_MAX,
}
