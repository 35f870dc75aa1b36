"""Found by Spark for its name: makes `spark.read.format("kraft")` work without registering."""

from quorate.pipeline.source.data_source import KraftDataSource as DefaultSource

__all__ = ["DefaultSource"]
