"""Synthetic metadata logs: a week of a cluster, drawn from a seed."""
