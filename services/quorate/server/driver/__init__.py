"""Drives the core: events in, effects out, one timer."""
