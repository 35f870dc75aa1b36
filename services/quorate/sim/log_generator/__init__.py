"""A week of a cluster, drawn from a seed and written as the metadata log that it would leave."""
