"""Spans of a controller."""
