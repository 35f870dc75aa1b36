"""Metadata records about topics and their partitions."""

from __future__ import annotations

from typing import Annotated

from quorate.records.codec.schema import Tagged, Wire, message
from quorate.records.ids import DirectoryId, TopicId


@message(api_key=2)
class TopicRecord:
    """A topic was created; PartitionRecords follow."""

    name: Annotated[str, Wire("string")]
    topic_id: Annotated[TopicId, Wire("uuid")]
    tagged: Tagged = ()


@message(api_key=9)
class RemoveTopicRecord:
    """A topic and all its partitions were removed."""

    topic_id: Annotated[TopicId, Wire("uuid")]
    tagged: Tagged = ()


@message(api_key=3, versions="0-2")
class PartitionRecord:
    """The complete state of one partition.

    `directories` has the replicas' log directories in the same order; the last two fields are for
    eligible leader replicas (KIP-966).
    """

    partition_id: Annotated[int, Wire("int32", default=-1)]
    topic_id: Annotated[TopicId, Wire("uuid")]
    replicas: Annotated[tuple[int, ...], Wire("[]int32")]
    isr: Annotated[tuple[int, ...], Wire("[]int32")]
    removing_replicas: Annotated[tuple[int, ...], Wire("[]int32")] = ()
    adding_replicas: Annotated[tuple[int, ...], Wire("[]int32")] = ()
    leader: Annotated[int, Wire("int32", default=-1)]
    leader_recovery_state: Annotated[int, Wire("int8", tag=0)] = 0
    leader_epoch: Annotated[int, Wire("int32", default=-1)]
    partition_epoch: Annotated[int, Wire("int32", default=-1)]
    directories: Annotated[tuple[DirectoryId, ...], Wire("[]uuid", "1+")] = ()
    eligible_leader_replicas: Annotated[
        tuple[int, ...] | None, Wire("[]int32", "2+", nullable="2+", tag=1)
    ] = None
    last_known_elr: Annotated[
        tuple[int, ...] | None, Wire("[]int32", "2+", nullable="2+", tag=2)
    ] = None
    tagged: Tagged = ()


@message(api_key=5, versions="0-2")
class PartitionChangeRecord:
    """A change of one partition; a field at its default did not change.

    Every change raises the partition epoch, and a change with a leader the leader epoch.
    """

    partition_id: Annotated[int, Wire("int32", default=-1)]
    topic_id: Annotated[TopicId, Wire("uuid")]
    isr: Annotated[tuple[int, ...] | None, Wire("[]int32", nullable="0+", tag=0)] = None
    leader: Annotated[int, Wire("int32", tag=1)] = -2
    replicas: Annotated[tuple[int, ...] | None, Wire("[]int32", nullable="0+", tag=2)] = None
    removing_replicas: Annotated[tuple[int, ...] | None, Wire("[]int32", nullable="0+", tag=3)] = (
        None
    )
    adding_replicas: Annotated[tuple[int, ...] | None, Wire("[]int32", nullable="0+", tag=4)] = None
    leader_recovery_state: Annotated[int, Wire("int8", tag=5)] = -1
    directories: Annotated[
        tuple[DirectoryId, ...] | None, Wire("[]uuid", "1+", nullable="1+", tag=8)
    ] = None
    eligible_leader_replicas: Annotated[
        tuple[int, ...] | None, Wire("[]int32", "2+", nullable="2+", tag=6)
    ] = None
    last_known_elr: Annotated[
        tuple[int, ...] | None, Wire("[]int32", "2+", nullable="2+", tag=7)
    ] = None
    tagged: Tagged = ()


@message(api_key=28)
class ClearElrRecord:
    """Clears the eligible leader replicas of a topic, or of all topics if empty (KIP-966)."""

    topic_name: Annotated[str, Wire("string")]
    tagged: Tagged = ()
