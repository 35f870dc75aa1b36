"""Metrics of a controller."""
