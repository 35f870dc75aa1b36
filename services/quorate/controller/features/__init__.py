"""Finalized feature levels."""
