"""The metadata log in Spark: a data source and the jobs built on it."""
