"""Long reads by a client: page after page, joined into one reply.

Pages are of one controller or of several, each no older than the first. What changes meanwhile may
be in a later page; the joined reply has the offset of the first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.controller.topics.messages import (
    Cursor,
    DescribedTopic,
    DescribeTopics,
    DescribeTopicsReply,
    ListTopics,
    ListTopicsReply,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.controller.replies import ReadReply
    from quorate.controller.requests import ReadRequest

R = TypeVar("R", DescribeTopicsReply, ListTopicsReply)
# The controller makes them smaller.
LIMIT: Final = 10_000
NAMES_MAX: Final = 1000


def first_pages(request: ReadRequest) -> Iterator[ReadRequest]:
    """What to ask first: of a long list of names one part after the other."""
    match request:
        case DescribeTopics(names=names):
            for start in range(0, max(1, len(names)), NAMES_MAX):
                part = names[start : start + NAMES_MAX]
                yield replace(request, names=part, response_partition_limit=LIMIT)
        case ListTopics():
            yield replace(request, response_topic_limit=LIMIT)
        case _:
            yield request


def next_page(request: ReadRequest, reply: ReadReply) -> ReadRequest | None:
    """What to ask after this reply, None where it was the last."""
    if not isinstance(reply, DescribeTopicsReply | ListTopicsReply) or reply.next_cursor is None:
        return None
    assert isinstance(request, DescribeTopics | ListTopics)
    return replace(request, cursor=reply.next_cursor)


def joined(before: ReadReply, page: ReadReply) -> ReadReply:
    """What was read so far, with one page more."""
    if isinstance(before, DescribeTopicsReply) and isinstance(page, DescribeTopicsReply):
        return _joined_descriptions(before, page)
    assert isinstance(before, ListTopicsReply)
    assert isinstance(page, ListTopicsReply)
    return replace(before, topics=before.topics + page.topics, next_cursor=page.next_cursor)


def _joined_descriptions(
    before: DescribeTopicsReply, page: DescribeTopicsReply
) -> DescribeTopicsReply:
    cursor = before.next_cursor
    if not page.topics or cursor is None or not cursor.partition_index:
        topics = before.topics + page.topics
    elif page.topics[0].name != cursor.topic_name:
        # Deleted in the meantime, as a whole.
        topics = before.topics[:-1] + page.topics
    elif page.topics[0].topic_id != before.topics[-1].topic_id and page.topics[0].topic_id:
        # Another topic of that name: from its beginning.
        again = Cursor(cursor.topic_name)
        return replace(before, topics=before.topics[:-1], next_cursor=again)
    else:
        topics = (*before.topics[:-1], _whole(before.topics[-1], page.topics[0]), *page.topics[1:])
    return replace(before, topics=topics, next_cursor=page.next_cursor)


def _whole(first: DescribedTopic, rest: DescribedTopic) -> DescribedTopic:
    """One topic that two pages tell of; what has become of it is in the second."""
    return replace(rest, partitions=first.partitions + rest.partitions if rest.topic_id else ())
