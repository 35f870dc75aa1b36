"""Makes `spark.read.format("kraft")` work without registration: Spark finds it by its name."""

from quorate.pipeline.source.data_source import KraftDataSource as DefaultSource

__all__ = ["DefaultSource"]
