"""The past of a log in plain Python, one record after the other: what the jobs have to equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.records.ids import format_uuid
from quorate.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.pipeline.jobs.histories import Entry

Ids = tuple[int, ...]


@dataclass
class State:
    """A partition from one record to the next; `end` is (offset, ms) or None while it lasts."""

    topic: str | None
    topic_id: str
    partition: int
    start: tuple[int, int]
    leader: int
    leader_epoch: int
    replicas: Ids
    isr: Ids
    adding: Ids
    removing: Ids
    eligible: Ids
    unclean: bool
    marked: bool
    end: tuple[int, int] | None = None


def effective(entries: Sequence[Entry]) -> list[Entry]:
    """Without what transactions took back or have not given yet."""
    kept: list[Entry] = []
    held: list[Entry] | None = None
    for entry in entries:
        match entry.record:
            case BeginTransactionRecord():
                held = []
            case EndTransactionRecord():
                kept += held or []
                held = None
            case AbortTransactionRecord():
                held = None
            case _ if held is not None:
                held.append(entry)
            case _:
                kept.append(entry)
    return kept


def states(entries: Sequence[Entry]) -> list[list[State]]:
    """The states of each partition in order."""
    names: dict[bytes, str] = {}
    found: dict[tuple[bytes, int], list[State]] = {}
    for entry in effective(entries):
        at = (entry.offset, entry.timestamp_ms)
        match entry.record:
            case TopicRecord() as record:
                names[record.topic_id] = record.name
            case RemoveTopicRecord() as record:
                for (topic_id, _), known in found.items():
                    if topic_id == record.topic_id:
                        known[-1].end = at
            case PartitionRecord() as record:
                found[record.topic_id, record.partition_id] = [_first(record, names, at)]
            case PartitionChangeRecord() as record:
                known = found[record.topic_id, record.partition_id]
                known[-1].end = at
                known.append(_next(known[-1], record, at))
    return list(found.values())


def _first(record: PartitionRecord, names: dict[bytes, str], at: tuple[int, int]) -> State:
    return State(
        names.get(record.topic_id),
        format_uuid(record.topic_id),
        record.partition_id,
        at,
        record.leader,
        record.leader_epoch,
        record.replicas,
        record.isr,
        record.adding_replicas,
        record.removing_replicas,
        record.eligible_leader_replicas or (),
        unclean=False,
        marked=False,
    )


def _next(old: State, record: PartitionChangeRecord, at: tuple[int, int]) -> State:
    names_leader = record.leader != -2
    isr = old.isr if record.isr is None else record.isr
    replicas = old.replicas if record.replicas is None else record.replicas
    eligible = record.eligible_leader_replicas
    is_marked = record.leader_recovery_state == 1
    is_seen = (
        record.leader not in (-2, -1, old.leader, *old.isr, *old.eligible)
        and set(isr) == {record.leader}
        and set(old.replicas) == set(replicas)
    )
    return State(
        old.topic,
        old.topic_id,
        old.partition,
        at,
        record.leader if names_leader else old.leader,
        old.leader_epoch + names_leader,
        replicas,
        isr,
        old.adding if record.adding_replicas is None else record.adding_replicas,
        old.removing if record.removing_replicas is None else record.removing_replicas,
        old.eligible if eligible is None else eligible,
        unclean=is_marked or is_seen,
        marked=is_marked,
    )


def last_ms(entries: Iterable[Entry]) -> int:
    """The time at which the log ends."""
    return max(entry.timestamp_ms for entry in entries)


def interval(start: tuple[int, int], end: tuple[int, int] | None, last: int) -> tuple[object, ...]:
    """start_offset, start, end_offset, end, open, duration_ms; times in milliseconds."""
    until = last if end is None else end[1]
    return (*start, *(end or (None, None)), end is None, until - start[1])


@dataclass
class Setting:
    """A config that was set; `end` and `ended_by` once it was not so any more."""

    type: int
    resource: str
    config: str
    value: str
    previous: str | None
    start: tuple[int, int]
    end: tuple[int, int] | None = None
    ended_by: str | None = None


def settings(entries: Sequence[Entry]) -> list[Setting]:
    """Every value that was set on a resource, in order."""
    names: dict[bytes, str] = {}
    live: dict[tuple[int, str, str], Setting] = {}
    found: list[Setting] = []
    for entry in effective(entries):
        at = (entry.offset, entry.timestamp_ms)
        match entry.record:
            case TopicRecord() as record:
                names[record.topic_id] = record.name
            case RemoveTopicRecord() as record:
                for key in [key for key in live if key[:2] == (2, names.get(record.topic_id))]:
                    ended = live.pop(key)
                    ended.end, ended.ended_by = at, "topic removal"
            case ConfigRecord() as record:
                key = (record.resource_type, record.resource_name, record.name)
                old = live.pop(key, None)
                if old is not None:
                    old.end = at
                    old.ended_by = "removal" if record.value is None else "change"
                if record.value is not None:
                    before = None if old is None else old.value
                    live[key] = Setting(*key, record.value, before, at)
                    found.append(live[key])
    return found
