"""Batch reader: reads the planned splits, with filter pushdown.

Spark starts a Python process for each of its requests, and each imports this module again: the
record decoders, and the code for live quorums, are imported only where they are needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from quorate.pipeline.source.batch_plan import plan_batch
from quorate.pipeline.source.damage import Damage, check_read
from quorate.pipeline.source.splits import NO_END, pack_splits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from quorate.pipeline.source.frame_builder import FrameBuilder
    from quorate.pipeline.source.live_plan import LiveRange
    from quorate.pipeline.source.options import Options
    from quorate.pipeline.source.splits import Split
    from quorate.records.columnar.batch_run import BatchRun

_OFFSET: Final = ("offset",)
_RECORD_TYPE: Final = ("record_type",)


class SplitPartition(InputPartition):
    """Splits for one task, whose total cost is about that of one full-size split."""

    def __init__(self, splits: Sequence[Split]) -> None:
        super().__init__(splits)
        self.splits = tuple(splits)


class DamagePartition(InputPartition):
    """Damage found before reading: unreadable files."""

    def __init__(self, damages: Sequence[tuple[Damage, int | None]]) -> None:
        super().__init__(damages)
        self.damages = tuple(damages)


class LivePartition(InputPartition):
    """A part of a running quorum's log."""

    def __init__(self, wanted: LiveRange) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class KraftReader(DataSourceReader):
    """Reads directories, also in use, as they are now; or a live quorum."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.low = -1
        self.high = NO_END
        self.wanted_types: frozenset[str] | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """A partition for each group of splits, and one for damage."""
        if self.options.bootstrap_servers is not None:
            return self._live_partitions()
        plan = plan_batch(self.options)
        wanted = [narrow for split in plan.splits if (narrow := self._narrowed(split)) is not None]
        parts: list[InputPartition] = []
        parts += map(SplitPartition, pack_splits(wanted, self.options.split_bytes))
        if plan.damages or not parts:
            parts.append(DamagePartition(plan.damages))
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        return read_partition(self.options, partition, self.wanted_types)

    def _live_partitions(self) -> Sequence[InputPartition]:
        from quorate.pipeline.source.live_plan import plan_live

        parts = [
            LivePartition(wanted)
            for wanted in plan_live(self.options)
            if wanted.low < self.high and wanted.high > self.low
        ]
        return parts or [DamagePartition(())]

    def _narrowed(self, split: Split) -> Split | None:
        if split.snapshot_offset is not None:
            return split if self.low <= split.snapshot_offset < self.high else None
        low, high = max(split.low, self.low), min(split.high, self.high)
        begin = split.first_offset or 0
        behind = NO_END if split.next_offset is None else split.next_offset
        return replace(split, low=low, high=high) if begin < high and behind > low else None


class PushingReader(KraftReader):
    """The same with filter pushdown: parts of the log that Spark's filters exclude stay unread.

    It is a separate class because Spark rejects a reader with `pushFilters` if pushdown is
    disabled. All filters are returned to Spark: the reader may yield rows that Spark drops, but
    never omits rows that match.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Narrow offsets and record types by the filters, and return all of them."""
        for each in filters:
            match each:
                case EqualTo(attribute=attribute, value=value) if attribute == _OFFSET:
                    self.low, self.high = max(self.low, value), min(self.high, value + 1)
                case GreaterThan(attribute=attribute, value=value) if attribute == _OFFSET:
                    self.low = max(self.low, value + 1)
                case GreaterThanOrEqual(attribute=attribute, value=value) if attribute == _OFFSET:
                    self.low = max(self.low, value)
                case LessThan(attribute=attribute, value=value) if attribute == _OFFSET:
                    self.high = min(self.high, value)
                case LessThanOrEqual(attribute=attribute, value=value) if attribute == _OFFSET:
                    self.high = min(self.high, value + 1)
                case EqualTo(attribute=attribute, value=value) if attribute == _RECORD_TYPE:
                    self._want(frozenset({value}))
                case In(attribute=attribute, value=values) if attribute == _RECORD_TYPE:
                    self._want(frozenset(values))
                case _:
                    pass
            yield each

    def _want(self, types: frozenset[str]) -> None:
        self.wanted_types = types if self.wanted_types is None else self.wanted_types & types


def read_partition(
    options: Options,
    partition: InputPartition,
    wanted_types: frozenset[str] | None = None,
    *,
    fails_on_unread: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows of one partition of any reader.

    With `fails_on_unread`, raises UnreadError for damage that another attempt may read.
    """
    from quorate.pipeline.source.frame_builder import FrameBuilder
    from quorate.pipeline.source.record_repair import read_mended

    builder = FrameBuilder(options, wanted_types)
    match partition:
        case SplitPartition(splits=splits):
            for split in splits:
                for part, found in read_mended(split):
                    yield from builder.read(part, _read_whole(found) if fails_on_unread else found)
        case DamagePartition(damages=damages):
            for damage, source_node in damages:
                yield from builder.add_damage(damage, source_node)
        case LivePartition(wanted=wanted):
            yield from _live_rows(options, wanted, builder)
    yield from builder.flush()


def _read_whole(found: Iterable[BatchRun | Damage]) -> Iterator[BatchRun | Damage]:
    for each in found:
        if isinstance(each, Damage):
            check_read([each])
        yield each


def _live_rows(
    options: Options, wanted: LiveRange, builder: FrameBuilder
) -> Iterator[pa.RecordBatch]:
    from quorate.pipeline.source.live_log import live_log
    from quorate.pipeline.source.live_plan import range_split
    from quorate.storage.log.run_scanner import runs_of

    with live_log(options) as log:
        log.check_cluster(wanted.cluster_id)
        if wanted.snapshot_id is not None:
            found = log.snapshot_batches(wanted.snapshot_id)
        else:
            found = log.batches(wanted.low, wanted.high)
        yield from builder.read(range_split(wanted), runs_of(found))
