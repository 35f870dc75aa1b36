"""Builds Arrow batches of the DataFrame from what a split reader yields.

Batches in one buffer are decoded together, in columns. Control records, and the few records that
columns cannot represent, are decoded one by one. Memory holds only one buffer and its results, for
any length of the log and any size of its batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quorate.pipeline.source.arrow_schema import arrow_schema
from quorate.pipeline.source.damage import Damage, DamageError
from quorate.pipeline.source.row_reader import RowReader, damage_row
from quorate.pipeline.source.vector_reader import VectorReader, buffer_of, undecodable_batches
from quorate.records.batch import CorruptBatchError
from quorate.records.codec.schema import SchemaError
from quorate.storage.log.run_scanner import batches_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.pipeline.source.options import Options
    from quorate.pipeline.source.splits import Split
    from quorate.records.columnar.batch_run import BatchRun

ROWS_MAX: Final = 10_000
BYTES_MAX: Final = 8 * 1024 * 1024


class FrameBuilder:
    """Converts the results of a reader to Arrow batches with the schema of the options.

    Records whose type is not in `wanted_types` are skipped; None means all types.
    """

    def __init__(self, options: Options, wanted_types: frozenset[str] | None = None) -> None:
        self._options = options
        self._wanted_types = wanted_types
        self._schema = arrow_schema(options.columns, options.record_types)
        self._row_reader = RowReader(options)
        self._vectors = VectorReader(options, wanted_types)
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    def read(self, split: Split, found: Iterable[BatchRun | Damage]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split; `flush` yields the last ones.

        Raises DamageError if the options require that.
        """
        for each in found:
            if isinstance(each, Damage):
                yield from self.add_damage(each, split.source_node)
                continue
            run = each
            if split.snapshot_offset is None:
                bases, lasts = run.field("base_offset"), run.last_offsets
                run = run.part((lasts >= split.low) & (bases < split.high))
            controls = run.is_control
            if self._options.has_controls:
                yield from self._add_rows(split, run.part(controls))
            data = run.part(~controls)
            if len(data):
                yield from self._decode(split, data)

    def add_damage(self, damage: Damage, source_node: int | None) -> Iterator[pa.RecordBatch]:
        """Add a row about damage. Raises DamageError if the options require that."""
        if self._options.fails_on_damage:
            raise DamageError(str(damage))
        self._rows.append(damage_row(damage, source_node))
        if len(self._rows) >= ROWS_MAX:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield the accumulated single rows."""
        if self._rows:
            columns = [
                pa.array([row.get(field.name) for row in self._rows], field.type)
                for field in self._schema
            ]
            self._rows, self._bytes = [], 0
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _decode(self, split: Split, run: BatchRun) -> Iterator[pa.RecordBatch]:
        try:
            buffer = buffer_of(split, run)
            is_unfit = undecodable_batches(buffer)
            if is_unfit.any():
                yield from self._add_rows(split, run.part(is_unfit))
                run = run.part(~is_unfit)
                if not len(run):
                    return
                buffer = buffer_of(split, run)
            made = list(self._vectors.batches(buffer))
        except (CorruptBatchError, SchemaError):
            yield from self._add_rows(split, run)
            return
        for batch in made:
            yield from _slices(batch)

    def _add_rows(self, split: Split, run: BatchRun) -> Iterator[pa.RecordBatch]:
        """Add rows record by record, so that an error is reported for its own record."""
        for batch in batches_of(run):
            for row in self._row_reader.rows(split, batch):
                if not self._is_wanted(row.get("record_type")):
                    continue
                self._rows.append(row)
                self._bytes += len(row.get("value") or b"")
                if len(self._rows) >= ROWS_MAX or self._bytes >= BYTES_MAX:
                    yield from self.flush()

    def _is_wanted(self, record_type: str | None) -> bool:
        """True if a row of this type is wanted; damage always is."""
        if record_type is None:
            return True
        if self._options.is_typed_only and record_type not in self._options.record_types:
            return False
        return self._wanted_types is None or record_type in self._wanted_types


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield parts of a batch of at most ROWS_MAX rows and not far above BYTES_MAX."""
    parts = max(-(-batch.num_rows // ROWS_MAX), -(-batch.nbytes // BYTES_MAX))
    step = max(1, -(-batch.num_rows // max(1, parts)))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)
