"""The Spark data source `kraft`: log directories and live quorums as a frame of records."""
