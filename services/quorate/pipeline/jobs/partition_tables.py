"""Computes the tables of job `partitions` from partition states, in Arrow and numpy.

A table is made one window of states at a time. A state that continues beyond the window is held as
one row and joined with the first row of the next window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.jobs.partition_states import UNKNOWN, elements_of, states_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from quorate.pipeline.jobs.partition_states import Flags, Index, States

    Row: TypeAlias = dict[str, Any]

_IDS: Final = pa.list_(pa.field("element", pa.int32()))
_TIME: Final = pa.timestamp("us", "UTC")
_INTERVAL: Final = (
    ("topic", pa.string()),
    ("topic_id", pa.string()),
    ("partition", pa.int32()),
    ("start_offset", pa.int64()),
    ("start", _TIME),
    ("end_offset", pa.int64()),
    ("end", _TIME),
)
_SUMS: Final = (
    "partitions",
    "leader_changes",
    "unclean_elections",
    "isr_shrinks",
    "isr_expands",
    "reassignments",
)
HISTORY: Final = pa.schema(
    [
        *_INTERVAL,
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("replicas", _IDS),
        ("isr", _IDS),
        ("adding_replicas", _IDS),
        ("removing_replicas", _IDS),
        ("changed", pa.list_(pa.field("element", pa.string()))),
    ]
)
UNDER_REPLICATED: Final = pa.schema(
    [*_INTERVAL, ("isr_size_min", pa.int32()), ("missing", _IDS), ("reassigning", pa.bool_())]
)
OFFLINE: Final = pa.schema([*_INTERVAL, ("last_leader", pa.int32()), ("next_leader", pa.int32())])
UNCLEAN: Final = pa.schema(
    [
        *_INTERVAL[:3],
        ("offset", pa.int64()),
        ("timestamp", _TIME),
        ("epoch", pa.int32()),
        ("leader", pa.int32()),
        ("isr_before", _IDS),
        ("isr_after", _IDS),
        ("by_recovery_state", pa.bool_()),
    ]
)
CHURN: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("removed", pa.bool_()),
        *((name, pa.int64()) for name in _SUMS),
    ]
)
SUMMARY: Final = pa.unify_schemas(
    [pa.schema([("table", pa.string())]), UNDER_REPLICATED, OFFLINE, UNCLEAN, CHURN]
)
"""Rows of the last four tables, which `table` names; columns of other tables are null."""

NO_LEADER: Final = -1
_CHANGED: Final = ("leader", "isr", "replicas", "reassignment")
# One list of words for each combination of bits.
_WORDS: Final = pa.array(
    [
        [word for at, word in enumerate(_CHANGED) if bits >> at & 1]
        for bits in range(1 << len(_CHANGED))
    ],
    HISTORY.field("changed").type,
)


def history(events: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each state of each partition (HISTORY), from events as for `states_of`."""
    for states in states_of(events):
        if len(states.told):
            yield _history(states)


