"""Deterministic simulator: production code on a simulated clock, disk and network."""
