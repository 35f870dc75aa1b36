"""Reads what was planned, a split at a time: `spark.read`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from quorate.pipeline.source.decoding import FrameBuilder
from quorate.pipeline.source.planning import plan_batch
from quorate.pipeline.source.reading import read_split
from quorate.pipeline.source.splits import packed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from quorate.pipeline.source.damage import Damage
    from quorate.pipeline.source.options import Options
    from quorate.pipeline.source.splits import Split


class SplitPartition(InputPartition):
    """Splits for one task, which cost about as much together as one that is cut to size."""

    def __init__(self, splits: Sequence[Split]) -> None:
        super().__init__(splits)
        self.splits = tuple(splits)


class DamagePartition(InputPartition):
    """What was found before anything was read: files that cannot be."""

    def __init__(self, damages: Sequence[tuple[Damage, int | None]]) -> None:
        super().__init__(damages)
        self.damages = tuple(damages)


class KraftReader(DataSourceReader):
    """Reads directories that are at rest, or as they are at this moment."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        """A partition for each split, and one for what cannot be read."""
        plan = plan_batch(self.options)
        parts: list[InputPartition] = []
        parts += map(SplitPartition, packed(plan.splits, self.options.split_bytes))
        if plan.damages or not parts:
            parts.append(DamagePartition(plan.damages))
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        return read_partition(self.options, partition)


def read_partition(options: Options, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one partition, whichever reader planned it."""
    builder = FrameBuilder(options)
    if isinstance(partition, SplitPartition):
        for split in partition.splits:
            yield from builder.read(split, read_split(split))
        yield from builder.flush()
    elif isinstance(partition, DamagePartition):
        for damage, source_node in partition.damages:
            yield from builder.add_damage(damage, source_node)
        yield from builder.flush()
