"""Fetches all pages of a long read and joins them.

Pages come from one controller or several, each no older than the first. A change during the read
may be in a later page; the joined reply has the offset of the first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from quorate.controller.topics.messages import (
    Cursor,
    DescribedTopic,
    DescribeTopics,
    DescribeTopicsReply,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.controller.request_types import ReadReply, ReadRequestOf

R = TypeVar("R", bound="ReadReply")
# The controller makes them smaller.
LIMIT: Final = 10_000
NAMES_MAX: Final = 1000


def first_pages(request: ReadRequestOf[R]) -> Iterator[ReadRequestOf[R]]:
    """The first requests; a long list of names is split into several."""
    if request.pages is None:
        yield request
        return
    # Of any type, but always the same one.
    paged: Any = request
    limit = {request.pages.limit: LIMIT}
    if isinstance(request, DescribeTopics):
        for start in range(0, max(1, len(request.names)), NAMES_MAX):
            yield replace(paged, names=request.names[start : start + NAMES_MAX], **limit)
    else:
        yield replace(paged, **limit)


def next_page(request: ReadRequestOf[R], reply: R) -> ReadRequestOf[R] | None:
    """The request after this reply, None if it was the last."""
    cursor = None if request.pages is None else getattr(reply, "next_cursor", None)
    if cursor is None:
        return None
    paged: Any = request
    following: ReadRequestOf[R] = replace(paged, cursor=cursor)
    return following


def joined(request: ReadRequestOf[R], before: R, page: R) -> R:
    """Join the reply so far with one more page."""
    # Replies of any type, but both have the same one.
    whole: Any = before
    more: Any = page
    if isinstance(whole, DescribeTopicsReply):
        whole = _joined_descriptions(whole, more)
    else:
        assert request.pages is not None, "an answer of several pages has a cursor"
        items = request.pages.items
        both = {items: getattr(whole, items) + getattr(more, items)}
        whole = replace(whole, next_cursor=more.next_cursor, **both)
    joined_reply: R = whole
    return joined_reply


def _joined_descriptions(
    before: DescribeTopicsReply, page: DescribeTopicsReply
) -> DescribeTopicsReply:
    cursor = before.next_cursor
    if not page.topics or cursor is None or not cursor.partition_index:
        topics = before.topics + page.topics
    elif page.topics[0].name != cursor.topic_name:
        # The topic was deleted in the meantime.
        topics = before.topics[:-1] + page.topics
    elif page.topics[0].topic_id != before.topics[-1].topic_id and page.topics[0].topic_id:
        # Another topic of that name: start from its beginning.
        again = Cursor(cursor.topic_name)
        return replace(before, topics=before.topics[:-1], next_cursor=again)
    else:
        topics = (*before.topics[:-1], _whole(before.topics[-1], page.topics[0]), *page.topics[1:])
    return replace(before, topics=topics, next_cursor=page.next_cursor)


def _whole(first: DescribedTopic, rest: DescribedTopic) -> DescribedTopic:
    """Join one topic from two pages; its latest state is in the second."""
    return replace(rest, partitions=first.partitions + rest.partitions if rest.topic_id else ())
