"""The data source as Spark meets it: `spark.read.format("kraft")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from quorate.pipeline.source.batch_reader import KraftReader
from quorate.pipeline.source.frame import spark_schema
from quorate.pipeline.source.options import parse_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class KraftDataSource(DataSource):
    """A metadata log as a frame of records; `docs/source.md` tells its options."""

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return "kraft"

    def schema(self) -> str:
        """The columns. Raises OptionError for options that cannot be."""
        options = parse_options(self.options)
        return spark_schema(options.columns, options.record_types)

    def reader(self, schema: StructType) -> KraftReader:
        """Whoever reads a batch."""
        return KraftReader(parse_options(self.options))
