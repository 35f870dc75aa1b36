"""Reads of a controller's own image: each shows the state at its offset, which never goes back.

What the state was comes from the log itself: the committed records of one node, replayed.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from quorate.records.batch import read_header, read_records
from quorate.records.metadata import ConfigRecord, RemoveTopicRecord, TopicRecord, decode_record
from tests.chaos.history import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quorate.records.ids import TopicId
    from tests.chaos.history import LocalRead


class Values:
    """The value of every key at every offset, from the log's first batch on."""

    def __init__(self) -> None:
        self.end = 0
        self._offsets: dict[str, list[int]] = {}
        self._values: dict[str, list[int | None]] = {}
        self._names: dict[TopicId, str] = {}

    def replay(self, batches: Iterable[bytes]) -> None:
        """Batches in the order of the log, as far as none is missing; `end` is where that is.

        All records of one become visible together.
        """
        for data in batches:
            header = read_header(data, 0)
            if header.base_offset != self.end:
                return
            self.end = header.last_offset + 1
            if header.is_control:
                continue
            for record in read_records(data, 0, header):
                self._replay_record(decode_record(record.value or b"")[0], header.last_offset + 1)

    def _replay_record(self, record: object, end: int) -> None:
        match record:
            case TopicRecord(name=name, topic_id=topic_id):
                self._names[topic_id] = name
            case RemoveTopicRecord(topic_id=topic_id):
                self._set(self._names.pop(topic_id), end, ABSENT)
            case ConfigRecord(resource_name=name, name="retention.ms", value=str(value)):
                self._set(name, end, int(value))

    def _set(self, key: str, end: int, value: int | None) -> None:
        self._offsets.setdefault(key, []).append(end)
        self._values.setdefault(key, []).append(value)

    def at(self, key: str, offset: int) -> int | None:
        """The value once everything below the offset has happened."""
        found = bisect_right(self._offsets.get(key, []), offset)
        return self._values[key][found - 1] if found else ABSENT


def violations(reads: Sequence[LocalRead], values: Values) -> list[str]:
    """Violations of the reads, in plain text."""
    found = []
    for read in reads:
        if read.offset < read.min_offset:
            found.append(f"below what was asked for: {read}")
        expected = values.at(read.key, read.offset)
        if read.value != expected:
            found.append(f"the log says {expected}: {read}")
    lives: dict[tuple[int, int], list[LocalRead]] = {}
    for read in reads:
        lives.setdefault((read.controller, read.life), []).append(read)
    for group in lives.values():
        found += _going_back(group)
    return found


def _going_back(reads: Sequence[LocalRead]) -> list[str]:
    """Reads that began after another one of the same life had ended, and show an older offset."""
    found = []
    by_end = sorted(reads, key=lambda read: read.end)
    newest: LocalRead | None = None
    position = 0
    for read in sorted(reads, key=lambda read: read.begin):
        while position < len(by_end) and by_end[position].end < read.begin:
            if newest is None or by_end[position].offset > newest.offset:
                newest = by_end[position]
            position += 1
        if newest is not None and read.offset < newest.offset:
            found.append(f"went back from {newest.offset}: {read}")
    return found
