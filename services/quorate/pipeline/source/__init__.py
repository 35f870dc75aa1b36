"""Spark data source `kraft`: log directories and live quorums as DataFrames."""
