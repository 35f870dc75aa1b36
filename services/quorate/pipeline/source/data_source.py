"""KraftDataSource, the entry point that Spark loads: `spark.read.format("kraft")`.

Spark imports it in a Python process for each of its requests, the first of which needs only the
name: columns and readers are imported on demand.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from quorate.pipeline.source.batch_reader import KraftReader
    from quorate.pipeline.source.options import Options
    from quorate.pipeline.source.stream_reader import KraftStreamReader


# The worker in which Spark asks a reader for supported filters. It runs only if
# spark.sql.python.filterPushdown.enabled is set; that setting itself is not visible here.
_PUSHDOWN: Final = "pyspark.sql.worker.data_source_pushdown_filters"
# The metadata key for a table's options in its schema: Spark 4.3 keeps both, but passes only the
# schema when the table is read.
_OPTIONS: Final = "kraft"


class KraftDataSource(DataSource):
    """A metadata log as a frame of records; `docs/source.md` describes its options."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "kraft"

    def schema(self) -> str | StructType:
        """The columns. Raises OptionError for invalid options."""
        from quorate.pipeline.source.frame_schema import spark_schema
        from quorate.pipeline.source.options import parse_options, table_options

        of_table = table_options(self.options)
        if of_table is None:
            options = parse_options(self.options)
            return spark_schema(options.columns, options.record_types)
        # Both import Arrow, which the columns of a frame without a table do not need.
        from pyspark.sql.pandas.types import from_arrow_schema

        from quorate.pipeline.source.arrow_schema import arrow_schema

        options = parse_options(of_table)
        schema = from_arrow_schema(arrow_schema(options.columns, options.record_types))
        schema[0].metadata = {_OPTIONS: of_table}
        return schema

    def reader(self, schema: StructType) -> KraftReader:
        """The batch reader; with filter pushdown if the options and Spark enable it."""
        from quorate.pipeline.source.batch_reader import KraftReader, PushingReader

        options = self._read_options(schema)
        takes_filters = options.takes_filters and _PUSHDOWN in sys.modules
        return PushingReader(options) if takes_filters else KraftReader(options)

    def streamReader(self, schema: StructType) -> KraftStreamReader:
        """The reader that follows the log."""
        from quorate.pipeline.source.stream_reader import KraftStreamReader

        return KraftStreamReader(self._read_options(schema))

    def _read_options(self, schema: StructType) -> Options:
        from quorate.pipeline.source.options import parse_options

        of_table = schema[0].metadata.get(_OPTIONS, {}) if schema.fields else {}
        return parse_options({**of_table, **self.options})
