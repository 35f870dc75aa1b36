"""Snapshot files: writing, verification, retention."""
