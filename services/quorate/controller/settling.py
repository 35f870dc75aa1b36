"""Leaders and ISRs of all partitions after brokers came and went, a slice at a time.

One decision may concern every partition of the cluster, and one turn of the loop may not last that
long. So the record about the broker is decided at once, with the first slice; a cursor goes on
through the other topics, and each slice is an ordinary decision that others may come between. Who
may lead is always taken from the newest image: a broker that goes while a pass is under way counts
for the rest of it, and another pass follows for what lay before.

Nothing of this is in the log. A partition that was not reached yet says so itself, by a leader or
a replica in sync that is not active, and the next active controller looks at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.controller.decision import Outcome, Proposal
from quorate.controller.elections import change_of, needs_look
from quorate.controller.features import metadata_version
from quorate.controller.partitions import CHUNK_ROWS, select_rows
from quorate.records.value import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.controller.decision import Context
    from quorate.controller.image import MetadataImage
    from quorate.controller.partitions import Chunk
    from quorate.records.ids import TopicId
    from quorate.records.metadata import MetadataRecord

# What a slice does at most; a few milliseconds each. A record is made, encoded and replayed; a
# partition that turns out to be as it should was still unpacked; the rest is compared in columns.
RECORDS_SLICE: Final = 32
EXAMINED_SLICE: Final = 128
CHUNKS_SLICE: Final = 512
ROWS_SLICE: Final = 4096


@value
class Cursor:
    """How far a pass has come.

    `topic_ids` are the topics that were not reached, of the image with which the pass began; to
    list them takes too long where there are many. `topic_id` and `partition_id` say where columns
    are compared next, None for the next topic. `found` are the partitions that the last comparison
    found, of which `taken` were looked at: each may have changed since.
    """

    topic_ids: Iterator[TopicId]
    topic_id: TopicId | None = None
    partition_id: int = 0
    found: tuple[tuple[TopicId, int], ...] = ()
    taken: int = 0
    is_last: bool = False

    @property
    def is_at_end(self) -> bool:
        return self.is_last and self.taken == len(self.found)


@value
class Settling:
    """What is left to look at.

    `brokers` are those for whom the pass under way was begun, `later` those for whom another one
    has to follow. A sweep is the first pass of an active controller, and concerns everybody.
    """

    cursor: Cursor | None = None
    brokers: frozenset[int] = frozenset()
    later: frozenset[int] = frozenset()
    is_sweep: bool = False

    @property
    def is_over(self) -> bool:
        """Whether every partition has the leader and the ISR that it should have."""
        return self.cursor is None and not self.later and not self.is_sweep

    def concerns(self, broker_id: int) -> bool:
        """Whether partitions may still be as if that broker had not come or gone."""
        return self.is_sweep or broker_id in self.brokers or broker_id in self.later

    def begun(self, image: MetadataImage) -> Settling:
        """The next pass begins."""
        # The ids alone: the topics of now would all be kept until the pass is over, and those that
        # changed meanwhile, perhaps all, be freed in the turn in which it is.
        cursor = Cursor(iter(image.topics.ids.values()))
        return replace(self, cursor=cursor, brokers=self.later, later=frozenset())


def settle(
    context: Context,
    records: Iterable[MetadataRecord],
    broker_ids: Iterable[int],
    active: frozenset[int],
) -> Outcome:
    """Change the standing of brokers, then leaders and ISRs as far as one slice goes.

    The records about the brokers come first: what is left to do follows from them, whichever is the
    active controller then. `active` are the brokers that may lead once they are replayed.
    """
    proposal = Proposal(metadata_version(context.view.features))
    proposal.add(tuple(records))
    settling = context.settling
    settling = replace(settling, later=settling.later.union(broker_ids))
    if settling.cursor is None and not settling.is_sweep:
        image = context.freeze()
        settling = _go_on(settling.begun(image), image, active, proposal)
    return Outcome(proposal, None, settling=settling)


def decide_rest(context: Context) -> Outcome | None:
    """The next slice of what is left; None when nothing is."""
    settling = context.settling
    if settling.is_over:
        return None
    image = context.freeze()
    if settling.cursor is None:
        settling = settling.begun(image)
    proposal = Proposal(metadata_version(image.features))
    active = image.brokers.active
    return Outcome(proposal, None, settling=_go_on(settling, image, active, proposal))


def _go_on(
    settling: Settling, image: MetadataImage, active: frozenset[int], proposal: Proposal
) -> Settling:
    """One slice of the pass under way."""
    cursor = settling.cursor
    assert cursor is not None, "a pass is under way"
    if cursor.taken == len(cursor.found):
        cursor = _compare(cursor, image, active)
    full = len(proposal.records) + RECORDS_SLICE
    last = min(cursor.taken + EXAMINED_SLICE, len(cursor.found))
    taken = cursor.taken
    while taken < last and len(proposal.records) < full:
        topic_id, partition_id = cursor.found[taken]
        topic = image.topics.by_id.get(topic_id)
        record = None if topic is None else change_of(image, topic, partition_id, active)
        if record is not None:
            proposal.add((record,))
        taken += 1
    cursor = replace(cursor, taken=taken)
    if cursor.is_at_end:
        return replace(settling, cursor=None, brokers=frozenset(), is_sweep=False)
    return replace(settling, cursor=cursor)


def _compare(cursor: Cursor, image: MetadataImage, active: frozenset[int]) -> Cursor:
    """Find what may have to change in the next so many chunks."""
    chunks: list[Chunk] = []
    places: list[tuple[TopicId, int]] = []
    topic_id, begin = cursor.topic_id, cursor.partition_id
    topics = rows = 0
    is_last = False
    while max(topics, len(chunks)) < CHUNKS_SLICE and rows < ROWS_SLICE:
        if topic_id is None:
            topic_id, begin = next(cursor.topic_ids, None), 0
            topics += 1
            if topic_id is None:
                is_last = True
                break
        topic = image.topics.by_id.get(topic_id)
        place = None if topic is None else next(topic.partitions.chunks_from(begin), None)
        if place is None:
            topic_id = None
            continue
        first, chunk = place
        chunks.append(chunk)
        places.append((topic_id, first))
        rows += len(chunk)
        begin = first + CHUNK_ROWS
    found = select_rows(chunks, needs_look(active))
    return Cursor(
        topic_ids=cursor.topic_ids,
        topic_id=topic_id,
        partition_id=begin,
        found=tuple((places[at][0], places[at][1] + row) for at, row in found),
        is_last=is_last,
    )
