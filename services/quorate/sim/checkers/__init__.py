"""Checks on a run: oracle, log views, liveness, differential execution."""
