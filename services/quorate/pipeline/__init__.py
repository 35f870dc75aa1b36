"""The metadata log in Spark: a data source, and the jobs that read it."""
