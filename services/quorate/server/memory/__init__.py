"""Reclaiming superseded images and tuning garbage collection."""
