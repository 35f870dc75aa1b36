"""Creates many topics idempotently, in batches with retries.

A batch with an unknown outcome is sent again. A topic that exists already with equal partitions,
replicas and configs is a success, even if another client created it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from quorate.client.controller_calls import OutcomeUnknownError
from quorate.controller.topics.messages import (
    USE_DEFAULT,
    CreateTopics,
    CreateTopicsReply,
    DescribeTopics,
)
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from quorate.client.controller_client import ControllerClient
    from quorate.controller.topics.messages import DescribedTopic, NewTopic

BATCH_TOPICS_MAX: Final = 50
BATCH_PARTITIONS_MAX: Final = 1_000
RETRY_PAUSE_S: Final = 0.1


@value_type
class AppliedTopic:
    """The result for one topic: `existed` if it was there already, which is a success."""

    name: str
    existed: bool = False
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


def batches(topics: Sequence[NewTopic]) -> Iterator[tuple[NewTopic, ...]]:
    """Split into requests that each stay well within one atomic batch of records."""
    batch: list[NewTopic] = []
    partitions = 0
    for topic in topics:
        count = max(len(topic.assignments), topic.partitions, 1)
        if batch and (len(batch) == BATCH_TOPICS_MAX or partitions + count > BATCH_PARTITIONS_MAX):
            yield tuple(batch)
            batch, partitions = [], 0
        batch.append(topic)
        partitions += count
    if batch:
        yield tuple(batch)


def difference(wanted: NewTopic, present: DescribedTopic) -> str | None:
    """The difference of an existing topic from the wanted one; None if they are equal.

    Counts left to the controller's defaults are equal to anything.
    """
    replicas = tuple(partition.replicas for partition in present.partitions)
    if wanted.assignments:
        if replicas != wanted.assignments:
            return f"its replicas are {replicas}, not {wanted.assignments}"
    else:
        if wanted.partitions not in (USE_DEFAULT, len(replicas)):
            return f"it has {len(replicas)} partitions, not {wanted.partitions}"
        factor = len(replicas[0]) if replicas else 0
        if wanted.replication_factor not in (USE_DEFAULT, factor):
            return f"its replication factor is {factor}, not {wanted.replication_factor}"
    if dict(present.configs) != dict(wanted.configs):
        return f"its configs are {dict(present.configs)}, not {dict(wanted.configs)}"
    return None


async def apply_topics(
    client: ControllerClient,
    topics: Sequence[NewTopic],
    on_applied: Callable[[AppliedTopic], None],
    *,
    may_differ: bool = False,
) -> None:
    """Create all topics, and report each as soon as it is known to be committed or rejected.

    With `may_differ` an existing topic is a success, whatever its definition. Raises the errors of
    the client; the caller bounds the time.
    """
    for batch in batches(topics):
        reply = await _create(client, CreateTopics(batch))
        wanted = {topic.name: topic for topic in batch}
        existing = [t.name for t in reply.topics if t.error is ErrorCode.TOPIC_ALREADY_EXISTS]
        if may_differ:
            compared = {name: AppliedTopic(name, existed=True) for name in existing}
        else:
            compared = await _compare(client, [wanted[name] for name in existing])
        for topic in reply.topics:
            applied = compared.get(topic.name)
            on_applied(
                applied or AppliedTopic(topic.name, error=topic.error, message=topic.message)
            )


async def _create(client: ControllerClient, request: CreateTopics) -> CreateTopicsReply:
    while True:
        try:
            reply = await client.write(request)
        except OutcomeUnknownError:
            await asyncio.sleep(RETRY_PAUSE_S)
            continue
        return reply


async def _compare(client: ControllerClient, wanted: Sequence[NewTopic]) -> dict[str, AppliedTopic]:
    """Compare with what is committed now; `current` because an older image may not have it yet."""
    if not wanted:
        return {}
    reply = await client.read(DescribeTopics(tuple(t.name for t in wanted)), current=True)
    applied = {}
    for topic, present in zip(wanted, reply.topics, strict=True):
        if present.error is not ErrorCode.NONE:
            applied[topic.name] = AppliedTopic(
                topic.name, error=present.error, message=present.message
            )
        elif differs := difference(topic, present):
            applied[topic.name] = AppliedTopic(
                topic.name,
                error=ErrorCode.TOPIC_ALREADY_EXISTS,
                message=f"it exists, but {differs}; delete it or correct the file",
            )
        else:
            applied[topic.name] = AppliedTopic(topic.name, existed=True)
    return applied
