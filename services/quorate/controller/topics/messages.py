"""Requests and replies about topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from quorate.controller.authorization.authorizer import (
    CLUSTER,
    TOPICS,
    Operation,
    Permission,
    topic_resource,
)
from quorate.controller.request_types import (
    RECORDS_MAX,
    Pages,
    ReadRequestOf,
    WriteReply,
    WriteRequestOf,
)
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.records.ids import Offset, TopicId

USE_DEFAULT: Final = -1


@value_type
class NewTopic:
    """A topic to create.

    It has either counts, with -1 for the controller's default, or `assignments`: the replicas of
    partition 0, 1, ... with the preferred leader first.
    """

    name: str
    partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: tuple[tuple[int, ...], ...] = ()
    configs: tuple[tuple[str, str], ...] = ()


@value_type
class CreateTopics(WriteRequestOf["CreateTopicsReply"]):
    topics: tuple[NewTopic, ...]
    validate_only: bool = False
    permission: ClassVar = Permission(
        Operation.CREATE,
        (CLUSTER, TOPICS),
        items="topics",
        results="topics",
        of_item=lambda topic: topic_resource(topic.name),
        for_all=CLUSTER,
    )


@value_type
class DeleteTopics(WriteRequestOf["DeleteTopicsReply"]):
    names: tuple[str, ...]
    permission: ClassVar = Permission(
        Operation.DELETE,
        (CLUSTER, TOPICS),
        items="names",
        results="topics",
        of_item=topic_resource,
        for_all=CLUSTER,
    )


@value_type
class Cursor:
    """Start of a page: a topic, and a partition of it if that topic exists."""

    topic_name: str
    partition_index: int = 0


@value_type
class ListTopics(ReadRequestOf["ListTopicsReply"]):
    """All topics, in order of their names, in pages of that limit.

    Topics that the caller may not describe are omitted. A limit of 0 means a client without paging:
    it gets an error for a reply of several pages, so that it does not mistake the first page for
    all.
    """

    cursor: Cursor | None = None
    response_topic_limit: int = 0
    pages: ClassVar = Pages(limit="response_topic_limit", items="topics")
    permission: ClassVar = Permission(Operation.DESCRIBE, (TOPICS,))


@value_type
class DescribeTopics(ReadRequestOf["DescribeTopicsReply"]):
    """These topics, each once, in the requested order; all, by name, if `names` is empty.

    In the latter case, topics that the caller may not describe are omitted. Pages are as for
    ListTopics, but the limit is a number of partitions.
    """

    names: tuple[str, ...] = ()
    cursor: Cursor | None = None
    response_partition_limit: int = 0
    pages: ClassVar = Pages(limit="response_partition_limit", items="topics")
    permission: ClassVar = Permission(
        Operation.DESCRIBE, (TOPICS,), items="names", results="topics", of_item=topic_resource
    )


@value_type
class CreatedTopic:
    """With `validate_only` there is no id; with an error the counts are -1."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    topic_id: TopicId | None = None
    partitions: int = -1
    replication_factor: int = -1


@value_type
class CreateTopicsReply(WriteReply):
    topics: tuple[CreatedTopic, ...]


@value_type
class DeletedTopic:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    topic_id: TopicId | None = None


@value_type
class DeleteTopicsReply(WriteReply):
    topics: tuple[DeletedTopic, ...]


@value_type
class ListedTopic:
    name: str
    topic_id: TopicId
    partitions: int


@value_type
class ListTopicsReply:
    offset: Offset
    topics: tuple[ListedTopic, ...]
    next_cursor: Cursor | None = None


@value_type
class DescribedPartition:
    """One partition; the leader is -1 if there is none."""

    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@value_type
class DescribedTopic:
    """`configs` are those set on the topic itself, in order of their names."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    topic_id: TopicId | None = None
    partitions: tuple[DescribedPartition, ...] = ()
    configs: tuple[tuple[str, str], ...] = ()


@value_type
class DescribeTopicsReply:
    """The last topic may continue at the cursor."""

    offset: Offset
    topics: tuple[DescribedTopic, ...]
    next_cursor: Cursor | None = None


ITEMS_MAX: Final = {
    ("NewTopic", "assignments"): RECORDS_MAX,
    ("NewTopic", "configs"): 100,
    ("Replicas", "ids"): 100,
}
