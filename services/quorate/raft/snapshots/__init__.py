"""Serving, downloading and installing snapshots (KIP-630)."""