def summary(events: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of the other tables (SUMMARY), from events as for `states_of`."""
    tables = {
        "under_replicated": _Joining(_under_replicated, _join_under_replicated),
        "offline": _Joining(_offline, _join_offline),
        "churn": _Joining(_churn, _join_churn),
    }
    for states in states_of(events):
        if len(states.told):
            for name, table in tables.items():
                yield from map(partial(_in_summary, name), table.add(states))
            yield _in_summary("unclean", _unclean(states))
    for name, table in tables.items():
        yield from map(partial(_in_summary, name), table.rest())


def _in_summary(name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    count = rows.num_rows
    arrays = [
        rows.column(field.name) if field.name in rows.schema.names else pa.nulls(count, field.type)
        for field in SUMMARY
    ]
    arrays[0] = pa.repeat(name, count)
    return pa.RecordBatch.from_arrays(arrays, schema=SUMMARY)


# --- every state ----------------------------------------------------------------------------------


def _history(states: States) -> pa.RecordBatch:
    moved = (states.lists(name).differs() for name in ("adding_replicas", "removing_replicas"))
    differences = (
        states.leader_differs,
        states.isr_differs,
        states.replicas_differ,
        np.logical_or(*moved) & states.has_previous,
    )
    bits = np.zeros(len(states.partition), np.int64)
    for at, differs in enumerate(differences):
        bits |= differs.astype(np.int64) << at
    told = pa.array(states.told)
    arrays = [
        *_interval(states, states.told, states.told),
        *(states.column(field.name).take(told) for field in list(HISTORY)[len(_INTERVAL) : -1]),
        _WORDS.take(pa.array(bits[states.told])),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=HISTORY)


def _interval(states: States, first: Index, last: Index) -> list[pa.Array]:
    """The columns of _INTERVAL for intervals from the rows `first` to the rows `last`."""
    begin, end = pa.array(first), pa.array(last)
    return [
        *(states.column(name).take(begin) for name in ("topic", "topic_id", "partition")),
        *(states.column(name).take(begin) for name in ("offset", "timestamp")),
        states.following("offset", "removed_offset").take(end),
        states.following("timestamp", "removed").take(end),
    ]


def _unclean(states: States) -> pa.RecordBatch:
    rows = states.told[states.is_unclean[states.told]]
    now = pa.array(rows)
    before = pa.array(rows - 1, mask=~states.has_previous[rows])
    names = (*(name for name, _ in _INTERVAL[:3]), "offset", "timestamp", "leader_epoch", "leader")
    arrays = [
        *(states.column(name).take(now) for name in names),
        states.column("isr").take(before),
        states.column("isr").take(now),
        pa.array(states.is_marked[rows]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=UNCLEAN)


# --- what lasts over several states ---------------------------------------------------------------


@dataclass(slots=True)
class _Made:
    """Rows of one window.

    With `goes_on` the first row continues the last one of the previous window if the topic is the
    same; with `is_open` the last row may continue in the next window.
    """

    rows: pa.RecordBatch
    goes_on: bool
    is_open: bool


class _Joining:
    """A table whose rows may span several windows."""

    def __init__(self, make: Callable[[States], _Made], join: Callable[[Row, Row], Row]) -> None:
        self._make = make
        self._join = join
        self._held: pa.RecordBatch | None = None

    def add(self, states: States) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are complete."""
        made = self._make(states)
        rows, held, self._held = made.rows, self._held, None
        if held is not None and made.goes_on and _topic_id(held) == _topic_id(rows):
            (before,), (after,) = held.to_pylist(), rows.slice(0, 1).to_pylist()
            joined = pa.RecordBatch.from_pylist([self._join(before, after)], schema=rows.schema)
            rows = pa.concat_batches([joined, rows.slice(1)])
        elif held is not None:
            yield held
        if made.is_open:
            self._held = rows.slice(rows.num_rows - 1)
            rows = rows.slice(0, rows.num_rows - 1)
        if rows.num_rows:
            yield rows

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the held row, after the last window."""
        if self._held is not None:
            yield self._held


def _topic_id(rows: pa.RecordBatch) -> str | None:
    found: str | None = rows.column("topic_id")[0].as_py() if rows.num_rows else None
    return found


class _Runs:
    """Runs of consecutive states of one partition with a property, by first and last row."""

    def __init__(self, states: States, holds: Flags) -> None:
        told = states.told
        now = holds[told]
        follows = states.has_previous[told]
        before = np.append(False, now[:-1]) & follows
        self.number: Index = np.cumsum(now & ~before) - 1
        """For each reported row, the number of its run, if it is in one."""
        self.is_inside: Flags = now
        inside = np.flatnonzero(now)
        numbers_inside = self.number[inside]
        self.count = int(numbers_inside[-1]) + 1 if len(inside) else 0
        each = np.arange(self.count)
        self.first: Index = told[inside[np.searchsorted(numbers_inside, each)]]
        self.last: Index = told[inside[np.searchsorted(numbers_inside, each, side="right") - 1]]
        self.goes_on = bool(now[0] and follows[0] and holds[told[0] - 1])
        self.is_open = bool(now[-1])

    def made(self, arrays: Sequence[pa.Array], schema: pa.Schema) -> _Made:
        """Rows with these columns, one per run."""
        rows = pa.RecordBatch.from_arrays(list(arrays), schema=schema)
        return _Made(rows, self.goes_on, self.is_open)

    def reduced(self, ufunc: np.ufunc, values: Index | Flags) -> Any:  # noqa: ANN401 - as the values
        """Reduce the values of each run's reported rows with the function; one result per run."""
        inside = np.flatnonzero(self.is_inside)
        starts = np.searchsorted(self.number[inside], np.arange(self.count))
        return ufunc.reduceat(values[inside], starts) if self.count else values[:0]


def _under_replicated(states: States) -> _Made:
    isr, replicas = states.isr, states.replicas
    holds = (isr.lengths >= 0) & (isr.lengths < replicas.lengths)
    runs = _Runs(states, holds)
    of_row = np.full(len(holds), -1)
    of_row[states.told] = np.where(runs.is_inside, runs.number, -1)
    missing = replicas.without(isr, of_row >= 0)
    # The same as in `SortedLists`, with the run's number above the element instead of the row's.
    keys = np.unique(of_row[missing >> 32] << 32 | missing & 0xFFFFFFFF)
    ends = np.searchsorted(keys >> 32, np.arange(runs.count + 1)).astype(np.int32)
    arrays = [
        *_interval(states, runs.first, runs.last),
        pa.array(runs.reduced(np.minimum, isr.lengths[states.told]).astype(np.int32)),
        pa.ListArray.from_arrays(pa.array(ends), pa.array(elements_of(keys)), type=_IDS),
        pa.array(runs.reduced(np.logical_or, states.is_moving[states.told])),
    ]
    return runs.made(arrays, UNDER_REPLICATED)


def _join_under_replicated(before: Row, after: Row) -> Row:
    return _ended(before, after) | {
        "isr_size_min": min(before["isr_size_min"], after["isr_size_min"]),
        "missing": sorted({*before["missing"], *after["missing"]}),
        "reassigning": before["reassigning"] or after["reassigning"],
    }


def _offline(states: States) -> _Made:
    leader = states.leader
    runs = _Runs(states, leader == NO_LEADER)
    behind = np.minimum(runs.last + 1, len(leader) - 1)
    arrays = [
        *_interval(states, runs.first, runs.last),
        _leaders(leader[runs.first - 1], states.has_previous[runs.first]),
        _leaders(leader[behind], states.has_next[runs.last]),
    ]
    return runs.made(arrays, OFFLINE)


def _leaders(leader: Index, is_there: Flags) -> pa.Array:
    is_told = is_there & (leader != UNKNOWN)
    return pa.array(np.where(is_told, leader, 0).astype(np.int32), mask=~is_told)


def _join_offline(before: Row, after: Row) -> Row:
    return _ended(before, after) | {"next_leader": after["next_leader"]}


def _ended(before: Row, after: Row) -> Row:
    return before | {"end_offset": after["end_offset"], "end": after["end"]}


# --- sums by topic --------------------------------------------------------------------------------


def _churn(states: States) -> _Made:
    told = states.told
    gains, losses = states.isr.gains_and_losses(states.isr_differs)
    is_moving = states.is_moving
    was_moving = np.append(False, is_moving[:-1]) & states.has_previous
    begins_move = states.has_previous & ~was_moving & (is_moving | states.replicas_differ)
    counted = (
        ~states.has_previous,
        states.leader_differs,
        states.is_unclean,
        losses & states.has_previous,
        gains & states.has_previous,
        begins_move,
    )
    topic_ids = states.column("topic_id")
    begins = np.ones(len(told), np.bool_)
    rows = pa.array(told)
    of_told = topic_ids.take(rows)
    begins[1:] = pc.not_equal(of_told.slice(1), of_told.slice(0, len(told) - 1)).to_numpy(
        zero_copy_only=False
    )
    starts = np.flatnonzero(begins)
    first = pa.array(told[starts])
    arrays = [
        states.column("topic").take(first),
        topic_ids.take(first),
        states.column("removed_offset").take(first).is_valid(),
        *(pa.array(np.add.reduceat(each[told].astype(np.int64), starts)) for each in counted),
    ]
    made = pa.RecordBatch.from_arrays(arrays, schema=CHURN)
    return _Made(made, goes_on=True, is_open=True)


def _join_churn(before: Row, after: Row) -> Row:
    return before | {name: before[name] + after[name] for name in _SUMS}
